"""What follows from a snapshot, against a model of a topic that is written, cut and made anew while it is read.

With every loss accepted, whatever is in the log in the end was read exactly once, unless retention took it first; and
of a log that is no more nothing was read twice.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.ids import TopicPartition
from ottla.spark.option_values import OptionError
from ottla.spark.read.loss import Reason
from ottla.spark.read.marks import ReachedOffsets, document_of_mark, mark_of
from ottla.spark.read.offsets import ByTime, Everywhere, Specific
from ottla.spark.read.plan import TaskRange, limited
from ottla.spark.read.snapshot import Snapshot, begins, check_partitions, doubts, next_mark, planned, resolved

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


@dataclass
class Log:
    """A partition: its records, each unlike all others, with the epoch that it was written in."""

    records: list[tuple[int, int]] = field(default_factory=list)
    start: int = 0
    epoch: int = 0

    def epoch_end(self, epoch: int) -> int:
        """Behind the last record of an epoch that is not later."""
        return next((offset for offset, (_, other) in enumerate(self.records) if other > epoch), len(self.records))


@dataclass
class World:
    """A topic, whoever changes it, and a stream that reads it."""

    numbers: "count[int]" = field(default_factory=count)
    topic_id: int = 1
    logs: dict[TopicPartition, Log] = field(default_factory=lambda: {ZERO: Log()})
    reached: ReachedOffsets | None = None
    planned_to: ReachedOffsets | None = None
    rows: Counter[int] = field(default_factory=Counter)
    reasons: list[Reason] = field(default_factory=list)

    # --- others

    def write(self, size: int) -> None:
        for log in self.logs.values():
            log.records.extend((next(self.numbers), log.epoch) for _ in range(size))

    def expire(self, size: int) -> None:
        for log in self.logs.values():
            log.start = min(log.start + size, len(log.records))

    def lead(self, _: int) -> None:
        self.logs[ZERO].epoch += 1

    def cut(self, size: int) -> None:
        """An unclean election."""
        log = self.logs[ZERO]
        del log.records[max(len(log.records) - size, log.start) :]
        log.epoch += 1

    def recreate(self, size: int) -> None:
        self.topic_id += 1
        self.logs = {ZERO: Log()}
        self.write(size)

    def grow(self, _: int) -> None:
        self.logs.setdefault(ONE, Log())

    # --- the stream

    def snapshot(self) -> Snapshot:
        reached = self.reached or ReachedOffsets()
        return Snapshot(
            ends={each: len(log.records) for each, log in self.logs.items()},
            topic_ids={"t": self.topic_id.to_bytes(16, "big")},
            epochs={each: log.epoch for each, log in self.logs.items()},
            beginnings={each: log.start for each, log in self.logs.items()},
            epoch_ends={
                each: log.epoch_end(reached.epochs[each]) for each, log in self.logs.items() if each in reached.epochs
            },
        )

    def plan(self, most: int) -> None:
        """`latestOffset`, and what the checkpoint keeps of it."""
        snapshot = self.snapshot()
        if self.reached is None:
            self.reached = snapshot.mark(resolved(Everywhere(-2), snapshot))
        if self.planned_to is None:
            ends = limited(begins(self.reached, snapshot), snapshot.ends, most + 1)
            self.planned_to = next_mark(self.reached, snapshot, ends)

    def read(self, _: int) -> None:
        """`partitions`, by a query that may have been restarted since, and its tasks."""
        if self.planned_to is None or self.reached is None:
            return
        reached, end = (mark_of(document_of_mark(each)) for each in (self.reached, self.planned_to))
        found = planned(reached, end)
        self.reasons.extend(loss.reason for loss in found.losses)
        for part in found.ranges:
            self.task(part)
        self.reached, self.planned_to = self.planned_to, None

    def task(self, part: TaskRange) -> None:
        log = self.logs.get(part.partition)
        if log is None or part.topic_id != self.topic_id.to_bytes(16, "big"):
            return
        for offset in range(max(part.start, log.start), min(part.end, len(log.records))):
            number, epoch = log.records[offset]
            if epoch > part.leader_epoch:
                return
            self.rows[number] += 1


STEPS = ["write", "expire", "lead", "cut", "recreate", "grow", "plan", "read"]


@given(st.lists(st.tuples(st.sampled_from([*STEPS, "write", "plan", "read"]), st.integers(0, 9)), max_size=60))
def test_nothing_is_skipped_and_nothing_read_twice(steps: list[tuple[str, int]]) -> None:
    world = World()
    for name, size in steps:
        getattr(world, name)(size)
    for _ in range(3):
        world.read(0)
        world.plan(10**6)
    world.read(0)
    there = [number for log in world.logs.values() for number, _ in log.records[log.start :]]
    assert all(world.rows[number] == 1 for number in there), "skipped"
    assert all(times <= 1 for times in world.rows.values()), "twice"
    names = {name for name, _ in steps}
    assert names & {"cut", "recreate"} or not {Reason.TRUNCATED, Reason.RECREATED, Reason.AHEAD} & set(world.reasons)
    # Nothing is left to do: whatever is not new makes no batch.
    snapshot = world.snapshot()
    assert world.reached is not None
    assert next_mark(world.reached, snapshot, snapshot.ends) is world.reached and not doubts(world.reached, snapshot)


def test_a_new_leader_alone_makes_no_batch() -> None:
    reached = ReachedOffsets({ZERO: 5}, {"t": bytes(15) + b"\1"}, {ZERO: 3})
    later = Snapshot({ZERO: 5}, {"t": bytes(15) + b"\1"}, {ZERO: 4}, epoch_ends={ZERO: 5})
    assert next_mark(reached, later, later.ends) is reached
    shorter = Snapshot({ZERO: 5}, {"t": bytes(15) + b"\1"}, {ZERO: 4}, epoch_ends={ZERO: 3})
    mark = next_mark(reached, shorter, shorter.ends)
    found = planned(reached, mark)
    assert [loss.reason for loss in found.losses] == [Reason.TRUNCATED]
    assert "was read up to 5 and has been cut at 3 since" in str(found.losses[0])
    assert [(each.start, each.end, each.leader_epoch) for each in found.ranges] == [(3, 5, 4)]


def test_options_are_resolved_by_one_snapshot() -> None:
    snapshot = Snapshot({ZERO: 9, ONE: 4}, beginnings={ZERO: 2, ONE: 0}, at_times={(ZERO, 70): 5, (ONE, 70): None})
    assert resolved(Everywhere(-2), snapshot) == {ZERO: 2, ONE: 0}
    assert resolved(Everywhere(-1), snapshot) == {ZERO: 9, ONE: 4}
    assert resolved(Specific({ZERO: -1, ONE: 3}), snapshot) == {ZERO: 9, ONE: 3}
    assert resolved(ByTime(70), snapshot) == {ZERO: 5, ONE: 4}
    with pytest.raises(OptionError, match="nothing in t-1 is as late as timestamp 70"):
        resolved(ByTime(70), snapshot, nothing_so_late="error")
    for limit in (Specific({ZERO: 1}), ByTime({ZERO: 70})):
        with pytest.raises(OptionError, match=r"starting offsets must name all partitions .*not named: t-1"):
            check_partitions(limit, snapshot.ends, "starting")
