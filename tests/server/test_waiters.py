"""Waiting for partitions: tried on every change, answered at the deadline, forgotten when done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.server.answer import Later
from ottla.server.waiters import Waiters


class Timer:
    def __init__(self, callback: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.callback = callback
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def fire(self) -> None:
        if not self.cancelled:
            self.callback(*self.args)


class Clock:
    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, delay: float, callback: Callable[..., None], *args: Any) -> Timer:
        self.timers.append(Timer(callback, args))
        return self.timers[-1]

    def call_soon(self, callback: Callable[..., None], *args: Any) -> Timer:
        return self.call_later(0, callback, *args)


def test_an_attempt_is_tried_on_each_change_until_it_succeeds() -> None:
    waiters = Waiters(Clock())
    tries: list[str | None] = []

    def attempt(changed: str | None) -> bool:
        tries.append(changed)
        return len(tries) == 2

    waiters.watch(Later(), ["a", "b"], attempt, 100)
    waiters.notify("c")
    waiters.notify("a")
    waiters.notify("b")
    waiters.notify("a")
    assert tries == ["a", "b"]
    assert waiters.count == 0


def test_what_an_attempt_changes_itself_is_looked_at_in_the_next_turn() -> None:
    clock = Clock()
    waiters = Waiters(clock)
    tries: list[str | None] = []

    def attempt(changed: str | None) -> bool:
        tries.append(changed)
        if len(tries) == 1:
            waiters.notify("b")
            assert tries == ["a"]
        return len(tries) == 2

    waiters.watch(Later(), ["a", "b"], attempt, 100)
    waiters.notify("a")
    assert [timer.callback for timer in clock.timers[1:]] == [waiters._changed]
    clock.timers[1].fire()
    assert tries == ["a", "b"]
    assert waiters.count == 0
    clock.timers[1].fire()  # it may be over by then
    assert tries == ["a", "b"]


def test_the_deadline_is_the_last_try() -> None:
    clock = Clock()
    waiters = Waiters(clock)
    tries: list[str | None] = []
    waiters.watch(Later(), ["a"], lambda changed: bool(tries.append(changed)), 100)
    clock.timers[0].fire()
    waiters.notify("a")
    assert tries == [None]
    assert waiters.count == 0


def test_success_cancels_the_timer() -> None:
    clock = Clock()
    waiters = Waiters(clock)
    waiters.watch(Later(), ["a"], lambda changed: True, 100)
    waiters.notify("a")
    assert clock.timers[0].cancelled


def test_waiters_of_one_key_are_tried_in_the_order_they_came() -> None:
    waiters = Waiters(Clock())
    order: list[int] = []
    for number in range(5):
        waiters.watch(Later(), ["a"], lambda changed, number=number: order.append(number) is None, 100)
    waiters.notify("a")
    assert order == [0, 1, 2, 3, 4]
