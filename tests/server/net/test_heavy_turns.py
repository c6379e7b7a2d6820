"""Connections with long turns share them: one in each turn of the event loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from ottla.model import limits
from ottla.server.loop.runtime import Runtime
from ottla.server.net.heavy_turns import HeavyTurns

SHORT_S, LONG_S = limits.LIGHT_TURN_S / 2, limits.LIGHT_TURN_S * 4


class World:
    """A loop that is turned by hand, and clocks that the turns move."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.now_s = self.waited_s = 0.0
        self.done: list[str] = []
        self.runtime = Runtime(
            self.loop,
            now_ms=lambda: 0,
            rng=random.Random(1),
            clock_s=lambda: self.now_s,
            waited_s=lambda: self.waited_s,
        )

    def turn(self) -> list[str]:
        """What is done in one turn of the loop."""
        self.done.clear()
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        return list(self.done)

    def work(self, name: str, takes_s: float, waits_s: float = 0.0) -> bool:
        """Work that takes so long by the clock; for a part of it there was no CPU. It handles a request if it takes any
        time.
        """
        self.done.append(name)
        self.now_s += takes_s
        self.waited_s += waits_s
        return takes_s > 0

    def take(self, turns: HeavyTurns, takes_s: float, waits_s: float = 0.0) -> bool:
        """Take a turn; return whether it began at once."""
        self.done.clear()
        self.runtime.slices.at_once()  # another connection has the turn of those that are heavy
        at_once = turns.begin(lambda: self.work("", takes_s, waits_s))
        assert at_once == bool(self.done)
        while not self.done:
            self.turn()
        self.turn()
        return at_once


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.loop.close()


def test_a_short_turn_begins_at_once(world: World) -> None:
    turns = HeavyTurns(world.runtime)
    turns.begin(lambda: world.work("a", SHORT_S))
    assert world.done == ["a"] and not turns.heavy


def test_one_long_turn_in_each_turn_of_the_loop_and_each_has_its_own(world: World) -> None:
    flood = {name: HeavyTurns(world.runtime) for name in "abc"}

    def again(name: str) -> bool:
        world.loop.call_soon(lambda: flood[name].begin(lambda: again(name)))
        return world.work(name, LONG_S)

    for name, turns in flood.items():
        turns.begin(lambda name=name: again(name))  # type: ignore[misc]
        assert turns.heavy
    others = HeavyTurns(world.runtime)
    served = []
    for _ in range(40):
        others.soon(lambda: world.work("light", SHORT_S))
        done = world.turn()
        assert "light" in done
        assert len(done) <= 2, "at most one of those that are heavy"
        served += [name for name in done if name != "light"]
    assert min(served.count(name) for name in flood) >= max(served.count(name) for name in flood) - 1 > 3


def test_a_connection_is_light_again_after_some_short_turns(world: World) -> None:
    turns = HeavyTurns(world.runtime)
    assert [world.take(turns, LONG_S) for _ in range(3)] == [True, False, False]
    at_once = [world.take(turns, SHORT_S) for _ in range(20)]
    assert at_once == [False] * limits.LIGHT_TURNS_AGAIN + [True] * (20 - limits.LIGHT_TURNS_AGAIN)
    assert not turns.heavy


def test_a_single_long_turn_counts_for_the_next_one(world: World) -> None:
    turns = HeavyTurns(world.runtime)
    assert [world.take(turns, each) for each in (LONG_S, SHORT_S, SHORT_S)] == [True, False, True]


def test_connections_whose_turns_are_long_now_and_then_stay_together(world: World) -> None:
    """However their short requests are spread between the large ones."""
    flood = [HeavyTurns(world.runtime) for _ in range(8)]
    for turns in flood:
        world.take(turns, LONG_S)
        world.take(turns, LONG_S)
    for number in range(12):
        long = number % limits.LIGHT_TURNS_AGAIN == limits.LIGHT_TURNS_AGAIN - 1
        assert not any(world.take(turns, LONG_S if long else SHORT_S) for turns in flood)


def test_turns_without_a_request_do_not_count(world: World) -> None:
    turns = HeavyTurns(world.runtime)
    world.take(turns, LONG_S)
    assert not any(world.take(turns, 0) for _ in range(10))


def test_a_connection_that_is_alone_waits_for_nobody(world: World) -> None:
    alone, other = HeavyTurns(world.runtime), HeavyTurns(world.runtime)
    for turns in (alone, other):
        world.take(turns, LONG_S)
    for _ in range(3):
        assert alone.begin(lambda: world.work("alone", LONG_S))
        assert not alone.begin(lambda: world.work("again", LONG_S)), "one in each turn of the loop"
        assert not other.begin(lambda: world.work("other", LONG_S))
        found = [world.turn() for _ in range(5)]
        assert [each for each in found if each] == [["again"], ["other"]]


def test_a_turn_that_waited_for_a_cpu_is_not_long(world: World) -> None:
    turns = HeavyTurns(world.runtime)
    world.take(turns, LONG_S, waits_s=LONG_S - SHORT_S)
    assert not turns.heavy
    world.take(turns, LONG_S * 2, waits_s=LONG_S)
    assert turns.heavy, "the rest was long enough"


def test_a_turn_is_judged_before_its_end(world: World) -> None:
    """What it leaves to do waits for those of the others, and does not count twice."""
    turns = HeavyTurns(world.runtime)

    def begin() -> bool:
        world.work("begun", LONG_S)
        turns.judge()
        turns.soon(lambda: world.work("rest", 0))
        return True

    turns.begin(begin)
    assert turns.heavy
    world.runtime.slices.soon(lambda: world.work("other", 0))
    found = [world.turn() for _ in range(4)]
    assert [each for each in found if each] == [["rest"], ["other"]]
