"""Loops compiled by numba, or the same functions in plain Python where there is no numba.

The compiled code is kept on disk (numba's cache): an installation compiles once. Arrays are only borrowed (no reference
counting, which would cost more than the loops themselves), so no compiled function may allocate any.

A cached function is valid as long as no module changes that it may depend on: its own package, modules that all loops
share, limits. (numba itself checks the function's own module only, and would keep using stale code of another one.)
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

_HERE = Path(__file__).parent
_LIMITS = _HERE.parent / "model" / "limits"
_SHARED = [_HERE / f"{name}.py" for name in ("input_columns", "loops", "payloads", "push", "shape")]
_SHARED += [_LIMITS / "schemas.py", _LIMITS / "units.py", _HERE.parent / "schemas" / "json" / "shapes.py"]

try:
    from numba import njit as _njit

    _BORROWED: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}

    def compiled(function: F) -> F:
        """Compile a function that is called from Python or from many places."""
        return _kept(function, _BORROWED)

    def inlined(function: F) -> F:
        """Compile and inline a function that is small, or called from one place: fewer functions compile faster."""
        return _kept(function, {**_BORROWED, "forceinline": True})

    def _kept(function: F, options: dict[str, Any]) -> F:
        """Compile a function; its cache file is stamped with all modules that it may depend on. Without a writable
        cache directory, nothing is cached.

        The stamp is part of the version in the file, which numba compares before it unpickles the rest: that may name
        classes that have been renamed since.
        """
        try:
            made = _njit(**options)(function)
        except RuntimeError:
            made = _njit(**{**options, "cache": False})(function)
        file = getattr(made._cache, "_cache_file", None)
        if file is not None:
            file._version = (file._version, _mark(Path(function.__code__.co_filename).parent))
        kept: F = made
        return kept

    @lru_cache
    def _mark(package: Path) -> int:
        mark = 0
        for path in sorted({*package.glob("*.py"), *_SHARED}):
            with suppress(OSError):  # the package may be in an archive, which changes as a whole
                mark = zlib.crc32(path.read_bytes(), mark)
        return mark

except ImportError:  # without numba the loops are plain Python

    def compiled(function: F) -> F:
        """Return the function as it is."""
        return function

    inlined = compiled


Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]


def frozen_bytes(data: Any) -> Bytes:
    """Return the bytes as a read-only array: one array type, so only one compilation."""
    made = np.frombuffer(data, np.uint8)
    made.setflags(write=False)
    return made
