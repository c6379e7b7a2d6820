"""Retries of a request whose answer is likely to change soon.

Examples of such answers: a coordinator moves or is being loaded, the markers of the last transaction are still being
written, a connection broke. `retrying` repeats the whole request, so each attempt looks up the current leader anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ottla.server.loop.later import Later

T = TypeVar("T")


def retrying(
    loop: Any, ask: Callable[[], Later[T]], passes: Callable[[T], bool], pauses_ms: Iterator[float]
) -> Later[T]:
    """Return the first answer for which `passes` is false, or the last answer when `pauses_ms` is exhausted."""
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
    """Yield `count` pauses, each twice as long as the one before, up to `longest_ms`."""
    for number in range(count):
        yield min(first_ms << number, longest_ms)


def pauses_for(steady_ms: Callable[[], int], total_ms: int, pause_ms: float) -> Iterator[float]:
    """Return equal pauses, until `total_ms` have passed since this call."""
    return _pauses_until(steady_ms, steady_ms() + total_ms, pause_ms)


def _pauses_until(steady_ms: Callable[[], int], deadline_ms: int, pause_ms: float) -> Iterator[float]:
    while steady_ms() < deadline_ms:
        yield pause_ms
