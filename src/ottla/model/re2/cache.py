"""SizedCache: values by text, bounded by their number and by the size of all of them together.

Values grow while they are used. Those that were used last are kept, up to the bounds; one that is forgotten while it is
in use goes on for its user. Threads may share a cache: none of its steps on the dictionary can be interrupted, and two
threads that miss the same text both make its value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def size(self) -> int: ...


ValueT = TypeVar("ValueT", bound=Sized)

_LOOKS_PER_FILL = 10  # how often all sizes are added up while values grow by as much as the cache may hold


class SizedCache(Generic[ValueT]):
    def __init__(self, make: Callable[[str], ValueT], count_max: int, size_max: int) -> None:
        self._make = make
        self._count_max = count_max
        self._size_max = size_max
        self._values: dict[str, ValueT] = {}  # the one that was used longest ago comes first
        self._grown = 0  # since all sizes were added up

    def __len__(self) -> int:
        return len(self._values)

    def of(self, text: str) -> ValueT:
        """Return the value of a text. If it is not cached it is made, and cached unless it is larger than the bound."""
        value = self._values.pop(text, None)
        if value is not None:
            self._values[text] = value
            return value
        value = self._values[text] = self._make(text)
        self._trim()
        return value

    def grew(self, size: int) -> None:
        """Take notice that some value, cached or not, has grown by `size`."""
        self._grown += size
        if self._grown > self._size_max // _LOOKS_PER_FILL:
            self._trim()

    def _trim(self) -> None:
        self._grown = 0
        values = list(self._values.items())
        size = sum(value.size for _, value in values)
        for text, value in values:
            if size <= self._size_max and len(self._values) <= self._count_max:
                break
            size -= value.size
            self._values.pop(text, None)
