"""Whatever happens to a log and to requests while a task reads its range: every row that was planned comes once and in
order, or the task says which it lost.

Hypothesis drives tasks on a cluster in memory. Between the answers the log grows, is compacted, loses its beginning or
its end, moves, is deleted and made again, and requests of every kind fail. `OTTLA_TASK_EXAMPLES` says how many
histories are tried.
"""

import os
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.client.memory_cluster import (
    GARBLE,
    HANG_UP,
    HOLD_BACK,
    LEAVE_OUT,
    NODES,
    SAY_NOTHING,
    MemoryBrokers,
    MemoryClient,
    What,
    run,
)

pytest.importorskip("pyspark")

from ottla.client.consumer.fetching import decode_batch
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.spark.read.loss import DataLoss
from ottla.spark.read.plan import TaskRange
from ottla.spark.read.settings import parse_read
from ottla.spark.read.task import _Reading
from ottla.wire.message import Request
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

EXAMPLES = int(os.environ.get("OTTLA_TASK_EXAMPLES", "150"))
PARTITION = TopicPartition("t", 0)
E = ErrorCode
FAULTS: dict[type[Request], list[What]] = {
    MetadataRequest: [E.LEADER_NOT_AVAILABLE, E.UNKNOWN_TOPIC_OR_PARTITION, E.TOPIC_AUTHORIZATION_FAILED],
    ListOffsetsRequest: [LEAVE_OUT, E.NOT_LEADER_OR_FOLLOWER, E.OFFSET_NOT_AVAILABLE, E.UNKNOWN_SERVER_ERROR],
    OffsetForLeaderEpochRequest: [LEAVE_OUT, E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_LEADER_EPOCH, E.UNKNOWN_SERVER_ERROR],
    FetchRequest: [
        GARBLE,
        HOLD_BACK,
        LEAVE_OUT,
        E.NOT_LEADER_OR_FOLLOWER,
        E.FENCED_LEADER_EPOCH,
        E.OFFSET_OUT_OF_RANGE,
        E.UNKNOWN_TOPIC_ID,
        E.TOPIC_AUTHORIZATION_FAILED,
        E.UNKNOWN_SERVER_ERROR,
    ],
}
OPTIONS = {
    "kafka.bootstrap.servers": "nowhere:1",
    "subscribe": "t",
    "kafka.max.partition.fetch.bytes": "200",
}


class History:
    """A log, the range that was planned of it, and what became of the planned records since."""

    def __init__(self, start: int, end_before: int, *, fails_on_loss: bool, committed: bool) -> None:
        self.fails_on_loss = fails_on_loss
        level = "read_committed" if committed else "read_uncommitted"
        raw = {**OPTIONS, "failOnDataLoss": str(fails_on_loss).lower(), "kafka.isolation.level": level}
        self.settings = parse_read(raw, streaming=False)
        self.brokers = MemoryBrokers()
        self.brokers.fault = self._fault
        self.faults: list[list[Any]] = []
        self.written = 0
        self.make()
        for _ in range(3):
            self.append(4)
            self.brokers.log(PARTITION).end_transaction()
        log = self.brokers.log(PARTITION)
        topic_id = self.brokers.topics["t"].id
        self.range = TaskRange(PARTITION, start, log.end - end_before, topic_id=topic_id, leader_epoch=log.epoch)
        self.planned = {at: value for at, value in log.content().items() if start <= at < self.range.end}
        self.removed: set[int] = set()  # by compaction
        self.lost: set[int] = set()
        self.may_skip = False  # records were held back, or the topic was not known, for longer than a task waits

    def make(self) -> None:
        self.brokers.make("t", 1)

    def append(self, count: int) -> None:
        for _ in range(count):
            self.written += 1
            self.brokers.log(PARTITION).append(1, value=b"record %d" % self.written)

    def _fault(self, request: Request) -> Any:
        for fault in self.faults:
            api, what, times = fault
            if isinstance(request, api) and times > 0:
                fault[2] -= 1
                return what, lambda partition: True
        return None

    def step(self, action: tuple[Any, ...]) -> None:
        log = self.brokers.log(PARTITION) if "t" in self.brokers.topics else None
        match action:
            case ("fault", api, what, times):
                self.faults.append([api, what, times])
                self.may_skip |= what in (HOLD_BACK, E.UNKNOWN_TOPIC_OR_PARTITION) and times > 50
            case ("make",) if log is None:
                self.make()
                self.append(12)
            case ("append", count) if log is not None:
                self.append(count)
            case ("open",) if log is not None:
                log.open()
            case ("end",) if log is not None:
                log.end_transaction()
            case ("compact", index) if log is not None and len(log.batches) > 1:
                base = log.batches[index % (len(log.batches) - 1)].base  # never the last one
                log.compact(base)
                self.removed.add(base)
            case ("trim", offset) if log is not None:
                log.start = max(log.start, min(offset, log.end))
            case ("move", node_id) if log is not None:
                log.move(node_id)
            case ("cut", offset, node_id) if log is not None:
                log.cut(offset, node_id)
            case ("delete",):
                self.brokers.topics.pop("t", None)
        self._note_lost()

    def _note_lost(self) -> None:
        """Offsets of the range that are before the beginning or behind the end of the log, or have other records."""
        topic = self.brokers.topics.get("t")
        if topic is None or topic.id != self.range.topic_id:
            self.lost |= {*range(self.range.start, self.range.end)}
        else:
            (log,) = topic.partitions
            end = log.epoch_end(self.range.leader_epoch)
            self.lost |= {at for at in range(self.range.start, self.range.end) if not log.start <= at < end}
            gone = {at for at, value in self.planned.items() if log.content().get(at) != value}
            assert gone <= self.removed | self.lost

    async def read(self, actions: list[tuple[Any, ...]]) -> dict[int, bytes]:
        """One attempt of the task, and what happens meanwhile. What it hands out is checked at once."""
        found: dict[int, bytes] = {}
        actions = list(actions)
        async with MemoryClient(self.brokers) as cluster:
            reading = _Reading(self.settings, self.range, "test")
            async with aclosing(reading.answers_of(cluster)) as answers:
                if actions:
                    self.step(actions.pop(0))
                async for batches in answers:
                    for record in (each for raw in batches for each in decode_batch(raw)):
                        assert record.offset > max(found, default=-1), f"{record.offset} came after {max(found)}"
                        assert self.planned.get(record.offset) == record.value, f"{record} was not planned"
                        found[record.offset] = record.value or b""
                    if actions:
                        self.step(actions.pop(0))
        return found

    async def attempt(self, actions: list[tuple[Any, ...]]) -> bool:
        """Whether it came to an end, or said what is lost."""
        loss: DataLoss | None = None
        try:
            found = await self.read(actions)
        except DataLoss as told:
            loss = told
        except (ApiError, ClientError):
            return False
        if loss is not None:
            assert self.fails_on_loss, "it was to go on"
            assert self.lost or self.may_skip, f"nothing is lost: {loss}"
            return True
        absent = set(self.planned) - set(found)
        allowed = self.removed if self.fails_on_loss else self.removed | self.lost
        assert absent <= allowed or (self.may_skip and not self.fails_on_loss), f"{absent - allowed} did not come"
        return True


