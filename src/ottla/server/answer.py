"""Later: an answer that is not there yet, lighter than a future.

A handler that cannot answer at once returns a `Later`, and somebody (a waiter, the syncer) calls `set` on it exactly
once. The connection attaches itself with `then`; no event-loop turn lies between `set` and the reply's bytes. When
the connection dies first it marks the answer `abandoned`, and whoever holds it may forget it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")


class Disconnect(Exception):
    """Raised by a handler whose only possible answer is to close the connection (an error under acks=0)."""


class Later(Generic[T]):
    __slots__ = ("_callback", "_value", "abandoned", "done")

    def __init__(self) -> None:
        self.done = False
        self.abandoned = False
        self._value: T | None = None
        self._callback: Callable[[T], None] | None = None

    def set(self, value: T) -> None:
        assert not self.done, "an answer is given once"
        self.done = True
        if self._callback is not None:
            self._callback(value)
        else:
            self._value = value

    def then(self, callback: Callable[[T], None]) -> None:
        assert self._callback is None, "one reader"
        self._callback = callback
        if self.done:
            value, self._value = self._value, None
            callback(value)  # type: ignore[arg-type]  # set() stored a T


# What a handler returns: the response, a promise of it, or None where the protocol wants no answer (acks=0).
Answer: TypeAlias = T | Later[T] | Awaitable[T] | None
