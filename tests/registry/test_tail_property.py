"""Whatever happens to the registry's topic and to requests while it is read: the state is that of one whole log, each
record applied once and in order, and in the end it is everything that can be read.

Hypothesis drives a `Tail` on a cluster in memory: the log grows, moves, loses its beginning or its end, is deleted and
made again, transactions are open, and requests of every kind fail. `OTTLA_TAIL_EXAMPLES` says how many histories are
tried.
"""

import asyncio
import os
from typing import Any

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

from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.errors import ClientError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.registry.tail import Tail
from ottla.wire.message import Request
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

EXAMPLES = int(os.environ.get("OTTLA_TAIL_EXAMPLES", "150"))
PARTITION = TopicPartition("_schemas", 0)
E = ErrorCode
FAULTS: dict[type[Request], list[What]] = {
    MetadataRequest: [E.LEADER_NOT_AVAILABLE, E.UNKNOWN_TOPIC_OR_PARTITION, E.TOPIC_AUTHORIZATION_FAILED],
    ListOffsetsRequest: [
        LEAVE_OUT,
        E.NOT_LEADER_OR_FOLLOWER,
        E.OFFSET_NOT_AVAILABLE,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_SERVER_ERROR,
    ],
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
State = dict[int, bytes | None]


class History:
    """A topic, all logs that it ever was, and the tail that reads it."""

    def __init__(self) -> None:
        self.brokers = MemoryBrokers()
        self.brokers.fault = self._fault
        self.faults: list[list[Any]] = []
        self.written = 0
        self.logs: list[State] = [{}]  # what each log held, or holds: a log that loses its end is another one
        self.defects = 0  # so many records cannot be applied
        self.make()
        self.append(6)

    def make(self) -> None:
        self.brokers.make(PARTITION.topic, 1)
        self.logs.append({})

    def append(self, count: int) -> None:
        log = self.brokers.log(PARTITION)
        for _ in range(count):
            self.written += 1
            value = b"record %d" % self.written
            self.logs[-1][log.end] = value
            log.append(1, value=value)

    def _fault(self, request: Request) -> Any:
        for fault in self.faults:
            api, what, times = fault
            if isinstance(request, api) and times > 0:
                fault[2] -= 1
                return what, lambda partition: True
        return None

    def apply(self, state: State, record: ConsumedRecord) -> None:
        if self.defects:
            self.defects -= 1
            raise ZeroDivisionError("a defect")
        assert record.offset > max(state, default=-1), f"{record.offset} came after {max(state)}"
        state[record.offset] = record.value
        self.check(state)

    def check(self, state: State) -> None:
        """The state is a part of one log, without a gap."""
        for held in self.logs:
            if all(held.get(at) == value for at, value in state.items()):
                inside = [at for at in held if state and min(state) <= at <= max(state)]
                assert inside == list(state), f"of {inside} only {list(state)} were applied"
                return
        raise AssertionError(f"{state} was never in one log")

    async def step(self, tail: Tail[State], action: tuple[Any, ...]) -> None:
        topic = self.brokers.topics.get(PARTITION.topic)
        log = None if topic is None else topic.partitions[0]
        match action:
            case ("fault", api, what, times):
                self.faults.append([api, what, times])
            case ("defect", times):
                self.defects = times
            case ("sleep", seconds):
                await asyncio.sleep(seconds)
            case ("read", patience_s):
                await self.read(tail, patience_s)
            case ("make",) if log is None:
                self.make()
                self.append(3)
            case ("append", count) if log is not None:
                self.append(count)
            case ("open",) if log is not None:
                log.open()
            case ("end",) if log is not None:
                log.end_transaction()
            case ("trim", offset) if log is not None:
                log.start = max(log.start, min(offset, log.end))
            case ("move", node_id) if log is not None:
                log.move(node_id)
            case ("cut", offset, node_id) if log is not None:
                log.cut(max(offset, log.start), node_id)
                self.logs.append({at: value for at, value in self.logs[-1].items() if at < log.end})
            case ("delete",):
                self.brokers.topics.pop(PARTITION.topic, None)
        if tail.state is not None:
            self.check(tail.state)

    async def read(self, tail: Tail[State], patience_s: float) -> bool:
        """Whether the end was reached; then everything before it is known."""
        try:
            async with asyncio.timeout(patience_s):
                await tail.read_to_end(committed=True)
        except (ApiError, ClientError, TimeoutError):
            return False
        log = self.brokers.log(PARTITION)
        readable = {at: each for at, each in log.content().items() if at < log.readable_to(committed=True)}
        assert tail.state is not None
        known = {at: each for at, each in tail.state.items() if at >= log.start}
        assert known == readable and tail.position >= log.readable_to(committed=True)
        return True


def actions() -> "st.SearchStrategy[Any]":
    faults = st.sampled_from([(api, what) for api, some in FAULTS.items() for what in [HANG_UP, SAY_NOTHING, *some]])
    offsets, nodes = st.integers(0, 12), st.sampled_from(NODES)
    return st.one_of(
        st.builds(lambda fault, times: ("fault", *fault, times), faults, st.integers(1, 4)),
        st.builds(lambda fault, times: ("fault", *fault, times), faults, st.integers(1, 4)),
        st.tuples(st.just("defect"), st.integers(1, 3)),
        st.tuples(st.just("sleep"), st.sampled_from([0.001, 0.003, 0.1, 6.0, 100.0])),
        st.tuples(st.just("read"), st.sampled_from([0.01, 1.0, 100.0])),
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.just(("open",)),
        st.just(("end",)),
        st.tuples(st.just("trim"), offsets),
        st.tuples(st.just("move"), nodes),
        st.tuples(st.just("cut"), offsets, nodes),
        st.just(("delete",)),
        st.just(("make",)),
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(actions(), max_size=25))
@example([("read", 100.0), ("trim", 4), ("defect", 1), ("append", 2), ("read", 100.0)])
# The log loses its end and grows again, to the same offset: what was lost was taken for read.
@example([("sleep", 0.1), ("cut", 5, 1), ("end",)])
# The same with another topic of the same name.
@example([("sleep", 0.1), ("delete",), ("make",), ("append", 3), ("read", 100.0)])
# The log loses its end while it is read for the first time: that end was waited for.
@example([("fault", FetchRequest, HANG_UP, 1), ("read", 0.01), ("cut", 0, 1)])
def test_the_state_is_one_whole_log_and_in_the_end_all_that_can_be_read(history: list[tuple[Any, ...]]) -> None:
    async def test() -> None:
        it = History()
        async with MemoryClient(it.brokers) as cluster:
            tail: Tail[State] = Tail(cluster, PARTITION.topic, dict, it.apply)
            tail.start()
            try:
                for action in history:
                    await it.step(tail, action)
                it.faults.clear()
                it.defects = 0
                await it.step(tail, ("make",))
                if not await it.read(tail, 10_000.0):  # a record could not be applied twice: that takes a while
                    await asyncio.sleep(limits.REGISTRY_UNREADABLE_RETRY_MS / 1000 + 1)
                    assert await it.read(tail, 10_000.0), tail.trouble
            finally:
                await tail.stop()

    run(test, seconds=1_000_000)
