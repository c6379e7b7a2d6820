"""Later: an answer that is not there yet, lighter than a future.

A handler that cannot answer at once returns a `Later`, and somebody (a waiter, the syncer) calls `set` on it exactly
once, or `fail` if there will be none. The connection attaches itself with `then`; no event-loop turn lies between `set`
and the reply's bytes. When the connection dies first it calls `abandon`, and whoever holds the answer forgets it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")
U = TypeVar("U")

# What `then` is given instead of a response when there will be none.
FAILED: Any = object()
# ... and when the protocol wants none (acks=0).
NO_ANSWER: Any = object()


class Disconnect(Exception):
    """Raised by a handler whose only possible answer is to close the connection (an error under acks=0, say)."""


class Large(Generic[T]):
    """An answer of so many elements that it is encoded in slices; nobody may change it any more."""

    __slots__ = ("response",)

    def __init__(self, response: T) -> None:
        self.response = response


class Sliced(Generic[T]):
    """An answer that is made in slices, by a request that keeps its turn on the connection meanwhile.

    What `changes` something is carried out even if the connection is gone by then; what only reads is given up.
    """

    __slots__ = ("changes", "making")

    def __init__(self, making: Awaitable[T | Large[T]], *, changes: bool) -> None:
        self.making = making
        self.changes = changes

    def __await__(self) -> Generator[Any, None, T | Large[T]]:
        return self.making.__await__()


class Later(Generic[T]):
    __slots__ = ("_callback", "_value", "done", "on_abandon")

    def __init__(self) -> None:
        self.done = False
        self.on_abandon: Callable[[], None] | None = None
        self._value: T | None = None
        self._callback: Callable[[T], None] | None = None

    def set(self, value: T) -> None:
        assert not self.done, "an answer is given once"
        self.done = True
        if self._callback is not None:
            self._callback(value)
        else:
            self._value = value

    def fail(self) -> None:
        """There will be no answer: the connection is closed."""
        if not self.done:
            self.set(FAILED)

    def then(self, callback: Callable[[T], None]) -> None:
        assert self._callback is None, "one reader"
        self._callback = callback
        if self.done:
            value, self._value = self._value, None
            callback(value)  # type: ignore[arg-type]  # set() stored a T

    def taken(self) -> T:
        """The answer of one that is done and has no reader."""
        assert self.done and self._callback is None, "not there yet, or already read"
        value, self._value = self._value, None
        return value  # type: ignore[return-value]  # set() stored a T

    def soonest(self) -> T | Later[T]:
        """The value itself if it is there: what is known need not wait for its turn."""
        return self.taken() if self.done and self._value is not FAILED else self

    def map(self, convert: Callable[[T], U]) -> Later[U]:
        """The answer made of this one; also abandons it. There is none if it cannot be made."""
        made: Later[U] = Later()
        made.on_abandon = self.abandon

        def make(value: T) -> None:
            if value is FAILED:
                made.fail()
                return
            try:
                converted = convert(value)
            except Exception:
                # Whoever gave the answer (a producer's append, say) must not suffer for it, and nobody waits for ever.
                log.exception("an answer could not be made")
                made.fail()
            else:
                made.set(converted)

        self.then(make)
        return made

    def __await__(self) -> Generator[Any, None, T]:
        """For handlers that ask several coordinators one after the other."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.then(lambda value: None if future.done() else future.set_result(value))
        return future.__await__()

    def abandon(self) -> None:
        """Nobody reads the answer any more."""
        if self.on_abandon is not None and not self.done:
            self.on_abandon()


def settled(value: T) -> Later[T]:
    """An answer that is there already."""
    later: Later[T] = Later()
    later.set(value)
    return later


def gather(answers: Sequence[Later[T]]) -> Later[list[T]]:
    """All of the answers, in their order, once the last is there."""
    gathered: Later[list[T]] = Later()
    values: list[Any] = [None] * len(answers)
    missing = len(answers)

    def settle(position: int, value: T) -> None:
        nonlocal missing
        values[position] = value
        missing -= 1
        if missing == 0 and not gathered.done:
            gathered.set(values)

    for position, answer in enumerate(answers):
        answer.then(partial(settle, position))
    if not answers:
        gathered.set([])
    return gathered


# What a handler returns: the response (a `Large` one where there may be thousands of elements), a promise of it, or
# None where the protocol wants no answer (acks=0).
Answer: TypeAlias = T | Large[T] | Later[T] | Awaitable[T | Large[T]] | None
