"""Loops compiled by numba, or the same functions in plain Python where there is no numba.

The compiled form is kept on disk (numba's cache): an installation pays for compilation once. Arrays are only borrowed
(no reference counting, which would cost more than the loops themselves), so no compiled function may allocate any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

try:
    from numba import njit as _njit

    _BORROWED: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}

    def compiled(function: F) -> F:
        """What Python calls, and what is called from many places."""
        made: F = _njit(**_BORROWED)(function)
        return made

    def inlined(function: F) -> F:
        """What is small, or called from one place: the fewer, the sooner numba is done."""
        made: F = _njit(forceinline=True, **_BORROWED)(function)
        return made

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
