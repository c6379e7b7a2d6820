"""The producer: order, idempotence over failures, retries, back-pressure, batching."""

import asyncio
import dataclasses
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.partitions import APPEND, APPEND_AND_CLOSE, JUST_CLOSE, ScriptedPartitions
from tests.client.scripted import ScriptedBroker, api_versions
from tests.support.waiting import WAIT_S

from ottla.client.cluster import Cluster
from ottla.client.errors import DeliveryFailed
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.compress import Codec
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.metadata import MetadataRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest


def options(broker: ScriptedBroker) -> ClientOptions:
    return ClientOptions(
        parse_bootstrap(broker.bootstrap),
        retry_backoff_ms=1,
        retry_backoff_max_ms=5,
        rng=random.Random(1),
        now_ms=lambda: 1_700_000_000_000,
    )


def with_producer(
    test: Callable[[ScriptedPartitions, Producer, ScriptedBroker], Awaitable[None]],
    partitions: int = 1,
    **producer_options: Any,
) -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            logs = ScriptedPartitions(broker, partitions)
            chosen = ProducerOptions(**{"linger_ms": 0, **producer_options})
            async with Cluster(options(broker)) as cluster, Producer(cluster, chosen) as producer:
                await test(logs, producer, broker)

    asyncio.run(run())


def test_a_record_arrives_as_it_was_sent() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        where = await producer.send("t", b"value", b"key", headers=[("h", b"1"), ("n", None)], timestamp=5)
        assert where == ("t", 0, 0, 5)
        assert await producer.send("t", None) == ("t", 0, 1, 1_700_000_000_000)
        first, second = logs.records()
        assert first == (0, 5, b"key", b"value", (("h", b"1"), ("n", None)))
        assert (second.key, second.value) == (None, None)

    with_producer(test)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("produce_version", [3, 8, 9, 12, 13])
def test_every_codec_and_version(codec: Codec, produce_version: int) -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        broker.answers[ApiVersionsRequest] = api_versions({0: (3, produce_version)})
        await asyncio.gather(*(producer.send("t", b"v%d" % n) for n in range(50)))
        assert logs.values() == [b"v%d" % n for n in range(50)]
        assert {version for version, each in broker.requests if isinstance(each, ProduceRequest)} == {produce_version}

    with_producer(test, codec=codec, linger_ms=1)


def test_records_of_one_moment_share_a_batch() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await asyncio.gather(*(producer.send("t", b"v%d" % n, partition=n % 2) for n in range(100)))
        assert len(broker.of(ProduceRequest)) <= 2
        assert logs.values(1) == [b"v%d" % n for n in range(1, 100, 2)]

    with_producer(test, partitions=2, linger_ms=20)


def test_batches_are_bounded() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await asyncio.gather(*(producer.send("t", bytes(300)) for _ in range(20)))
        sizes = [len(part.records) for each in broker.of(ProduceRequest) for part in each.topic_data[0].partition_data]
        assert len(sizes) >= 7 and max(sizes) <= 1000
        assert len(logs.values()) == 20

    with_producer(test, batch_size_bytes=1000)


def test_keys_go_where_javas_producer_sends_them() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        places = [
            (await producer.send("t", b"", key)).partition for key in (b"21", b"foobar", b"a-little-bit-long-string")
        ]
        assert places == [
            (-973932308 & 0x7FFFFFFF) % 10,
            (-790332482 & 0x7FFFFFFF) % 10,
            (-985981536 & 0x7FFFFFFF) % 10,
        ]

    with_producer(test, partitions=10)


@given(st.lists(st.sampled_from([APPEND, APPEND_AND_CLOSE, JUST_CLOSE, ErrorCode.NOT_LEADER_OR_FOLLOWER]), max_size=8))
@settings(max_examples=25, deadline=None)
def test_failures_neither_lose_nor_double_nor_reorder(script: list[str]) -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        logs.script.extend(script)
        wanted = [b"%d" % n for n in range(12)]
        waiting = []
        for n, value in enumerate(wanted):
            waiting.append(await producer.enqueue("t", value, partition=0))
            if n % 3 == 2:
                await asyncio.sleep(0)
        found = await asyncio.gather(*waiting)
        assert logs.values() == wanted
        assert [each.offset for each in found] == list(range(12))

    with_producer(test)


def test_without_idempotence_a_lost_answer_doubles() -> None:
    """The counter-proof: what the sequence numbers are for."""

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        logs.script.append(APPEND_AND_CLOSE)
        await producer.send("t", b"v")
        assert logs.values() == [b"v", b"v"]
        assert not broker.of(InitProducerIdRequest)

    with_producer(test, idempotent=False)


