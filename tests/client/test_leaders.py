"""Leaders that move: hints of brokers (KIP-951), replicas next door (KIP-392), brokers that give no answer."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from tests.client.scripted import TOPIC_ID, ScriptedBroker
from tests.support.waiting import WAIT_S

from ottla import Cluster, Producer, RangeReader, Span
from ottla.client.connection import Address
from ottla.client.consumer.offsets import LATEST, list_offsets
from ottla.client.errors import ConnectionLost, NotConnected, UnsupportedApi
from ottla.client.first_of import first_of
from ottla.client.metadata import Metadata
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.build import build_batch
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

AT = TopicPartition("t", 0)
NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
Answered = ProduceResponse.TopicProduceResponse
Fetched = FetchResponse.FetchableTopicResponse


def metadata_answer(brokers: dict[int, int], leader: int, epoch: int) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponse.Broker(node_id=each, host="127.0.0.1", port=port) for each, port in brokers.items()],
        cluster_id="scripted",
        controller_id=1,
        topics=[
            MetadataResponse.Topic(
                error_code=0,
                name="t",
                topic_id=TOPIC_ID,
                partitions=[
                    MetadataResponse.Topic.Partition(
                        error_code=0,
                        partition_index=0,
                        leader_id=leader,
                        leader_epoch=epoch,
                        replica_nodes=[1, 2],
                        isr_nodes=[1, 2],
                    )
                ],
            )
        ],
    )


class Pair:
    """Two brokers; `leader` is whom their metadata names, in `epoch`."""

    def __init__(self, first: ScriptedBroker, second: ScriptedBroker) -> None:
        self.brokers = {1: first, 2: second}
        self.leader, self.epoch = 1, 0
        for each in self.brokers.values():
            each.answers[MetadataRequest] = self.metadata
            each.answers[InitProducerIdRequest] = lambda request: InitProducerIdResponse(
                error_code=0, producer_id=7, producer_epoch=0
            )

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        return metadata_answer({each: broker.port for each, broker in self.brokers.items()}, self.leader, self.epoch)

    @property
    def options(self) -> ClientOptions:
        # Whoever waits for a back-off waits longer than the test may take.
        return ClientOptions(parse_bootstrap(self.brokers[1].bootstrap), retry_backoff_ms=60_000, rng=random.Random(1))

    def asked(self) -> int:
        return sum(len(each.of(MetadataRequest)) for each in self.brokers.values())


def run(test: Callable[[Pair], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S), AsyncExitStack() as stack:
            first, second = [await stack.enter_async_context(ScriptedBroker()) for _ in range(2)]
            await test(Pair(first, second))

    asyncio.run(main())


def produced(error: int = 0, leader: int = -1, epoch: int = -1, port: int = 0) -> ProduceResponse:
    partition = Answered.PartitionProduceResponse(index=0, error_code=error, base_offset=5 if not error else -1)
    partition.current_leader.leader_id, partition.current_leader.leader_epoch = leader, epoch
    nodes = [ProduceResponse.NodeEndpoint(node_id=leader, host="127.0.0.1", port=port)] if port else []
    return ProduceResponse(
        responses=[Answered(topic_id=TOPIC_ID, partition_responses=[partition])], node_endpoints=nodes
    )


# --- what the cache believes


def test_a_hint_is_taken_if_it_is_news() -> None:
    cache = Metadata()
    cache.update(metadata_answer({1: 9092}, 1, 3), 0.0)
    named = Fetched.PartitionData.LeaderIdAndEpoch(leader_id=2, leader_epoch=4)
    assert not cache.hint(AT, named, []), "nobody knows where broker 2 is"
    there = FetchResponse.NodeEndpoint(node_id=2, host="h", port=1)
    assert not cache.hint(TopicPartition("other", 0), named, [there])
    assert cache.hint(AT, named, [there]) and cache.brokers[2].address == Address("h", 1)
    assert not cache.hint(AT, named, [there]), "no news the second time"
    info = cache.topics["t"].partition(0)
    assert info is not None and (info.leader, info.leader_epoch, info.replicas) == (2, 4, (1, 2))


# --- clients


def test_a_producer_goes_where_it_is_sent() -> None:
    async def test(pair: Pair) -> None:
        first, second = pair.brokers.values()
        first.answers[ProduceRequest] = lambda request: produced(NOT_LEADER, 2, 1, second.port)
        second.answers[ProduceRequest] = lambda request: produced()
        async with Cluster(pair.options) as cluster, Producer(cluster) as producer:
            assert (await producer.send("t", b"v", partition=0)).offset == 5
        assert len(first.of(ProduceRequest)) == len(second.of(ProduceRequest)) == 1
        assert pair.asked() == 1, "nobody had to be asked again"

    run(test)


def test_a_producer_asks_at_once_who_leads_when_a_broker_is_gone() -> None:
    async def test(pair: Pair) -> None:
        first, second = pair.brokers.values()

        async def die(request: ProduceRequest) -> object:
            pair.leader, pair.epoch = 2, 1
            first.drop()
            return None

        first.answers[ProduceRequest] = die
        second.answers[ProduceRequest] = lambda request: produced()
        async with Cluster(pair.options) as cluster, Producer(cluster) as producer:
            assert (await producer.send("t", b"v", partition=0)).offset == 5
        assert len(second.of(ProduceRequest)) == 1

    run(test)


def test_a_producer_gives_up_on_a_broker_that_gives_no_answer() -> None:
    async def test(pair: Pair) -> None:
        first, second = pair.brokers.values()

        async def nothing(request: ProduceRequest) -> None:
            pair.leader, pair.epoch = 2, 1

        first.answers[ProduceRequest] = nothing
        second.answers[ProduceRequest] = lambda request: produced()
        async with Cluster(pair.options) as cluster, Producer(cluster) as producer:
            assert (await producer.send("t", b"v", partition=0)).offset == 5

    run(test)


def fetched(error: int = 0, **more: object) -> FetchResponse:
    partition = Fetched.PartitionData(
        partition_index=0, error_code=error, high_watermark=1, aborted_transactions=None, records=None
    )
    for name, value in more.items():
        setattr(partition, name, value)
    return FetchResponse(error_code=0, responses=[Fetched(topic_id=TOPIC_ID, partitions=[partition])])


def one_record() -> FetchResponse:
    return fetched(records=memoryview(build_batch([(None, b"v")], timestamp=1)))


def test_a_reader_goes_where_it_is_sent() -> None:
    async def test(pair: Pair) -> None:
        first, second = pair.brokers.values()
        named = Fetched.PartitionData.LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
        first.answers[FetchRequest] = lambda request: fetched(NOT_LEADER, current_leader=named)
        second.answers[FetchRequest] = lambda request: one_record()
        async with Cluster(pair.options) as cluster, RangeReader(cluster, [Span("t", 0, 0, 1)]) as reader:
            assert [record.value async for record in reader] == [b"v"]
        assert len(first.of(FetchRequest)) == 1 and pair.asked() == 1

    run(test)


def test_a_reader_reads_next_door_until_that_fails() -> None:
    async def test(pair: Pair) -> None:
        first, second = pair.brokers.values()
        answers = iter([fetched(preferred_read_replica=2), one_record()])
        first.answers[FetchRequest] = lambda request: next(answers)
        second.answers[FetchRequest] = lambda request: fetched(int(ErrorCode.OFFSET_NOT_AVAILABLE))
        async with Cluster(pair.options) as cluster, RangeReader(cluster, [Span("t", 0, 0, 1)]) as reader:
            assert [record.value async for record in reader] == [b"v"]
        assert (len(first.of(FetchRequest)), len(second.of(FetchRequest)), pair.asked()) == (2, 1, 1)

    run(test)


# --- whoever answers first


def test_the_first_that_works() -> None:
    async def fails(error: Exception) -> str:
        raise error

    async def says(text: str) -> str:
        return text

    async def waits() -> str:
        await asyncio.Event().wait()
        raise AssertionError

    async def test() -> None:
        lost, refused = ConnectionLost("lost"), NotConnected("refused")
        assert await first_of([lambda: fails(lost), lambda: says("b"), lambda: says("c")], 60_000) == "b"
        assert await first_of([waits, lambda: says("b")], 1) == "b"
        with pytest.raises(ConnectionLost, match="lost"):
            await first_of([lambda: fails(lost), lambda: fails(refused)], 60_000)
        with pytest.raises(UnsupportedApi):
            await first_of([lambda: fails(UnsupportedApi("x")), lambda: says("b")], 60_000)
        with pytest.raises(ApiError):  # an answer is an answer
            await first_of([lambda: fails(ApiError(ErrorCode.NOT_CONTROLLER)), lambda: says("b")], 60_000)

    asyncio.run(test())


def test_whoever_asks_for_offsets_looks_for_another_leader_when_one_is_gone() -> None:
    """Found by killing a leader under a Spark stream: it asked the dead one for a minute."""

    async def test(pair: Pair) -> None:
        first, second = pair.brokers.values()

        async def die(request: ListOffsetsRequest) -> object:
            pair.leader, pair.epoch = 2, 1
            first.drop()
            return None

        topic = ListOffsetsResponse.TopicResponse
        good = topic.PartitionResponse(partition_index=0, error_code=0, timestamp=-1, offset=42, leader_epoch=1)
        first.answers[ListOffsetsRequest] = die
        second.answers[ListOffsetsRequest] = lambda request: ListOffsetsResponse(
            topics=[topic(name="t", partitions=[good])]
        )
        async with Cluster(replace(pair.options, retry_backoff_ms=10)) as cluster:
            assert (await list_offsets(cluster, {AT: LATEST}))[AT].offset == 42
        assert len(first.of(ListOffsetsRequest)) == 1

    run(test)
