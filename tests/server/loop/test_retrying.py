"""Questions that are asked again: which answers count, and how long the pauses are."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from ottla.server.loop.later import Later
from ottla.server.loop.retrying import growing_pauses, pauses_for, repeating, retrying


class Timers:
    """A loop that runs its timers at once, and remembers their delays."""

    def __init__(self) -> None:
        self.delays_s: list[float] = []

    def call_later(self, delay_s: float, do: Callable[..., None], *given: object) -> None:
        self.delays_s.append(delay_s)
        do(*given)


def asking(answers: list[str]) -> Callable[[], Later[str]]:
    def ask() -> Later[str]:
        later: Later[str] = Later()
        later.set(answers.pop(0))
        return later

    return ask


def is_temporary(answer: str) -> bool:
    return answer == "moved"


def test_the_first_answer_that_is_not_temporary_counts() -> None:
    loop = Timers()
    answers = ["moved", "moved", "done", "never asked for"]
    outcome = retrying(loop, asking(answers), is_temporary, growing_pauses(50, 80, 9))
    assert outcome.taken() == "done"
    assert loop.delays_s == [0.05, 0.08]
    assert answers == ["never asked for"]


def test_after_the_last_pause_any_answer_counts() -> None:
    loop = Timers()
    assert retrying(loop, asking(["moved"] * 3), is_temporary, growing_pauses(1, 1, 2)).taken() == "moved"
    assert len(loop.delays_s) == 2


def test_an_attempt_waits_for_what_the_answer_lacks() -> None:
    waits: list[Later[str | None]] = []

    def wait_after(answer: str) -> Later[str | None] | None:
        if answer == "done":
            return None
        waits.append(Later())
        return waits[-1]

    outcome = repeating(asking(["moved", "moved", "done"]), wait_after)
    for _ in range(2):
        assert not outcome.done
        waits[-1].set(None)
    assert (outcome.taken(), len(waits)) == ("done", 2)


def test_a_wait_may_end_with_the_outcome() -> None:
    wait: Later[str | None] = Later()
    outcome = repeating(asking(["moved", "never asked for"]), lambda _: wait)
    wait.set("given up")
    assert outcome.taken() == "given up"


def test_pauses_end_with_their_time() -> None:
    clock = SimpleNamespace(ms=1000)
    pauses = pauses_for(lambda: clock.ms, 100, 20)
    assert next(pauses) == 20
    clock.ms = 1099
    assert next(pauses) == 20
    clock.ms = 1100
    assert next(pauses, None) is None


def test_an_attempt_that_failed_is_the_outcome() -> None:
    failed: Later[str] = Later()
    failed.fail()
    outcome = retrying(Timers(), lambda: failed, lambda answer: bool(answer.upper()), growing_pauses(1, 1, 2))
    assert outcome.failed