def test_acks_0_waits_for_nobody() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        arrived = asyncio.Event()
        whole = broker.answers[ProduceRequest]

        def produce(request: ProduceRequest, version: int) -> Any:
            arrived.set()
            return whole(request, version)

        broker.answers[ProduceRequest] = produce
        assert (await producer.send("t", b"v")).offset == -1
        async with asyncio.timeout(WAIT_S):
            await arrived.wait()
        assert logs.values() == [b"v"]

    with_producer(test, acks=0)


def test_a_rejected_batch_leaves_no_hole_in_the_sequence() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"1")
        logs.script.append(ErrorCode.INVALID_RECORD)
        with pytest.raises(ApiError) as caught:
            await producer.send("t", b"2")
        assert caught.value.code == ErrorCode.INVALID_RECORD
        assert (await producer.send("t", b"3")).offset == 1
        assert len(broker.of(InitProducerIdRequest)) == 1

    with_producer(test)


def test_a_batch_too_large_for_the_broker_is_split() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        logs.max_batch_bytes = 500
        wanted = [b"%03d" % n * 50 for n in range(16)]
        found = await asyncio.gather(*(producer.send("t", value, partition=0) for value in wanted))
        assert logs.values() == wanted
        assert [each.offset for each in found] == list(range(16))
        with pytest.raises(ApiError, match="MESSAGE_TOO_LARGE"):
            await producer.send("t", bytes(1000))
        assert (await producer.send("t", b"small")).offset == 16

    with_producer(test)


def test_a_record_above_max_request_bytes_is_refused_at_once() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        with pytest.raises(ApiError, match="larger than max_request_bytes"):
            await producer.send("t", bytes(2000))
        assert not broker.requests

    with_producer(test, max_request_bytes=1000)


def test_a_forgotten_producer_starts_anew() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"1")
        logs.script.append(ErrorCode.UNKNOWN_PRODUCER_ID)
        assert (await producer.send("t", b"2")).offset == 1
        assert len(broker.of(InitProducerIdRequest)) == 2
        assert (await producer.send("t", b"3")).offset == 2

    with_producer(test)


