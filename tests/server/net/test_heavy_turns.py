"""Connections with long turns share them: one in each turn of the event loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest

from ottla.model import limits
from ottla.server.loop.runtime import Runtime
from ottla.server.net.heavy_turns import HeavyTurns


class World:
    """A loop that is turned by hand, and a clock that the turns move."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.now_s = 0.0
        self.done: list[str] = []
        self.runtime = Runtime(self.loop, now_ms=lambda: 0, rng=random.Random(1), clock_s=lambda: self.now_s)

    def turn(self) -> list[str]:
        """What is done in one turn of the loop."""
        self.done.clear()
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        return list(self.done)

    def work(self, name: str, takes_s: float) -> None:
        self.done.append(name)
        self.now_s += takes_s


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.loop.close()


def test_a_short_turn_begins_at_once(world: World) -> None:
    turns = HeavyTurns(world.runtime)
    turns.begin(lambda: world.work("a", limits.LIGHT_TURN_S / 2))
    assert world.done == ["a"] and not turns.heavy


def test_one_long_turn_in_each_turn_of_the_loop_and_each_has_its_own(world: World) -> None:
    flood = {name: HeavyTurns(world.runtime) for name in "abc"}

    def again(name: str) -> None:
        world.work(name, limits.LIGHT_TURN_S * 2)
        flood[name].soon(lambda: flood[name].begin(lambda: again(name)))

    for name, turns in flood.items():
        turns.begin(lambda name=name: again(name))  # type: ignore[misc]
        assert turns.heavy
    others = HeavyTurns(world.runtime)
    served = []
    for _ in range(40):
        others.soon(lambda: others.begin(lambda: world.work("light", 0)))
        done = world.turn()
        assert "light" in done
        assert len(done) <= 2, "at most one of those that are heavy"
        served += [name for name in done if name != "light"]
    assert min(served.count(name) for name in flood) >= max(served.count(name) for name in flood) - 1 > 3


def test_a_connection_that_was_heavy_is_light_after_a_short_turn(world: World) -> None:
    turns = HeavyTurns(world.runtime)
    turns.begin(lambda: world.work("a", limits.LIGHT_TURN_S * 2))
    assert turns.heavy
    world.done.clear()
    turns.begin(lambda: world.work("b", 0))
    assert world.done == []
    assert [*world.turn(), *world.turn()] == ["b"]
    assert not turns.heavy
