"""Five batches in flight per partition: whatever fails in between, nothing is lost, doubled or reordered."""

import asyncio
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.client.partitions import APPEND, APPEND_AND_CLOSE, JUST_CLOSE, ScriptedPartitions
from tests.client.producer.test_producer import with_producer
from tests.client.scripted import ScriptedBroker
from tests.support.waiting import WAIT_S

from ottla.client.errors import BufferFull, DeliveryFailed
from ottla.client.producer.buffer import Buffer
from ottla.client.producer.producer import Producer
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import read_header
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest

RECORDS = 60
ACTS = [
    APPEND,
    APPEND,
    APPEND_AND_CLOSE,
    JUST_CLOSE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
]
# A broker that forgot the producer, or refuses for good. (Gaps in the sequence it finds by itself.)
REFUSALS = [ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_PRODUCER_ID]


def watch(producer: Producer, broker: ScriptedBroker) -> list[int]:
    """How many batches of the first partition were under way whenever a request was answered."""
    seen: list[int] = []
    whole = broker.answers[ProduceRequest]

    async def produce(request: ProduceRequest, version: int) -> Any:
        await asyncio.sleep(0)  # let the client write whatever it may
        seen.append(max(len(queue.in_flight) for queue in producer._sender.queues.values()))
        return whole(request, version)

    broker.answers[ProduceRequest] = produce
    return seen


async def send_all(producer: Producer, values: list[bytes]) -> list[asyncio.Future[Any]]:
    return [await producer.enqueue("t", value, partition=0) for value in values]


def test_several_batches_are_under_way() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        seen = watch(producer, broker)
        wanted = [b"%03d" % n for n in range(RECORDS)]
        await asyncio.gather(*await send_all(producer, wanted))
        assert logs.values() == wanted
        assert max(seen) == 5
        assert seen[0] == 1, "a broker that does not know the producer would take any batch for the first"

    with_producer(test, batch_size_bytes=100)


def test_max_in_flight_bounds_them() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        seen = watch(producer, broker)
        await asyncio.gather(*await send_all(producer, [b"v"] * RECORDS))
        assert max(seen) == 2 and len(logs.values()) == RECORDS

    with_producer(test, batch_size_bytes=100, max_in_flight=2)


@given(st.lists(st.sampled_from(ACTS), max_size=16))
@settings(max_examples=30, deadline=None)
def test_failures_neither_lose_nor_double_nor_reorder(script: list[Any]) -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        watch(producer, broker)
        logs.script.extend(script)
        wanted = [b"%03d" % n for n in range(RECORDS)]
        found = await asyncio.gather(*await send_all(producer, wanted))
        assert logs.values() == wanted
        assert [each.offset for each in found] == list(range(RECORDS))

    with_producer(test, batch_size_bytes=100)


@given(
    st.lists(st.sampled_from([*ACTS, *REFUSALS]), max_size=12),
    st.sampled_from([1_000, 150]),
)
@example([APPEND, APPEND, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER], 150)
@settings(max_examples=30, deadline=None)
def test_what_is_refused_leaves_the_rest_in_order(script: list[Any], max_batch_bytes: int) -> None:
    """Some batches are refused for good or split, in the middle of others: what is acknowledged is there, once."""

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        watch(producer, broker)
        logs.script.extend(script)
        logs.max_batch_bytes = max_batch_bytes
        wanted = [b"%03d" % n for n in range(RECORDS)]
        ended = await asyncio.gather(*await send_all(producer, wanted), return_exceptions=True)
        acknowledged = [value for value, end in zip(wanted, ended, strict=True) if not isinstance(end, BaseException)]
        found = [value or b"" for value in logs.values()]
        assert found == sorted(set(found)), "in order, none twice"
        assert set(acknowledged) <= set(found)
        if not any(code in script for code in (APPEND_AND_CLOSE, JUST_CLOSE)):
            assert acknowledged == found, "what was refused for certain is not there"
        logs.script.clear()
        assert (await producer.send("t", b"last", partition=0)).offset == len(found)

    with_producer(test, batch_size_bytes=200)


