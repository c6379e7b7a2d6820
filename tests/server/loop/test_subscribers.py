"""Subscribers: called in the order in which they came; calls that are held back are made later, or dropped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.server.loop.subscribers import Subscribers


class Heard:
    """Subscribers of numbers, and what they heard of them."""

    def __init__(self) -> None:
        self.subscribers: Subscribers[[int]] = Subscribers("a number")
        self.heard: list[str] = []

    def add(self, name: str) -> None:
        self.subscribers.add(lambda number: self.heard.append(f"{name} {number}"))

    def add_slow(self, name: str) -> None:
        def hear(number: int) -> Iterator[None]:
            for part in "ab":
                self.heard.append(f"{name} {number}{part}")
                yield

        self.subscribers.add(hear)

    def add_failing(self) -> None:
        def fail(number: int) -> None:
            self.heard.append(f"failing {number}")
            raise ValueError(number)

        self.subscribers.add(fail)

    def tell_in_slices(self, number: int) -> None:
        for _ in self.subscribers.telling(number):
            self.heard.append("-")


def test_subscribers_are_told_in_the_order_in_which_they_came() -> None:
    heard = Heard()
    heard.add("first")
    heard.add_slow("second")
    heard.add("third")
    heard.subscribers.tell(1)
    assert heard.heard == ["first 1", "second 1a", "second 1b", "third 1"]


def test_in_slices_each_has_finished_before_the_next_begins() -> None:
    heard = Heard()
    heard.add_slow("first")
    heard.add("second")
    heard.add_slow("third")
    heard.tell_in_slices(1)
    assert heard.heard == ["first 1a", "-", "first 1b", "-", "second 1", "third 1a", "-", "third 1b", "-"]


def test_a_subscription_ends() -> None:
    heard = Heard()
    heard.add("stays")
    end = heard.subscribers.add(lambda number: heard.heard.append(f"goes {number}"))
    heard.subscribers.tell(1)
    end()
    end()  # again does no harm
    heard.subscribers.tell(2)
    heard.tell_in_slices(3)
    assert heard.heard == ["stays 1", "goes 1", "stays 2", "stays 3"]


def test_who_ends_or_begins_during_a_round_changes_the_next_one() -> None:
    heard = Heard()

    def change(number: int) -> None:
        heard.heard.append(f"change {number}")
        end()
        if number == 1:
            heard.add("late")

    heard.subscribers.add(change)
    end = heard.subscribers.add(lambda number: heard.heard.append(f"ended {number}"))
    heard.subscribers.tell(1)
    heard.subscribers.tell(2)
    assert heard.heard == ["change 1", "ended 1", "change 2", "late 2"]


def test_an_exception_ends_a_round_unless_it_is_told_in_slices(caplog: pytest.LogCaptureFixture) -> None:
    heard = Heard()
    heard.add_failing()
    heard.add("next")
    with pytest.raises(ValueError, match="1"):
        heard.subscribers.tell(1)
    assert heard.heard == ["failing 1"]
    heard.tell_in_slices(2)
    assert heard.heard[1:] == ["failing 2", "next 2"]
    assert "a number could not be followed" in caplog.text


def test_what_is_held_is_told_when_it_is_released_in_order() -> None:
    heard = Heard()
    heard.add_slow("one")
    heard.subscribers.hold()
    heard.tell_in_slices(1)
    heard.tell_in_slices(2)
    assert heard.heard == []
    heard.add("late")  # whoever subscribes meanwhile hears it, too
    for _ in heard.subscribers.release():
        heard.heard.append("-")
    assert heard.heard == ["one 1a", "-", "one 1b", "-", "late 1", "one 2a", "-", "one 2b", "-", "late 2"]
    heard.heard.clear()
    heard.tell_in_slices(3)
    assert heard.heard == ["one 3a", "-", "one 3b", "-", "late 3"], "at once again"
    assert list(heard.subscribers.release()) == []


def test_what_is_told_at_once_is_not_held() -> None:
    heard = Heard()
    heard.add("one")
    heard.subscribers.hold()
    heard.subscribers.tell(1)
    assert heard.heard == ["one 1"]


def test_what_was_held_can_be_dropped_and_later_calls_are_held_on() -> None:
    heard = Heard()
    heard.add("one")
    heard.subscribers.hold()
    heard.tell_in_slices(1)
    heard.subscribers.drop_held()
    heard.tell_in_slices(2)
    assert heard.heard == []
    assert list(heard.subscribers.release()) == []
    assert heard.heard == ["one 2"]


def test_what_comes_while_others_are_released_is_told_at_once() -> None:
    heard = Heard()
    heard.add_slow("one")
    heard.subscribers.hold()
    heard.tell_in_slices(1)
    release = heard.subscribers.release()
    next(release)
    heard.tell_in_slices(2)
    assert heard.heard == ["one 1a", "one 2a", "-", "one 2b", "-"]
