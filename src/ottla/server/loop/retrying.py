"""Retries of a request whose answer is likely to change soon.

Examples of such answers: a coordinator moves or is being loaded, the markers of the last transaction are still being
written, a connection broke. `retrying` repeats the whole request, so each attempt looks up the current leader anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeVar

from ottla.server.loop.later import Later

T = TypeVar("T")
U = TypeVar("U")


def retrying(
    loop: asyncio.AbstractEventLoop,
    ask: Callable[[], Later[T]],
    is_temporary: Callable[[T], bool],
    pauses_ms: Iterator[float],
) -> Later[T]:
    """Return the first answer that is not temporary, or the last answer when `pauses_ms` is exhausted."""

    def pause(answer: T) -> Later[T | None] | None:
        pause_ms = next(pauses_ms, None) if is_temporary(answer) else None
        if pause_ms is None:
            return None
        over: Later[T | None] = Later()
        loop.call_later(pause_ms / 1000, over.set, None)
        return over

    return repeating(ask, pause)


def repeating(ask: Callable[[], Later[T]], wait_after: Callable[[T], Later[U | None] | None]) -> Later[T | U]:
    """Ask until `wait_after` returns None for an answer, which is the outcome. Otherwise ask again when the returned
    `Later` is set to None; if it is set to an answer, that is the outcome.
    """
    outcome: Later[T | U] = Later()

    def attempt() -> None:
        ask().then(answered, outcome.fail)

    def answered(answer: T) -> None:
        wait = wait_after(answer)
        if wait is None:
            outcome.set(answer)
        else:
            wait.then(waited, outcome.fail)

    def waited(answer: U | None) -> None:
        if answer is None:
            attempt()
        else:
            outcome.set(answer)

    attempt()
    return outcome


def growing_pauses(first_ms: int, longest_ms: int, count: int) -> Iterator[int]:
    """Yield `count` pauses, each twice as long as the one before, up to `longest_ms`."""
    for number in range(count):
        yield min(first_ms << number, longest_ms)


def pauses_for(steady_ms: Callable[[], int], total_ms: int, pause_ms: float) -> Iterator[float]:
    """Return equal pauses, until `total_ms` have passed since this call."""
    return _pauses_until(steady_ms, steady_ms() + total_ms, pause_ms)


def _pauses_until(steady_ms: Callable[[], int], deadline_ms: int, pause_ms: float) -> Iterator[float]:
    while steady_ms() < deadline_ms:
        yield pause_ms
