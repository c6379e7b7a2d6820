"""Whatever happens to the requests beside the records: each partition's records come in order and without a gap, and
the committed position is never behind what was handed out.

Hypothesis drives a consumer of a cluster in memory: polls, iterations and their cancellations, seeks, pauses, commits,
restarts; topics that grow, lose their beginning, move, are deleted and made again; and failures of every request. At
the end all faults are over, and everything has to come. `OTTLA_CONSUMER_EXAMPLES` says how many histories are tried.
"""

import asyncio
import os
from dataclasses import dataclass
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.client.memory_cluster import (
    GARBLE,
    HANG_UP,
    LEAVE_OUT,
    LOSE_ANSWER,
    NODES,
    POISON,
    SAY_NOTHING,
    MemoryBrokers,
    MemoryClient,
    What,
    run,
)
from tests.client.memory_reading import records_of

from ottla import ClientError, ConsumedRecord, Consumer, ConsumerOptions, TopicPartition
from ottla.model.errors import ApiError, ErrorCode
from ottla.wire.message import Request
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

EXAMPLES = int(os.environ.get("OTTLA_CONSUMER_EXAMPLES", "150"))
COUNTS = {"a": 2, "b": 1, "c": 1}
PARTITIONS = [TopicPartition(name, index) for name, count in COUNTS.items() for index in range(count)]
OPTIONS = ConsumerOptions(
    group_id="g",
    auto_offset_reset="earliest",
    fetch_max_wait_ms=100,
    auto_commit_interval_ms=200,
    max_partition_fetch_bytes=300,
    max_poll_records=7,
)
E = ErrorCode
_UNREADABLE = (E.CORRUPT_MESSAGE, E.INVALID_RECORD)
# Any request, or its answer, may be lost; and these are what its answer may say of a partition.
ANY: list[What] = [HANG_UP, SAY_NOTHING, LOSE_ANSWER]
FAULTS: dict[type[Request], list[What]] = {
    MetadataRequest: [E.LEADER_NOT_AVAILABLE, E.UNKNOWN_TOPIC_OR_PARTITION, E.TOPIC_AUTHORIZATION_FAILED],
    FindCoordinatorRequest: [E.COORDINATOR_NOT_AVAILABLE, E.GROUP_AUTHORIZATION_FAILED],
    ListOffsetsRequest: [
        LEAVE_OUT,
        E.NOT_LEADER_OR_FOLLOWER,
        E.OFFSET_NOT_AVAILABLE,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.TOPIC_AUTHORIZATION_FAILED,
        E.UNKNOWN_SERVER_ERROR,
    ],
    OffsetFetchRequest: [LEAVE_OUT, E.UNSTABLE_OFFSET_COMMIT, E.UNKNOWN_TOPIC_ID, E.TOPIC_AUTHORIZATION_FAILED],
    OffsetCommitRequest: [
        LEAVE_OUT,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.ILLEGAL_GENERATION,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.OFFSET_METADATA_TOO_LARGE,
    ],
    FetchRequest: [
        GARBLE,
        POISON,
        LEAVE_OUT,
        E.NOT_LEADER_OR_FOLLOWER,
        E.FENCED_LEADER_EPOCH,
        E.OFFSET_OUT_OF_RANGE,
        E.UNKNOWN_TOPIC_ID,
        E.CORRUPT_MESSAGE,
        E.TOPIC_AUTHORIZATION_FAILED,
        E.UNKNOWN_SERVER_ERROR,
    ],
}


@dataclass
class Fault:
    """The next answers of one API; of one partition, or of all."""

    api: type[Request]
    what: What
    partition: TopicPartition | None
    times: int

    def concerns(self, partition: TopicPartition) -> bool:
        return self.partition in (None, partition)


