"""Nothing moves before it is certain: records that cannot be encoded, and questions that fail on the way, take no other
record with them."""

import asyncio
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.client.partitions import APPEND_AND_CLOSE, JUST_CLOSE, ScriptedPartitions
from tests.client.producer.test_producer import with_producer
from tests.client.scripted import CLOSE, ScriptedBroker
from tests.support.waiting import WAIT_S

from ottla.client.consumer.salted_merge import salt_of
from ottla.client.producer.hot_keys import SaltedKeys
from ottla.client.producer.producer import Producer
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import HEADER_BYTES
from ottla.records.build import EncodedRecords
from ottla.records.compress import Codec
from ottla.wire.messages.topics.metadata import MetadataRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

# What no batch can hold.
BAD: list[dict[str, Any]] = [
    {"value": "text"},
    {"value": b"v", "key": "text", "partition": 0},
    {"value": b"v", "headers": [("h", "text")]},
    {"value": b"v", "headers": [(5, b"x")]},
    {"value": b"v", "timestamp": "now"},
    {"value": b"v", "timestamp": 1 << 70},
]
# What becomes of the next question that somebody has to ask on the way.
PASSING = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_LEADER_OR_FOLLOWER, CLOSE]


async def refused(producer: Producer, how: str, number: int) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)):
        await getattr(producer, how)("t", **BAD[number])


@pytest.mark.parametrize("how", ["post", "enqueue", "send"])
@pytest.mark.parametrize("number", range(len(BAD)))
def test_the_record_after_one_that_cannot_be_encoded_is_delivered(how: str, number: int) -> None:
    """It used to lie in a batch that nobody sent: `flush` and `close` returned without it, and without a word."""

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"first")
        await refused(producer, how, number)
        await producer.post("t", b"good")
        await producer.flush()
        assert logs.values() == [b"first", b"good"]
        assert producer._sender.buffer.used_bytes == 0
        assert {record.timestamp for record in logs.records()} == {1_700_000_000_000}

    with_producer(test)


def test_the_failure_of_a_posted_record_is_told_though_another_was_refused() -> None:
    """The future of the refused one used to stand for the posted one, whose failure nobody heard of."""

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await refused(producer, "enqueue", 0)
        await producer.post("t", b"lost")
        logs.script.append(ErrorCode.INVALID_RECORD)
        with pytest.raises(Exception, match="INVALID_RECORD"):
            await producer.flush()

    with_producer(test)


def test_a_batch_that_cannot_be_compressed_leaves_no_trace() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"first")
        with pytest.raises(TypeError):
            await producer.post_encoded(TopicPartition("t", 0), EncodedRecords("text", 1, 0, 0, 0))  # type: ignore[arg-type]
        await producer.post("t", b"good")
        await producer.flush()
        assert logs.values() == [b"first", b"good"] and producer._sender.buffer.used_bytes == 0

    with_producer(test, codec=Codec.GZIP)


def test_a_hot_key_has_no_number_that_is_missing() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        for number in range(6):
            if number == 3:
                with pytest.raises(TypeError):
                    await producer.post("t", "text", b"hot")  # type: ignore[arg-type]
            await producer.post("t", b"%d" % number, b"hot")
        await producer.flush()
        by_source: dict[int, list[int]] = {}
        for record in (each for index in range(2) for each in logs.records(index)):
            salt = salt_of(record)
            assert salt is not None
            by_source.setdefault(salt.source, []).append(salt.number)
        assert sorted(sorted(numbers) for numbers in by_source.values()) == [[0, 1, 2], [0, 1, 2]]

    with_producer(test, partitions=2, salted_keys=SaltedKeys(hot={b"hot": 2}))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("good"), st.sampled_from(["post", "enqueue"])),
        st.tuples(st.just("bad"), st.integers(0, len(BAD) - 1)),
        st.tuples(
            st.just("produce"), st.sampled_from([ErrorCode.NOT_LEADER_OR_FOLLOWER, APPEND_AND_CLOSE, JUST_CLOSE])
        ),
        st.tuples(st.just("metadata"), st.just(CLOSE)),
        st.tuples(st.just("identity"), st.sampled_from(PASSING)),
        st.tuples(st.just("wait"), st.none()),
    ),
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
@example(steps=[("bad", 0), ("good", "post")])
@example(steps=[("good", "post"), ("wait", None), ("produce", JUST_CLOSE), ("metadata", CLOSE), ("good", "enqueue")])
def test_whatever_fails_on_the_way_nothing_is_lost(steps: list[tuple[str, Any]]) -> None:
    """Each accepted record is in the log once and in order, each refused one is not, and the buffer is empty."""

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        whole = dict(broker.answers)
        troubles: dict[type, list[Any]] = {MetadataRequest: [], InitProducerIdRequest: []}

        def asked(request: Any) -> Any:
            trouble = troubles[type(request)].pop(0) if troubles[type(request)] else None
            if isinstance(trouble, ErrorCode):
                return InitProducerIdResponse(error_code=int(trouble), producer_id=-1, producer_epoch=-1)
            return CLOSE if trouble is CLOSE else whole[type(request)](request)

        for kind in troubles:
            broker.answers[kind] = asked
        wanted: list[bytes] = []
        futures = []
        async with asyncio.timeout(WAIT_S):
            for number, (step, detail) in enumerate(steps):
                if step == "good":
                    wanted.append(b"%d" % number)
                    future = await getattr(producer, detail)("t", wanted[-1], partition=0)
                    futures += [future] if future is not None else []
                elif step == "bad":
                    await refused(producer, "post", detail)
                elif step == "wait":
                    await asyncio.sleep(0.001)
                elif step == "produce":
                    logs.script.append(detail)
                else:
                    troubles[MetadataRequest if step == "metadata" else InitProducerIdRequest].append(detail)
            await producer.flush()
            assert [(await future).offset for future in futures] == [
                wanted.index(b"%d" % number) for number, step in enumerate(steps) if step == ("good", "enqueue")
            ]
        assert logs.values() == wanted
        assert producer._sender.buffer.used_bytes == 0

    with_producer(test, batch_size_bytes=HEADER_BYTES + 100)
