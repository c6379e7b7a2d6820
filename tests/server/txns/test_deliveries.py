"""Deliveries of markers by hand: who has a turn when, and what ends or repeats a delivery."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.server.loop.later import Later, settled
from ottla.server.txns.deliveries import Deliveries
from ottla.server.txns.marker_writer import COST_PER_SLICE
from ottla.txns.commands.end import MarkersWritten
from ottla.txns.effects import WriteMarkers


class World:
    """A node whose slices and timers are run by hand; all of its partitions are open."""

    def __init__(self) -> None:
        self.slices: list[Callable[[], None]] = []
        self.timers: list[Callable[[], None]] = []
        self.told: list[TopicPartition] = []
        self.is_broken = False
        self.outcomes: dict[TopicPartition, ApiError] = {}
        loop = SimpleNamespace(call_later=lambda _, do: self.timers.append(do))
        runtime: Any = SimpleNamespace(loop=loop, slices=SimpleNamespace(soon=self.slices.append))
        markers: Any = self
        self.deliveries = Deliveries(runtime, markers)

    def cost(self, _: TopicPartition) -> int:
        return 1

    def write(self, where: TopicPartition, effect: WriteMarkers, epoch: int) -> Later[ApiError | None]:
        if self.is_broken:
            raise ValueError
        self.told.append(where)
        return settled(self.outcomes.get(where))

    def slice(self) -> None:
        (do,) = self.slices
        self.slices.clear()
        do()

    def pause(self) -> None:
        timers = self.timers[:]
        self.timers.clear()
        for do in timers:
            do()

    def count(self, topic: str) -> int:
        return sum(where.topic == topic for where in self.told)


class Coordinator:
    def __init__(self) -> None:
        self.active = True
        self.machine = object()
        self.leader_epoch = 0
        self.written: list[str] = []
        self.refusal: ApiError | None = None

    def submit(self, command: MarkersWritten, reply: Callable[[Any], None]) -> None:
        if self.refusal is None:
            self.written.append(command.transactional_id)
        reply(self.refusal)

    def end(self, world: World, id: str, count: int) -> None:
        partitions = tuple(TopicPartition(id, index) for index in range(count))
        world.deliveries.write(WriteMarkers(id, 1, 0, True, partitions, 2), cast("Any", self))


def test_few_markers_are_written_at_once() -> None:
    world, coordinator = World(), Coordinator()
    for id in ("a", "b", "c"):
        coordinator.end(world, id, 3)
    assert coordinator.written == ["a", "b", "c"]
    coordinator.end(world, "none", 0)
    assert coordinator.written[-1] == "none"
    world.slice()
    assert not world.slices, "nothing goes on by itself"


def test_a_small_transaction_does_not_wait_for_a_large_one() -> None:
    world, coordinator = World(), Coordinator()
    coordinator.end(world, "large", 10 * COST_PER_SLICE)
    assert world.count("large") == COST_PER_SLICE
    coordinator.end(world, "small", 2)
    assert world.count("small") == 0
    world.slice()
    assert coordinator.written == ["small"]
    assert len(world.told) == 2 * COST_PER_SLICE
    while world.slices:
        world.slice()
    assert coordinator.written == ["small", "large"]
    assert len(world.told) == len(set(world.told)) == 10 * COST_PER_SLICE + 2


def test_very_many_transactions_together_cost_no_more_than_one() -> None:
    """A coordinator that loads, or sweeps."""
    world, coordinator = World(), Coordinator()
    for number in range(5 * COST_PER_SLICE):
        coordinator.end(world, str(number), 1)
    assert len(world.told) == COST_PER_SLICE
    while world.slices:
        before = len(world.told)
        world.slice()
        assert len(world.told) - before <= COST_PER_SLICE
    assert len(coordinator.written) == 5 * COST_PER_SLICE


def test_a_coordinator_that_is_none_any_more_writes_no_more_markers() -> None:
    for lose in ({"active": False}, {"machine": object()}):
        world, coordinator, other = World(), Coordinator(), Coordinator()
        coordinator.end(world, "lost", 10 * COST_PER_SLICE)
        other.end(world, "other", 2)
        vars(coordinator).update(lose)
        while world.slices:
            world.slice()
        assert world.count("lost") == COST_PER_SLICE
        assert (coordinator.written, other.written) == ([], ["other"])


def test_what_fails_is_tried_again_together() -> None:
    world, coordinator = World(), Coordinator()
    count = 2 * COST_PER_SLICE
    world.outcomes = {TopicPartition("t", index): ApiError(ErrorCode.LEADER_NOT_AVAILABLE) for index in range(1, count)}
    coordinator.end(world, "t", count)
    world.slice()
    assert len(world.timers) == 1
    world.slice()
    world.pause()
    assert len(world.told) == count + COST_PER_SLICE, "a slice of them"
    world.outcomes = {TopicPartition("t", 5): ApiError(ErrorCode.INVALID_PRODUCER_EPOCH)}  # needs no marker any more
    while world.slices or world.timers:
        while world.slices:
            world.slice()
        world.pause()
    assert coordinator.written == ["t"]
    assert world.told.count(TopicPartition("t", 0)) == 1


def test_a_journal_that_cannot_be_written_wants_the_markers_again() -> None:
    world, coordinator = World(), Coordinator()
    coordinator.refusal = ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    coordinator.end(world, "t", 2)
    coordinator.refusal = None
    world.pause()
    assert coordinator.written == ["t"]
    assert len(world.told) == 4


def test_a_mistake_with_one_partition_is_tried_again() -> None:
    world, coordinator = World(), Coordinator()
    world.is_broken = True
    coordinator.end(world, "t", 2)
    world.is_broken = False
    world.pause()
    assert coordinator.written == ["t"]