def actions() -> "st.SearchStrategy[Any]":
    faults = st.sampled_from([(api, what) for api, some in FAULTS.items() for what in [HANG_UP, SAY_NOTHING, *some]])
    offsets, nodes = st.integers(0, 18), st.sampled_from(NODES)
    return st.one_of(
        st.builds(lambda fault, times: ("fault", *fault, times), faults, st.sampled_from([1, 2, 3, 1000])),
        st.builds(lambda fault, times: ("fault", *fault, times), faults, st.integers(1, 3)),
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.just(("open",)),
        st.just(("end",)),
        st.tuples(st.just("compact"), offsets),
        st.tuples(st.just("compact"), offsets),
        st.tuples(st.just("trim"), offsets),
        st.tuples(st.just("move"), nodes),
        st.tuples(st.just("cut"), offsets, nodes),
        st.just(("delete",)),
        st.just(("make",)),
    )


def case(*before: tuple[Any, ...], end_before: int = 0, fails_on_loss: bool = True) -> Any:
    return example(
        start=0, end_before=end_before, before=[*before], meanwhile=[], fails_on_loss=fails_on_loss, committed=False
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    start=st.integers(0, 5),
    end_before=st.integers(0, 5),
    before=st.lists(actions(), max_size=12),
    meanwhile=st.lists(actions(), max_size=8),
    fails_on_loss=st.booleans(),
    committed=st.booleans(),
)
# A broker that has just started does not know the topic for a moment: the whole range was taken for lost.
@case(("fault", MetadataRequest, E.UNKNOWN_TOPIC_OR_PARTITION, 3), fails_on_loss=False)
# Brokers do not know the topic's id for a minute, and it is there: that was taken for a loss.
@case(("fault", FetchRequest, E.UNKNOWN_TOPIC_ID, 1000), fails_on_loss=False)
# Markers of a later leader epoch have replaced records: that was taken for a gap.
@case(("cut", 12, 1), ("end",), ("end",), ("end",))
# Compaction removed the end of the range, and a later leader wrote what comes next: that was taken for a loss.
@case(("move", 2), ("append", 1), ("compact", 14), ("compact", 13), end_before=1)
# Records are held back for longer than a task waits: they were taken for a gap.
@case(("fault", FetchRequest, HOLD_BACK, 1000))
def test_what_was_planned_comes_once_or_is_said_to_be_lost(
    start: int,
    end_before: int,
    before: list[tuple[Any, ...]],
    meanwhile: list[tuple[Any, ...]],
    fails_on_loss: bool,
    committed: bool,
) -> None:
    async def test() -> None:
        it = History(start, end_before, fails_on_loss=fails_on_loss, committed=committed)
        if not await it.attempt(before) and not await it.attempt(meanwhile):  # Spark tries a task again
            it.faults.clear()
            assert await it.attempt([])

    run(test, seconds=1_000_000)