def test_a_lost_sequence_starts_anew() -> None:
    """The broker lost what came before, so this batch cannot be in its log: it may go under another identity."""

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"1")
        logs.script.append(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        assert (await producer.send("t", b"2")).offset == 1
        assert (await producer.send("t", b"3")).offset == 2
        assert logs.values() == [b"1", b"2", b"3"]
        assert len(broker.of(InitProducerIdRequest)) == 2

    with_producer(test)


def test_delivery_timeout() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        logs.script.extend([JUST_CLOSE] * 100_000)
        with pytest.raises(DeliveryFailed, match="not acknowledged within 1000 ms"):
            await producer.send("t", b"lost")
        logs.script.clear()
        assert (await producer.send("t", b"next")).offset == 0
        assert len(broker.of(InitProducerIdRequest)) == 2, "nobody knows whether the first was appended"

    with_producer(test, delivery_timeout_ms=1000)  # long enough for a busy machine to send the record at least once


def test_the_last_error_is_told_when_a_record_is_given_up() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        logs.script.extend([ErrorCode.KAFKA_STORAGE_ERROR] * 10)
        with pytest.raises(DeliveryFailed, match=r"within 1 retries .*the last error: KAFKA_STORAGE_ERROR") as raised:
            await producer.send("t", b"v")
        cause = raised.value.__cause__
        assert isinstance(cause, ApiError) and cause.code == ErrorCode.KAFKA_STORAGE_ERROR

    with_producer(test, retries=1)


def test_unknown_topic() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        with pytest.raises(ApiError, match="there is no topic 'other'"):
            await producer.send("other", b"v")
        with pytest.raises(ApiError, match="has 1 partitions, there is no 5"):
            await producer.send("t", b"v", partition=5)

    with_producer(test, auto_create_topics=False)


def test_the_buffer_is_bounded() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        most = 0
        waiting = []
        for _ in range(50):
            waiting.append(await producer.enqueue("t", bytes(500)))
            most = max(most, producer._sender.buffer.used_bytes)
        await asyncio.gather(*waiting)
        assert most <= 2_000 and len(logs.values()) == 50
        assert producer._sender.buffer.used_bytes == 0

    with_producer(test, buffer_bytes=2_000, linger_ms=0)


def test_close_delivers_and_a_closed_producer_refuses() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        future = await producer.enqueue("t", b"v")
        await producer.close()
        assert future.result().offset == 0
        with pytest.raises(DeliveryFailed, match="closed"):
            await producer.send("t", b"v")

    with_producer(test, linger_ms=60_000)


async def leave_block(broker: ScriptedBroker, error: BaseException, chosen: ProducerOptions) -> None:
    """Post a record and leave the producer's block with an exception."""
    async with Producer(options(broker), chosen) as producer:
        await producer.post("t", b"v")
        raise error


@pytest.mark.parametrize("error", [RuntimeError("mine"), asyncio.CancelledError("mine"), KeyboardInterrupt("mine")])
def test_what_was_posted_is_delivered_whatever_ends_the_block(error: BaseException) -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            logs = ScriptedPartitions(broker)
            with pytest.raises(type(error), match="mine"):
                await leave_block(broker, error, ProducerOptions(linger_ms=60_000))
            assert logs.values() == [b"v"]

    asyncio.run(run())


def test_what_cannot_be_delivered_when_the_block_fails_is_told() -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            logs = ScriptedPartitions(broker)
            logs.script.append(ErrorCode.POLICY_VIOLATION)
            with pytest.raises(ApiError, match="POLICY_VIOLATION") as raised:
                await leave_block(broker, RuntimeError("mine"), ProducerOptions())
            assert isinstance(raised.value.__context__, RuntimeError)

    asyncio.run(run())


def test_an_interrupted_block_waits_a_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INTERRUPTED_DELIVERY_MAX_MS", 50)

    async def run() -> None:
        async with ScriptedBroker() as broker:
            logs = ScriptedPartitions(broker)
            broker.answers[ProduceRequest] = lambda request: None  # silence
            with pytest.raises(asyncio.CancelledError) as raised:
                await leave_block(broker, asyncio.CancelledError(), ProducerOptions())
            assert "not all records were acknowledged within 50 ms" in raised.value.__notes__[0]
            assert not logs.values()

    asyncio.run(run())


def test_a_leader_that_is_missing_is_asked_for_again() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        whole = broker.answers[MetadataRequest]
        asked = 0

        def headless(request: MetadataRequest) -> Any:
            nonlocal asked
            asked += 1
            answer = whole(request)
            if asked < 4:
                for topic in answer.topics:
                    topic.partitions[0].leader_id = -1
            return answer

        broker.answers[MetadataRequest] = headless
        assert (await producer.send("t", b"v", partition=0)).offset == 0

    with_producer(test)


@pytest.mark.parametrize("code", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND])
def test_an_error_after_the_append_does_not_double(code: ErrorCode) -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        whole = broker.answers[ProduceRequest]
        answers = [code, code]

        def late(request: ProduceRequest, version: int) -> Any:
            answer = whole(request, version)
            if answers:
                answer.responses[0].partition_responses[0].error_code = int(answers.pop())
            return answer

        broker.answers[ProduceRequest] = late
        assert (await producer.send("t", b"v")).offset == 0
        assert logs.values() == [b"v"]

    with_producer(test)


def test_flush_waits_for_what_was_sent_before_it() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        async def chatter() -> None:
            while True:
                await producer.enqueue("t", b"more")
                await asyncio.sleep(0)

        first = await producer.enqueue("t", b"first")
        noise = asyncio.create_task(chatter())
        async with asyncio.timeout(WAIT_S):
            await producer.flush()
        assert first.done()
        noise.cancel()

    with_producer(test, linger_ms=1000)


def test_old_metadata_is_refreshed_beside_the_sending() -> None:
    async def run() -> None:
        async with ScriptedBroker() as broker:
            logs = ScriptedPartitions(broker)
            aging = dataclasses.replace(options(broker), metadata_max_age_ms=0)
            async with Producer(aging, ProducerOptions(linger_ms=0)) as producer:
                for n in range(5):
                    await producer.send("t", b"%d" % n)
            assert logs.values() == [b"%d" % n for n in range(5)]
            assert len(broker.of(MetadataRequest)) >= 3, "once to begin with, and again without anybody waiting for it"

    asyncio.run(run())


def test_without_idempotence_batches_are_pipelined_as_well() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        found = await asyncio.gather(*[await producer.enqueue("t", b"%02d" % n) for n in range(40)])
        assert logs.values() == [b"%02d" % n for n in range(40)]
        assert [each.offset for each in found] == list(range(40))
        assert len(broker.of(ProduceRequest)) > 5 and not broker.of(InitProducerIdRequest)

    with_producer(test, acks=1, batch_size_bytes=100)
