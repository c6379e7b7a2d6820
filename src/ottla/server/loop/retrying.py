"""Asking again: the one loop for questions whose answer may be better in a moment.

A coordinator moves or is being loaded, the markers of the last transaction are still being written, a connection broke:
such an answer passes. `retrying` repeats the whole question, so each attempt finds out anew who leads by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ottla.server.loop.later import Later

T = TypeVar("T")


def retrying(
    loop: Any, ask: Callable[[], Later[T]], passes: Callable[[T], bool], pauses_ms: Iterator[float]
) -> Later[T]:
    """The first answer that does not pass; after the last of the pauses, whatever the answer is."""
    outcome: Later[T] = Later()

    def attempt() -> None:
        ask().then(answered)

    def answered(answer: T) -> None:
        pause_ms = next(pauses_ms, None) if passes(answer) else None
        if pause_ms is None:
            outcome.set(answer)
        else:
            loop.call_later(pause_ms / 1000, attempt)

    attempt()
    return outcome


def growing_pauses(first_ms: int, longest_ms: int, count: int) -> Iterator[int]:
    """Each pause is twice as long as the one before, up to `longest_ms`."""
    for number in range(count):
        yield min(first_ms << number, longest_ms)


def pauses_for(steady_ms: Callable[[], int], total_ms: int, pause_ms: float) -> Iterator[float]:
    """Equal pauses, until `total_ms` have passed since this call."""
    return _pauses_until(steady_ms, steady_ms() + total_ms, pause_ms)


def _pauses_until(steady_ms: Callable[[], int], deadline_ms: int, pause_ms: float) -> Iterator[float]:
    while steady_ms() < deadline_ms:
        yield pause_ms