def test_a_batch_given_up_in_doubt_does_not_block_those_behind_it() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"first")
        logs.script.extend([JUST_CLOSE, JUST_CLOSE])
        ended = await asyncio.gather(
            *await send_all(producer, [b"%03d" % n for n in range(20)]), return_exceptions=True
        )
        failed = [end for end in ended if isinstance(end, DeliveryFailed)]
        assert failed and "within 0 retries" in str(failed[0])
        after = await producer.send("t", b"after", partition=0)
        assert after.offset == len(logs.values()) - 1
        assert len(broker.of(InitProducerIdRequest)) > 1

    with_producer(test, batch_size_bytes=100, retries=0)


def test_every_identity_begins_with_number_0() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"0")
        logs.script.append(ErrorCode.UNKNOWN_PRODUCER_ID)
        await asyncio.gather(*await send_all(producer, [b"v"] * RECORDS))
        first: dict[int, int] = {}
        for request in broker.of(ProduceRequest):
            header = read_header(request.topic_data[0].partition_data[0].records)
            first.setdefault(header.producer_id, header.base_sequence)
        assert len(first) == 2 and set(first.values()) == {0}

    with_producer(test, batch_size_bytes=100)


def test_a_posted_record_that_fails_is_reported_once() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        logs.script.append(ErrorCode.INVALID_RECORD)
        await producer.post("t", b"bad")
        with pytest.raises(ApiError, match="INVALID_RECORD"):
            await producer.flush()
        await producer.post("t", b"good", headers=[("h", b"1")])
        await producer.flush()
        assert [(each.value, each.headers) for each in logs.records()] == [(b"good", (("h", b"1"),))]

    with_producer(test)


def test_no_room_for_too_long() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        for _ in range(2):
            await producer.post("t", bytes(400))
        with pytest.raises(BufferFull, match="within 20 ms"):
            await producer.post("t", bytes(400))
        assert producer._sender.buffer.used_bytes <= 1_000
        await producer.flush()
        await producer.post("t", b"there is room again")

    with_producer(test, buffer_bytes=1_000, linger_ms=60_000, max_block_ms=20)


@pytest.mark.parametrize("how", ["send", "enqueue", "post"])
def test_order_of_many_tasks_that_wait_for_room(how: str) -> None:
    """Nobody who finds room overtakes those who wait for it, or for what is known of the topic."""

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        wanted = [b"%03d" % number + bytes(number * 7 % 50) for number in range(600)]
        tasks = []
        for number, value in enumerate(wanted):
            tasks.append(asyncio.create_task(getattr(producer, how)("t", value, partition=0)))
            if number % 10 == 0:
                await asyncio.sleep(0)
            if number % 97 == 0:
                producer._cluster.metadata.deleted("t")
        await asyncio.gather(*tasks)
        await producer.flush()
        assert logs.values() == wanted
        assert not producer._topic_queues

    with_producer(test, batch_size_bytes=300, buffer_bytes=1_000)


def test_those_who_wait_in_line_wait_no_longer_than_they_said() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.post("t", bytes(800))
        waiting = [asyncio.create_task(producer.post("t", bytes(400))) for _ in range(50)]
        cancelled = asyncio.create_task(producer.post("t", bytes(400)))
        await asyncio.sleep(0)
        cancelled.cancel()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(outcome, BufferFull) for outcome in outcomes)
        assert not producer._topic_queues
        await producer.flush()
        await producer.post("t", b"there is room again")

    with_producer(test, buffer_bytes=1_000, linger_ms=60_000, max_block_ms=50)


@pytest.mark.parametrize("is_told", [False, True])
def test_who_gives_up_leaves_the_room_to_the_next(is_told: bool) -> None:
    """A caller that is cancelled, before or just after it was let in, keeps nobody behind it from the room."""

    async def run() -> None:
        buffer = Buffer(100)
        buffer.used_bytes = 100
        first = asyncio.create_task(buffer.wait_for_room(95))
        await asyncio.sleep(0)
        second = asyncio.create_task(buffer.wait_for_room(10))
        await asyncio.sleep(0)
        if is_told:
            buffer.free(100)
        first.cancel()
        await asyncio.sleep(0)
        if not is_told:
            buffer.free(50)
        await asyncio.wait_for(second, WAIT_S)

    asyncio.run(run())


def test_a_partitioner_of_ones_own() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        assert (await producer.send("t", b"7", b"any")).partition == 1
        assert (await producer.send("t", b"7", partition=0)).partition == 0
        with pytest.raises(ValueError, match="chose 9 of 2 partitions"):
            await producer.send("t", b"9")

    with_producer(
        test, partitions=2, partitioner=lambda topic, key, value, count: 9 if value == b"9" else int(value) % count
    )
