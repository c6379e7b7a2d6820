"""Loops compiled by numba, or the same functions in plain Python where there is no numba.

The compiled form is kept on disk (numba's cache): an installation pays for compilation once. Arrays are only borrowed
(no reference counting, which would cost more than the loops themselves), so no compiled function may allocate any.

What is kept counts as long as no module changes that a loop may be made of: its own package, what loops share, limits.
(numba itself looks at the function's own module only, and would go on with what another one used to say.)
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
_SHARED = [_HERE / f"{name}.py" for name in ("intake", "loops", "payloads", "push", "shape")]
_SHARED += [_LIMITS / "schemas.py", _LIMITS / "units.py", _HERE.parent / "schemas" / "json" / "shapes.py"]

try:
    from numba import njit as _njit

    _BORROWED: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}

    def compiled(function: F) -> F:
        """What Python calls, and what is called from many places."""
        return _kept(function, _BORROWED)

    def inlined(function: F) -> F:
        """What is small, or called from one place: the fewer, the sooner numba is done."""
        return _kept(function, {**_BORROWED, "forceinline": True})

    def _kept(function: F, options: dict[str, Any]) -> F:
        """With a mark of all that it is made of on what is kept on disk. Where nothing can be kept, nothing is."""
        try:
            made = _njit(**options)(function)
        except RuntimeError:
            made = _njit(**{**options, "cache": False})(function)
        file = getattr(made._cache, "_cache_file", None)
        if file is not None:
            file._source_stamp = (file._source_stamp, _mark(Path(function.__code__.co_filename).parent))
        kept: F = made
        return kept

    @lru_cache
    def _mark(package: Path) -> int:
        mark = 0
        for path in sorted({*package.glob("*.py"), *_SHARED}):
            with suppress(OSError):  # the package may lie in an archive, which changes as a whole
                mark = zlib.crc32(path.read_bytes(), mark)
        return mark

except ImportError:  # the loops are then plain Python

    def compiled(function: F) -> F:
        """What Python calls."""
        return function

    inlined = compiled


Bytes = NDArray[np.uint8]
Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Bools = NDArray[np.bool_]


def frozen_bytes(data: Any) -> Bytes:
    """Bytes as an array that is never written: one type of array, one compilation."""
    made = np.frombuffer(data, np.uint8)
    made.setflags(write=False)
    return made
