"""What is known of a topic is good for choosing a partition while nobody can say who leads: no call waits for that."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import pytest
from tests.client.partitions import ScriptedPartitions
from tests.client.producer.test_producer import with_producer
from tests.client.scripted import CLOSE, TOPIC_ID, ScriptedBroker, api_versions, metadata
from tests.client.test_leaders import Pair, metadata_answer, produced, run
from tests.support.waiting import WAIT_S, until, until_async

from ottla import Cluster, Producer, ProducerOptions
from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import BufferFull, DeliveryFailed, TopicUnknown
from ottla.client.metadata import Metadata
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse

T = TypeVar("T")
RECORDS = 50


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """The result of a call that waits for nothing, though it may let others have a turn."""
    try:
        while call.send(None) is None:
            pass
    except StopIteration as done:
        return cast("T", done.value)
    call.close()
    raise AssertionError("it waits")


async def until_it_is_noticed(producer: Producer) -> None:
    """Until the sender knows that it cannot deliver."""

    async def has_trouble() -> bool:
        return any(queue.trouble is not None for queue in producer._sender.queues.values())

    await until_async(has_trouble)
    await asyncio.sleep(0.02)  # it goes on looking, and must not forget more


@contextmanager
def away(broker: ScriptedBroker) -> Iterator[None]:
    """It takes no connection."""
    broker.answers[ApiVersionsRequest] = lambda request: CLOSE
    broker.drop()
    yield
    broker.answers[ApiVersionsRequest] = api_versions()


# --- what the cache believes


def failed(code: ErrorCode) -> MetadataResponse:
    answer = metadata_answer({}, -1, -1)
    answer.topics[0].error_code, answer.topics[0].partitions = int(code), []
    return answer


def test_a_topic_is_unknown_fresh_or_stale() -> None:
    cache = Metadata()
    cache.mark_stale("t")
    assert cache.fresh("t") is None and "t" not in cache.topics, "nothing can be stale that was never known"
    cache.update(metadata_answer({1: 1, 2: 2}, 2, 4), 0.0)
    assert cache.fresh("t") is cache.topics["t"]
    cache.mark_stale("t")
    assert cache.fresh("t") is None and cache.topics["t"].partition_count == 1
    cache.update(failed(ErrorCode.LEADER_NOT_AVAILABLE), 0.0)
    assert cache.fresh("t") is None and cache.topics["t"].topic_id == TOPIC_ID, "an error that passes"
    cache.update(metadata_answer({1: 1, 2: 2}, 2, 4), 0.0)
    assert cache.fresh("t") is cache.topics["t"]


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
def test_a_topic_that_is_gone_is_unknown(code: ErrorCode) -> None:
    cache = Metadata()
    for learn in (lambda: cache.update(failed(code), 0.0), lambda: cache.deleted("t")):
        cache.update(metadata_answer({1: 1}, 1, 4), 0.0)
        cache.mark_stale("t")
        learn()
        assert "t" not in cache.topics
        cache.update(metadata_answer({1: 1}, 1, 0), 0.0)
        assert cache.fresh("t") is not None and cache.topics["t"].partitions[0].leader_epoch == 0


def test_what_is_stale_still_beats_what_is_older() -> None:
    cache = Metadata()
    cache.update(metadata_answer({1: 1, 2: 2}, 2, 4), 0.0)
    cache.mark_stale("t")
    cache.update(metadata_answer({1: 1, 2: 2}, 1, 3), 0.0)  # a broker that lags behind
    assert (cache.topics["t"].partitions[0].leader, cache.topics["t"].partitions[0].leader_epoch) == (2, 4)
    cache.update(metadata_answer({1: 1, 2: 2}, 1, 5), 0.0)
    assert cache.topics["t"].partitions[0].leader == 1


# --- the producer


@pytest.mark.parametrize("how", ["enqueue", "post"])
def test_no_call_waits_for_a_broker_that_is_away(how: str) -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"first", partition=0)
        with away(broker):
            at_once(producer.post("t", b"unlucky", partition=0))
            await until_it_is_noticed(producer)
            asked = len(broker.of(MetadataRequest))
            for number in range(RECORDS):
                at_once(getattr(producer, how)("t", b"%d" % number, b"key", partition=(None, 1)[number % 2]))
            assert len(broker.of(MetadataRequest)) == asked
        await producer.flush()
        values = sorted(value or b"" for index in range(3) for value in logs.values(index))
        assert values == sorted([b"first", b"unlucky", *(b"%d" % number for number in range(RECORDS))])

    with_producer(test, partitions=3)


def test_a_full_buffer_is_what_a_call_waits_for() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"first")
        with away(broker):
            at_once(producer.post("t", bytes(400)))
            await until_it_is_noticed(producer)
            at_once(producer.post("t", bytes(400)))
            with pytest.raises(BufferFull, match="within 50 ms"):
                await producer.post("t", bytes(400))
        await producer.flush()
        assert logs.values() == [b"first", bytes(400), bytes(400)]

    with_producer(test, buffer_bytes=1_000, max_block_ms=50)


@pytest.mark.parametrize("partition", [None, 0])
def test_a_topic_that_was_never_known_is_waited_for(partition: int | None) -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        knows, answer = asyncio.Event(), broker.answers[MetadataRequest]

        async def later(request: MetadataRequest) -> MetadataResponse:
            await knows.wait()
            return answer(request)  # type: ignore[no-any-return]

        broker.answers[MetadataRequest] = later
        with pytest.raises(TopicUnknown, match=r"nothing known of .*t.* within 50 ms"):
            await producer.post("t", b"lost", partition=partition)
        waiting = asyncio.create_task(producer.post("t", b"kept", partition=partition))
        await asyncio.sleep(0)
        knows.set()
        await waiting
        await producer.flush()
        assert logs.values() == [b"kept"]

    with_producer(test, max_block_ms=50)


def test_a_partition_that_was_added_is_found_and_one_that_does_not_exist_refused() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        broker.answers[MetadataRequest] = metadata(broker, 1)
        await producer.send("t", b"a", partition=0)
        with pytest.raises(ApiError, match="has 1 partitions, there is no 1"):
            await producer.post("t", b"b", partition=1)
        broker.answers[MetadataRequest] = metadata(broker, 2)
        await producer.send("t", b"c", partition=1)
        assert logs.values(1) == [b"c"]

    with_producer(test, partitions=2)


def test_a_topic_that_is_gone_is_not_waited_for() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"first")
        broker.answers[MetadataRequest] = metadata(broker, topics=())
        logs.script.extend([ErrorCode.UNKNOWN_TOPIC_ID] * 100)
        waiting = await producer.enqueue("t", b"second")
        with pytest.raises(DeliveryFailed, match=r"not acknowledged within 200 ms.*there is no topic 't'"):
            await waiting
        with pytest.raises(ApiError, match="there is no topic 't'"):
            await producer.enqueue("t", b"third")

    with_producer(test, auto_create_topics=False, delivery_timeout_ms=200)


def test_a_topic_that_was_made_anew_is_noticed() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"first")
        answer = metadata(broker, topics=("other", "t"))
        broker.answers[MetadataRequest] = answer
        logs.script.append(ErrorCode.UNKNOWN_TOPIC_ID)
        await producer.send("t", b"second")
        ids = [request.topic_data[0].topic_id for request in broker.of(ProduceRequest)]
        assert ids[0] == ids[1] == TOPIC_ID != ids[2] and len(ids) == 3

    with_producer(test)


def test_partitions_that_are_gone_hold_up_no_other() -> None:
    """The topic was deleted, and made anew with fewer partitions: what the others hold goes on with the new id."""

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        for index in range(4):
            await producer.send("t", b"first", partition=index)
        appends = broker.answers[ProduceRequest]

        def produce(request: ProduceRequest, version: int) -> Any:
            if request.topic_data[0].topic_id == TOPIC_ID:
                logs.script.append(ErrorCode.UNKNOWN_TOPIC_ID)
            return appends(request, version)

        anew = metadata(broker, 2, topics=("other", "t"))
        broker.answers |= {ProduceRequest: produce, MetadataRequest: anew}
        futures = [await producer.enqueue("t", b"second", partition=index) for index in range(4)]
        async with asyncio.timeout(WAIT_S / 2):
            await asyncio.gather(*futures[:2])
            await producer.send("t", b"third", partition=0)
        assert not any(each.done() for each in futures[2:])
        with pytest.raises(ApiError, match="has 2 partitions, there is no 3"):
            await producer.enqueue("t", b"third", partition=3)
        await until_it_is_noticed(producer)
        assert str(producer._sender.queues[TopicPartition("t", 3)].trouble).endswith("there is no 3")
        await producer.close(discard=True)
        assert all(isinstance(each.exception(), DeliveryFailed) for each in futures[2:])

    with_producer(test, partitions=4)


def test_a_partition_without_a_leader_holds_up_no_other() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        whole = broker.answers[MetadataRequest]
        is_headless = True

        def answer(request: MetadataRequest) -> MetadataResponse:
            reply: MetadataResponse = whole(request)
            reply.topics[0].partitions[0].leader_id = -1 if is_headless else 1
            return reply

        broker.answers[MetadataRequest] = answer
        waiting = await producer.enqueue("t", b"v", partition=0)
        async with asyncio.timeout(WAIT_S / 2):
            for _ in range(20):
                await producer.send("t", b"v", partition=1)
        assert not waiting.done()
        is_headless = False
        await waiting

    with_producer(test, partitions=2)


def test_a_leader_that_says_it_is_none_is_not_asked_in_a_loop() -> None:
    """Its metadata names it all the same: the next attempt comes after the back-off (a minute here)."""

    async def test(pair: Pair) -> None:
        first = pair.brokers[1]
        first.answers[ProduceRequest] = lambda request: produced(int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        async with Cluster(pair.options) as cluster:
            producer = Producer(cluster, ProducerOptions(linger_ms=0))
            await producer.post("t", b"v", partition=0)
            await until_it_is_noticed(producer)
            assert (len(first.of(ProduceRequest)), pair.asked()) == (1, 2)
            at_once(producer.post("t", b"w", partition=0))
            await asyncio.sleep(0.05)
            assert (len(first.of(ProduceRequest)), pair.asked()) == (1, 2)
            await producer.close(discard=True)

    run(test)


def test_no_blocking_call_waits_for_metadata(ottla_broker: EmbeddedBroker) -> None:
    """The same of the blocking client and a real broker."""
    with Blocking(ottla_broker.bootstrap, ProducerOptions(max_block_ms=1_000, linger_ms=0)) as client:
        client.admin.topics.create("t", 1, 1)
        client.send("t", b"first")
        gone = ottla_broker.fail(api="Metadata", close=True, times=None)
        ottla_broker.fail(api="Produce", close=True)
        for number in range(RECORDS):
            client.post("t", b"%d" % number)
            if number == 0:
                until(lambda: gone.hits > 0)
        ottla_broker.heal()
        client.flush()
        assert client.admin.topics.bounds("t") == {0: (0, RECORDS + 1)}
