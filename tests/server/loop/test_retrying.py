"""Questions that are asked again: which answers count, and how long the pauses are."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from ottla.server.loop.later import Later
from ottla.server.loop.retrying import growing_pauses, pauses_for, retrying


class Timers:
    """A loop that runs its timers at once, and remembers their delays."""

    def __init__(self) -> None:
        self.delays_s: list[float] = []

    def call_later(self, delay_s: float, do: Callable[[], None]) -> None:
        self.delays_s.append(delay_s)
        do()


def asking(answers: list[str]) -> Callable[[], Later[str]]:
    def ask() -> Later[str]:
        later: Later[str] = Later()
        later.set(answers.pop(0))
        return later

    return ask


def passes(answer: str) -> bool:
    return answer == "moved"


def test_the_first_answer_that_does_not_pass_counts() -> None:
    loop = Timers()
    answers = ["moved", "moved", "done", "never asked for"]
    outcome = retrying(loop, asking(answers), passes, growing_pauses(50, 80, 9))
    assert outcome.taken() == "done"
    assert loop.delays_s == [0.05, 0.08]
    assert answers == ["never asked for"]


def test_after_the_last_pause_any_answer_counts() -> None:
    loop = Timers()
    assert retrying(loop, asking(["moved"] * 3), passes, growing_pauses(1, 1, 2)).taken() == "moved"
    assert len(loop.delays_s) == 2


def test_pauses_end_with_their_time() -> None:
    clock = SimpleNamespace(ms=1000)
    pauses = pauses_for(lambda: clock.ms, 100, 20)
    assert next(pauses) == 20
    clock.ms = 1099
    assert next(pauses) == 20
    clock.ms = 1100
    assert next(pauses, None) is None