class History:
    """A consumer, what was handed out of it, and what has to come next."""

    def __init__(self) -> None:
        self.brokers = MemoryBrokers()
        self.brokers.fault, self.brokers.stored = self._fault, self._stored
        self.faults: list[Fault] = []
        self.made = dict.fromkeys(COUNTS, 0)  # how often: a topic that is made again is another one
        self.starts: dict[tuple[TopicPartition, int], int] = {}  # of each of them
        self.handed: dict[tuple[TopicPartition, int], int] = {}  # no commit is beyond
        self.read: dict[TopicPartition, int] = {}  # which one is read
        self.expected: dict[TopicPartition, int] = {}  # what comes next of it
        self.sought: dict[TopicPartition, int] = {}  # offsets of whichever is there then
        self.ever_sought: dict[TopicPartition, int] = {}  # the highest: a commit of it may be under way still
        self.in_hand: dict[TopicPartition, int] = {}  # where it began
        self.commits: list[asyncio.Future[Any]] = []  # nobody waits for them
        for name in COUNTS:
            self.make(name)
            self.append(name, 10)
        self.restart()

    # --- the brokers

    def make(self, name: str) -> None:
        if name not in self.brokers.topics:
            self.made[name] += 1
            self.brokers.make(name, COUNTS[name])

    def delete(self, name: str) -> None:
        self.brokers.topics.pop(name, None)
        for partition in [each for each in self.brokers.committed if each.topic == name]:
            del self.brokers.committed[partition]  # as Kafka does

    def append(self, name: str, count: int) -> None:
        if name in self.brokers.topics:
            for log in self.brokers.topics[name].partitions:
                log.append(count, b"%d" % self.made[name])

    def _fault(self, request: Request) -> Any:
        for fault in self.faults:
            if isinstance(request, fault.api) and fault.times > 0:
                fault.times -= 1
                return fault.what, fault.concerns
        return None

    def _stored(self, partition: TopicPartition, offset: int) -> None:
        handed = self.handed.get((partition, self.made[partition.topic]), 0)
        allowed = max(handed, self.ever_sought.get(partition, 0), self.brokers.log(partition).start)
        assert offset <= allowed, f"{partition}: {offset} was committed, {handed} handed out"

    # --- the consumer

    def restart(self) -> None:
        self.in_hand, self.sought = {}, {}
        for partition in PARTITIONS:
            made = self.read[partition] = self.made[partition.topic]
            self.expected[partition] = self.brokers.committed.get(partition, self.starts.get((partition, made), 0))

    def take(self, record: ConsumedRecord) -> None:
        partition = TopicPartition(record.topic, record.partition)
        made, expected = int(record.key or b""), self.expected[partition]
        assert made >= self.read[partition], f"{partition}: a record of a topic that is gone"
        is_another = made > self.read[partition]
        start = self.starts.get((partition, made), 0)
        allowed = [expected] if not is_another or partition in self.sought else []
        if is_another or expected < start:
            allowed += range(0 if is_another else expected, start + 1)
        assert record.offset in allowed, f"{partition}: {record.offset} came, {allowed} should have"
        assert record.value == b"%d" % record.offset
        if is_another:
            self.in_hand.pop(partition, None)
        self.sought.pop(partition, None)
        self.in_hand.setdefault(partition, record.offset)
        self.read[partition], self.expected[partition] = made, record.offset + 1
        self.handed[partition, made] = max(self.handed.get((partition, made), 0), record.offset + 1)

    def _moved(self, partition: TopicPartition, offset: int) -> None:
        self.in_hand.pop(partition, None)
        self.expected[partition] = self.sought[partition] = offset
        self.ever_sought[partition] = max(self.ever_sought.get(partition, 0), offset)

    async def step(self, consumer: Consumer, action: tuple[Any, ...]) -> None:
        match action:
            case ("poll", count, patience_s):
                task = asyncio.ensure_future(consumer.poll(max_records=count, timeout_ms=500))
                await self._until(task, patience_s)
            case ("iterate", count, patience_s):
                for _ in range(count):
                    await self._until(asyncio.ensure_future(anext(consumer)), patience_s)
            case ("arrow", rows_min, linger_ms, patience_s):
                batches = consumer.arrow(rows_min=rows_min, linger_ms=linger_ms)
                await self._until(asyncio.ensure_future(anext(batches)), patience_s)
                await batches.aclose()
            case ("commit",):
                self.in_hand = {}
                await consumer.each.commit()
            case ("commit meanwhile",):
                self.in_hand = {}
                self.commits.append(asyncio.ensure_future(consumer.each.commit()))
                await asyncio.sleep(0.002)
            case ("not handled",):
                consumer.not_handled()
                self.expected |= self.in_hand
                self.in_hand = {}
            case ("seek", partition, offset):
                consumer.seek(partition, offset)
                self._moved(partition, offset)
            case ("seek to beginning", partition):
                consumer.seek_to_beginning(partition)
                self._moved(partition, 0)
            case ("pause", partition):
                consumer.pause(partition)
            case ("resume", partition):
                consumer.resume(partition)
            case ("sleep", seconds):
                await asyncio.sleep(seconds)
            case ("fault", api, what, partition, times):
                self.faults.append(Fault(api, what, partition, times))
            case ("append", name, count):
                self.append(name, count)
            case ("trim", partition, count):
                if partition.topic in self.brokers.topics:
                    log = self.brokers.log(partition)
                    log.start = min(log.start + count, log.end)
                    self.starts[partition, self.made[partition.topic]] = log.start
            case ("move", partition, node_id):
                if partition.topic in self.brokers.topics:
                    log = self.brokers.log(partition)
                    log.move(node_id)
            case ("delete", name):
                self.delete(name)
            case ("make", name):
                self.make(name)
                self.append(name, 5)

    async def _until(self, task: "asyncio.Future[Any]", patience_s: float) -> None:
        """Give up after a while; what comes all the same was handed out."""
        self.in_hand = {}
        await asyncio.wait([task], timeout=patience_s)
        task.cancel()
        try:
            found = await task
        except (asyncio.CancelledError, ApiError, ClientError):
            return
        for record in records_of(found):
            self.take(record)

    async def read_all(self, consumer: Consumer) -> None:
        """All faults are over: everything has to come."""
        self.faults.clear()
        for name in COUNTS:
            self.make(name)
            self.append(name, 3)
        consumer.resume(*PARTITIONS)
        ends = {each: self.brokers.log(each).end for each in PARTITIONS}
        for _ in range(400):
            await self.step(consumer, ("poll", 50, 60.0))
            for partition, error in consumer.failures().items():
                if isinstance(error, ApiError) and error.code in _UNREADABLE:  # it stays in the way
                    consumer.seek_to_beginning(partition)
                    self._moved(partition, 0)
            is_read = all(consumer.position(each) == end for each, end in ends.items())
            if is_read and not (await consumer.each.commit()).failed:
                break
        assert {each: consumer.position(each) for each in PARTITIONS} == ends, consumer.failures()
        assert self.expected == ends == self.brokers.committed


