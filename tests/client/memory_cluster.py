"""A cluster in memory, on virtual time: topics, leaders, one group's offsets; every answer may fail as a test wants.

No sockets and no bytes of frames: `MemoryClient` is a `Cluster` whose connections hand requests to `MemoryBrokers`.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

from tests.client.memory_groups import MemoryGroup
from tests.client.memory_log import Partition

from ottla.client.cluster import Cluster
from ottla.client.connection import Address
from ottla.client.errors import ConnectionLost, NotConnected
from ottla.client.options import ClientOptions
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.records.batch import ATTRIBUTES_AT, CRC_AT, headers, pack_crc_into
from ottla.records.compress import Codec
from ottla.records.crc import crc32c
from ottla.sim.world.loop import SimLoop
from ottla.wire.message import Request, Response
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse

NODES = (1, 2)
PORT = 9_000
# What may become of a request: an error code for some of its partitions (or for all of it), or one of these.
HANG_UP, SAY_NOTHING, LEAVE_OUT = "hang up", "say nothing", "leave out"
LOSE_ANSWER = "lose the answer"  # the request has its effect
GARBLE, POISON = "garble", "poison"  # see `damaged`
HOLD_BACK = "hold back"  # no records of the partition, as if the client were throttled
What = ErrorCode | str


@dataclass
class Topic:
    id: bytes
    partitions: list[Partition]


class MemoryBrokers:
    """The brokers. `fault` is asked for every request; `stored` hears of every offset that is committed."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.group: MemoryGroup | None = None  # for members; consumers that have partitions assigned need none
        self.fault: Callable[[Request], tuple[What, Callable[[TopicPartition], bool]] | None] = lambda request: None
        self.stored: Callable[[TopicPartition, int], None] = lambda partition, offset: None
        self._made = 0

    def make(self, name: str, partitions: int) -> None:
        self._made += 1
        logs = [Partition(NODES[index % len(NODES)]) for index in range(partitions)]
        self.topics[name] = Topic(self._made.to_bytes(16, "big"), logs)

    def log(self, partition: TopicPartition) -> Partition:
        return self.topics[partition.topic].partitions[partition.partition]

    def _find(self, name: str, topic_id: bytes, index: int) -> tuple[TopicPartition, Partition | None]:
        if topic_id != NO_ID:
            name = next((each for each, topic in self.topics.items() if topic.id == topic_id), "")
        topic = self.topics.get(name)
        there = topic is not None and index < len(topic.partitions)
        return TopicPartition(name, index), topic.partitions[index] if topic is not None and there else None

    async def answer(self, node_id: int, request: Request[Response], version: int) -> Any:
        await asyncio.sleep(0.001)
        fault = self.fault(request)
        what, concerns = fault if fault is not None else (None, lambda partition: False)
        if what == SAY_NOTHING:
            await asyncio.sleep(3600)
        if what == HANG_UP:
            raise ConnectionLost("the broker hung up")
        handle = {
            MetadataRequest: self._metadata,
            FetchRequest: self._fetch,
            ListOffsetsRequest: self._list_offsets,
            FindCoordinatorRequest: self._find_coordinator,
            OffsetFetchRequest: self._offset_fetch,
            OffsetCommitRequest: self._offset_commit,
            OffsetForLeaderEpochRequest: self._epoch_ends,
        }.get(type(request), self._ask_group)

        def told(partition: TopicPartition) -> What | None:
            return what if what is not None and concerns(partition) else None

        found = handle(node_id, request, told, version)
        answer = await found if asyncio.iscoroutine(found) else found
        if what == LOSE_ANSWER:
            raise ConnectionLost("the broker hung up")
        return answer

    async def _ask_group(self, node_id: int, request: Request[Response], told: Any, version: int) -> Any:
        assert self.group is not None
        what = told(TopicPartition("", 0))
        places = {
            TopicPartition(name, index): (topic.id, index)
            for name, topic in self.topics.items()
            for index in range(len(topic.partitions))
        }
        return await self.group.answer(request, what if isinstance(what, ErrorCode) else ErrorCode.NONE, places)

    def _metadata(self, node_id: int, request: MetadataRequest, told: Any, version: int) -> MetadataResponse:
        kind = MetadataResponse.Topic
        answer = MetadataResponse(
            brokers=[MetadataResponse.Broker(node_id=each, host="memory", port=PORT + each) for each in NODES],
            cluster_id="memory",
            controller_id=1,
            topics=[],
        )
        named = None if request.topics is None else [each.name or "" for each in request.topics]
        for name in list(self.topics) if named is None else named:
            topic, what = self.topics.get(name), told(TopicPartition(name, 0))
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else ErrorCode.NONE
            code = what if isinstance(what, ErrorCode) else code
            logs = [] if topic is None or code else topic.partitions
            parts = [
                kind.Partition(
                    error_code=0,
                    partition_index=index,
                    leader_id=log.leader,
                    leader_epoch=log.epoch,
                    replica_nodes=list(NODES),
                    isr_nodes=list(NODES),
                )
                for index, log in enumerate(logs)
            ]
            topic_id = NO_ID if topic is None else topic.id
            answer.topics.append(kind(error_code=int(code), name=name, topic_id=topic_id, partitions=parts))
        return answer

    async def _fetch(self, node_id: int, request: FetchRequest, told: Any, version: int) -> FetchResponse:
        for wait in (True, False):
            answer = FetchResponse(error_code=0, responses=[])
            hurry = False
            for topic in request.topics:
                parts = [self._read(node_id, request, topic, each, told) for each in topic.partitions]
                parts = [each for each in parts if each is not None]
                hurry = hurry or any(
                    each.error_code or each.records or each.diverging_epoch.end_offset >= 0 for each in parts
                )
                answer.responses.append(
                    FetchResponse.FetchableTopicResponse(topic="", topic_id=topic.topic_id, partitions=parts)
                )
            if hurry or not wait:
                return answer
            await asyncio.sleep(request.max_wait_ms / 1000)
        raise AssertionError

    def _read(self, node_id: int, request: FetchRequest, topic: Any, wanted: Any, told: Any) -> Any:
        kind = FetchResponse.FetchableTopicResponse.PartitionData
        partition, log = self._find(topic.topic, topic.topic_id, wanted.partition)
        what = told(partition)
        if what == LEAVE_OUT:
            return None
        answer = kind(
            partition_index=wanted.partition,
            error_code=0,
            high_watermark=log.end if log is not None else -1,
            aborted_transactions=None,
            records=memoryview(b""),
        )
        committed = request.isolation_level == 1
        if log is None:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_ID
            return answer
        answer.last_stable_offset = log.readable_to(committed=True)
        if isinstance(what, ErrorCode):
            answer.error_code = what
        elif log.leader != node_id:
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif 0 <= wanted.current_leader_epoch < log.epoch:
            answer.error_code = ErrorCode.FENCED_LEADER_EPOCH
        elif wanted.last_fetched_epoch >= 0 and log.epoch_end(wanted.last_fetched_epoch) < wanted.fetch_offset:
            end = log.epoch_end(wanted.last_fetched_epoch)
            answer.diverging_epoch = kind.EpochEndOffset(epoch=wanted.last_fetched_epoch, end_offset=end)
        elif not log.start <= wanted.fetch_offset <= log.end:
            answer.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        elif what != HOLD_BACK:
            records = log.read(wanted.fetch_offset, wanted.partition_max_bytes, committed=committed)
            if what in (GARBLE, POISON) and records:
                records = damaged(records, is_whole=what == POISON)
            answer.records = memoryview(records)
        return answer

    def _list_offsets(self, node_id: int, request: ListOffsetsRequest, told: Any, version: int) -> ListOffsetsResponse:
        kind = ListOffsetsResponse.TopicResponse
        answer = ListOffsetsResponse(topics=[])
        for topic in request.topics:
            parts = []
            for each in topic.partitions:
                partition, log = self._find(topic.name, NO_ID, each.partition_index)
                what, code, offset = told(partition), ErrorCode.NONE, -1
                if log is None:
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif isinstance(what, ErrorCode):
                    code = what
                elif log.leader != node_id:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                elif 0 <= each.current_leader_epoch < log.epoch:
                    code = ErrorCode.FENCED_LEADER_EPOCH
                else:
                    committed = request.isolation_level == 1
                    offset = log.readable_to(committed=committed) if each.timestamp == -1 else log.start
                if what != LEAVE_OUT:
                    index = each.partition_index
                    parts.append(kind.PartitionResponse(partition_index=index, error_code=int(code), offset=offset))
            answer.topics.append(kind(name=topic.name, partitions=parts))
        return answer

    def _epoch_ends(self, node_id: int, request: OffsetForLeaderEpochRequest, told: Any, version: int) -> Any:
        kind = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        answer = OffsetForLeaderEpochResponse(topics=[])
        for topic in request.topics:
            parts = []
            for each in topic.partitions:
                partition, log = self._find(topic.topic, NO_ID, each.partition)
                what, code, end = told(partition), ErrorCode.NONE, -1
                if log is None:
                    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                elif isinstance(what, ErrorCode):
                    code = what
                elif log.leader != node_id:
                    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                elif 0 <= each.current_leader_epoch < log.epoch:
                    code = ErrorCode.FENCED_LEADER_EPOCH
                else:
                    end = log.epoch_end(each.leader_epoch)
                if what != LEAVE_OUT:
                    found = kind.EpochEndOffset(error_code=int(code), partition=each.partition, end_offset=end)
                    parts.append(found)
            answer.topics.append(kind(topic=topic.topic, partitions=parts))
        return answer

    def _find_coordinator(self, node_id: int, request: FindCoordinatorRequest, told: Any, version: int) -> Any:
        what = told(TopicPartition("", 0))
        code = int(what) if isinstance(what, ErrorCode) else 0
        found = FindCoordinatorResponse.Coordinator(
            key=request.coordinator_keys[0],
            node_id=1,
            host="memory",
            port=PORT + 1,
            error_code=code,
            error_message=None,
        )
        return FindCoordinatorResponse(coordinators=[found])

    def _offset_fetch(self, node_id: int, request: OffsetFetchRequest, told: Any, version: int) -> OffsetFetchResponse:
        kind = OffsetFetchResponse.Group.Topics
        topics = []
        asked = request.groups[0].topics
        if asked is None:
            wanted = OffsetFetchRequest.Group.Topics
            asked = [wanted(name=at.topic, partition_indexes=[at.partition]) for at in self.committed]
        for topic in asked:
            parts = []
            by_id = topic.topic_id if version >= 10 else NO_ID
            for index in topic.partition_indexes:
                partition, log = self._find(topic.name, by_id, index)
                what = told(partition)
                code = ErrorCode.UNKNOWN_TOPIC_ID if log is None and by_id != NO_ID else ErrorCode.NONE
                code = what if isinstance(what, ErrorCode) and not code else code
                offset = -1 if code else self.committed.get(partition, -1)
                if what != LEAVE_OUT:
                    parts.append(
                        kind.Partitions(
                            partition_index=index, committed_offset=offset, metadata="", error_code=int(code)
                        )
                    )
            topics.append(kind(name="" if by_id != NO_ID else topic.name, topic_id=by_id, partitions=parts))
        return OffsetFetchResponse(
            groups=[OffsetFetchResponse.Group(group_id=request.groups[0].group_id, topics=topics)]
        )

    def _offset_commit(self, node_id: int, request: OffsetCommitRequest, told: Any, version: int) -> Any:
        kind = OffsetCommitResponse.Topic
        topics = []
        for topic in request.topics:
            parts = []
            by_id = topic.topic_id if version >= 10 else NO_ID
            for each in topic.partitions:
                partition, log = self._find(topic.name, by_id, each.partition_index)
                what = told(partition)
                code = ErrorCode.UNKNOWN_TOPIC_ID if log is None else ErrorCode.NONE
                code = what if isinstance(what, ErrorCode) and not code else code
                if self.group is not None and not code:
                    code = self.group.may_commit(request.member_id, request.generation_id_or_member_epoch)
                if not code:
                    self.stored(partition, each.committed_offset)
                    self.committed[partition] = each.committed_offset
                if what != LEAVE_OUT:
                    parts.append(kind.Partition(partition_index=each.partition_index, error_code=int(code)))
            topics.append(kind(name="" if by_id != NO_ID else topic.name, topic_id=by_id, partitions=parts))
        return OffsetCommitResponse(topics=topics)


