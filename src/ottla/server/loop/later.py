"""Later: an answer that is not ready yet, lighter than a future.

A handler that cannot answer at once returns a `Later`. The component that produces the answer (a waiter, the syncer)
calls `set` exactly once, or `fail` if there will be no answer. The connection registers its callbacks with `then`, one
for either case; no event-loop turn lies between `set` and the reply's bytes. If the connection is lost first, it calls
`abandon`, and the component that was to produce the answer drops it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

# The value that the callback of `then` gets if the protocol defines no response (acks=0).
NO_ANSWER: Any = object()


class Disconnect(Exception):
    """Raised by a handler whose only possible answer is to close the connection (an error under acks=0, say)."""


class AnswerFailed(Disconnect):
    """Raised to a reader of a `Later` that failed; whoever called `fail` has logged the reason."""

    def __init__(self) -> None:
        super().__init__("there will be no answer")


class Large(Generic[T_co]):
    """A response with so many elements that it is encoded in slices; it must not be changed any more."""

    __slots__ = ("response",)

    def __init__(self, response: T_co) -> None:
        self.response = response


class Sliced(Generic[T_co]):
    """A response that is made in slices; the request keeps its turn on the connection meanwhile.

    If `changes` is set the work has side effects and is completed even if the connection is lost meanwhile; work that
    only reads is given up then.
    """

    __slots__ = ("changes", "making")

    def __init__(self, making: Awaitable[T_co | Large[T_co]], *, changes: bool) -> None:
        self.making = making
        self.changes = changes

    def __await__(self) -> Generator[object, None, T_co | Large[T_co]]:
        return self.making.__await__()


class Later(Generic[T]):
    """`done` says that there is an answer or that there will be none, `failed` that there will be none."""

    __slots__ = ("_callback", "_on_failure", "_value", "done", "failed", "on_abandon")

    def __init__(self) -> None:
        self.done = self.failed = False
        self.on_abandon: Callable[[], None] | None = None
        self._value: T | None = None
        self._callback: Callable[[T], None] | None = None
        self._on_failure: Callable[[], object] | None = None

    def set(self, value: T) -> None:
        assert not self.done, "an answer is given once"
        self.done = True
        if self._callback is not None:
            self._callback(value)
        else:
            self._value = value

    def fail(self) -> None:
        """Report that there will be no answer; the connection is closed."""
        if not self.done:
            self.done = self.failed = True
            if self._on_failure is not None:
                self._on_failure()

    def then(self, callback: Callable[[T], None], failed: Callable[[], object]) -> None:
        """Call `callback` with the value once it is set, or `failed` if there will be none."""
        assert self._callback is None, "one reader"
        self._callback, self._on_failure = callback, failed
        if self.failed:
            failed()
        elif self.done:
            value, self._value = self._value, None
            callback(value)  # type: ignore[arg-type]  # set() stored a T

    def taken(self) -> T:
        """Return the value of a `Later` that is done and has no callback. Raises AnswerFailed."""
        assert self.done and self._callback is None, "not there yet, or already read"
        if self.failed:
            raise AnswerFailed
        value, self._value = self._value, None
        return value  # type: ignore[return-value]  # set() stored a T

    def soonest(self) -> T | Later[T]:
        """Return the value itself if it is known, so that the caller can answer at once; else return this `Later`."""
        return self.taken() if self.done and not self.failed else self

    def map(self, convert: Callable[[T], U]) -> Later[U]:
        """Return a `Later` for the converted value, which fails if this one fails or `convert` raises; abandoning it
        abandons this one.
        """
        made: Later[U] = Later()
        made.on_abandon = self.abandon

        def make(value: T) -> None:
            try:
                converted = convert(value)
            except Exception:
                # The caller of `set` (a producer's append, say) must not get this exception, and the reader must not
                # wait for ever.
                log.exception("an answer could not be made")
                made.fail()
            else:
                made.set(converted)

        self.then(make, made.fail)
        return made

    def __await__(self) -> Generator[object, None, T]:
        """Await the value, in handlers that ask several coordinators one after the other. Raises AnswerFailed."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.then(
            lambda value: None if future.done() else future.set_result(value),
            lambda: None if future.done() else future.set_exception(AnswerFailed()),
        )
        return future.__await__()

    def abandon(self) -> None:
        """Tell the component that is to produce the answer that it is not needed any more."""
        if self.on_abandon is not None and not self.done:
            self.on_abandon()


def settled(value: T) -> Later[T]:
    """Return a `Later` whose value is already set."""
    later: Later[T] = Later()
    later.set(value)
    return later


def gather(answers: Sequence[Later[T]]) -> Later[list[T]]:
    """Return a `Later` for the list of all values, in the order of `answers`, which is set with the last of them; it
    fails then if one of them failed.
    """
    gathered: Later[list[T]] = Later()
    values: dict[int, T] = {}
    missing = len(answers)

    def settle(position: int, value: T) -> None:
        values[position] = value
        count_down()

    def count_down() -> None:
        nonlocal missing
        missing -= 1
        if missing == 0:
            finish()

    def finish() -> None:
        if len(values) < len(answers):
            gathered.fail()
        else:
            gathered.set([values[position] for position in range(len(answers))])

    for position, answer in enumerate(answers):
        answer.then(partial(settle, position), count_down)
    if not answers:
        finish()
    return gathered


# The result of a handler: the response (a `Large` one where it may have thousands of elements), a `Later` or an
# awaitable for it, or None if the protocol defines no response (acks=0).
Answer: TypeAlias = T | Large[T] | Later[T] | Awaitable[T | Large[T]] | None