def actions() -> "st.SearchStrategy[Any]":
    partitions, names = st.sampled_from(PARTITIONS), st.sampled_from([*COUNTS])
    patience = st.sampled_from([0.0, 0.001, 0.002, 0.01, 1.0, 60.0])
    faults = st.sampled_from([(api, what) for api, some in FAULTS.items() for what in [*ANY, *some]])
    return st.one_of(
        st.tuples(st.just("poll"), st.integers(1, 30), patience),
        st.tuples(st.just("poll"), st.integers(1, 30), st.just(60.0)),
        st.tuples(st.just("iterate"), st.integers(1, 5), patience),
        st.tuples(st.just("arrow"), st.sampled_from([1, 10, 100]), st.sampled_from([0, 20, 500]), patience),
        st.tuples(st.just("commit")),
        st.tuples(st.just("commit meanwhile")),
        st.tuples(st.just("not handled")),
        st.tuples(st.just("seek"), partitions, st.integers(0, 3)),
        st.tuples(st.just("seek to beginning"), partitions),
        st.tuples(st.just("pause"), partitions),
        st.tuples(st.just("resume"), partitions),
        st.tuples(st.just("sleep"), st.sampled_from([0.01, 0.3, 40.0])),
        st.builds(
            lambda fault, partition, times: ("fault", *fault, partition, times),
            faults,
            st.none() | partitions,
            st.integers(1, 4),
        ),
        st.builds(
            lambda fault, partition, times: ("fault", *fault, partition, times),
            faults,
            partitions,
            st.integers(1, 4),
        ),
        st.tuples(st.just("append"), names, st.integers(1, 5)),
        st.tuples(st.just("trim"), partitions, st.integers(1, 8)),
        st.tuples(st.just("move"), partitions, st.sampled_from(NODES)),
        st.tuples(st.just("delete"), names),
        st.tuples(st.just("make"), names),
        st.just(("restart",)),
    )


# Everything is read; then a position is gone in one partition, and there is more in others.
READ = [
    *[("poll", 30, 60.0)] * 3,
    ("sleep", 0.3),
    ("seek", PARTITIONS[2], 1),
    ("trim", PARTITIONS[2], 5),
    ("append", "a", 5),
]


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(actions(), max_size=25))
# One answer has records of some partitions, and of another that its position is gone; looking for what is there instead
# fails. The records before it in the answer were passed over.
@example([*READ, ("fault", ListOffsetsRequest, LEAVE_OUT, PARTITIONS[2], 9), *[("poll", 30, 60.0)] * 3])
@example(
    [*READ, ("fault", ListOffsetsRequest, E.TOPIC_AUTHORIZATION_FAILED, PARTITIONS[2], 9), *[("poll", 30, 60.0)] * 3]
)
@example([*READ, ("delete", "b"), *[("poll", 30, 60.0)] * 3])
def test_in_order_without_a_gap_and_committed_is_what_was_handed_out(history: list[tuple[Any, ...]]) -> None:
    async def test() -> None:
        it = History()
        async with MemoryClient(it.brokers) as cluster:
            consumer = Consumer(cluster, OPTIONS)
            try:
                consumer.assign(PARTITIONS)
                for action in history:
                    if action == ("restart",):
                        await consumer.close()
                        consumer = Consumer(cluster, OPTIONS)
                        consumer.assign(PARTITIONS)
                        it.restart()
                    else:
                        await it.step(consumer, action)
                await it.read_all(consumer)
            finally:
                await consumer.close()
                await asyncio.gather(*it.commits)

    run(test, seconds=100_000)