def damaged(records: bytes, *, is_whole: bool) -> bytes:
    """The last batch of these is damaged; or whole, and cannot be decoded."""
    found = bytearray(records)
    *_, (at, header) = headers(memoryview(records))
    if is_whole:
        found[at + ATTRIBUTES_AT + 1] |= Codec.GZIP
        pack_crc_into(found, at + CRC_AT, crc32c(memoryview(found)[at + ATTRIBUTES_AT : at + header.size_bytes]))
    else:
        found[-1] ^= 1
    return bytes(found)


class _Connection:
    """What the client uses of a connection."""

    def __init__(self, brokers: MemoryBrokers, address: Address) -> None:
        self.address = address
        self.is_open = True
        self.in_flight = 0
        self._brokers = brokers
        self._waiting: dict[asyncio.Task[Any], None] = {}

    def version_of(self, api: type[Request], *, at_most: int | None = None) -> int:
        return api.versions[1] if at_most is None else min(api.versions[1], at_most)

    async def request(self, message: Request[Response], *, version: int = 99, timeout_ms: int | None = None) -> Any:
        return await (await self.submit(message, version=version, timeout_ms=timeout_ms))

    async def submit(self, message: Request[Response], *, version: int = 99, timeout_ms: int | None = None) -> Any:
        if not self.is_open:
            raise NotConnected("it is closed")
        task = asyncio.create_task(self._ask(message, version, (timeout_ms or 30_000) / 1000))
        self._waiting[task] = None
        task.add_done_callback(self._waiting.pop)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    async def _ask(self, message: Request, version: int, timeout_s: float) -> Any:
        self.in_flight += 1
        try:
            async with asyncio.timeout(timeout_s):
                return await self._brokers.answer(self.address.port - PORT, message, version)
        except TimeoutError:
            self.is_open = False
            raise ConnectionLost("no answer came") from None
        except asyncio.CancelledError:
            if self.is_open:
                raise  # the caller does not wait any more
            raise ConnectionLost("it was closed") from None
        except ConnectionLost:
            self.is_open = False
            raise
        finally:
            self.in_flight -= 1

    def close(self) -> None:
        self.is_open = False
        for task in list(self._waiting):
            task.cancel()


class MemoryClient(Cluster):
    """A client of the brokers in memory."""

    def __init__(self, brokers: MemoryBrokers, **options: Any) -> None:
        address = Address("memory", PORT + 1)
        super().__init__(ClientOptions((address,), rng=random.Random(1), **options))
        self._brokers = brokers

    async def _open(self, key: Any) -> Any:
        try:
            connection = self._connections[key] = cast(Any, _Connection(self._brokers, key[0]))
            self._reached = True
            return connection
        finally:
            del self._opening[key]


def run(test: Callable[[], Awaitable[None]], seconds: float = 3_000) -> None:
    """On virtual time: what waits costs nothing."""
    loop = SimLoop(random.Random(1), time_limit_seconds=seconds)
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(test())  # type: ignore[arg-type]
        assert not loop.errors, loop.errors
    finally:
        asyncio.set_event_loop(None)
        loop.close()
