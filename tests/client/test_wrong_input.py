"""What the caller got wrong is said in one clear line, at once: what is needed, and what came instead."""

import asyncio
import logging
from typing import Any

import pytest
from tests.client.partitions import ScriptedPartitions
from tests.client.producer.test_producer import with_producer
from tests.client.scripted import ScriptedBroker
from tests.support.waiting import WAIT_S

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.consumer.ranges import RangeReader
from ottla.client.options import ClientOptions
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.options import ShareOptions
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.records.compress import Codec
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse

NOWHERE = "127.0.0.1:9"  # nobody is asked

PAIRS = r"headers must be pairs of a name and bytes, as in \[\(.*\)\], not "
RECORDS: list[tuple[dict[str, Any], str]] = [
    ({"value": "text"}, "value must be bytes or None, not str: encode it"),
    ({"value": 5}, "value must be bytes or None, not int"),
    ({"key": 3}, "key must be bytes or None, not int"),
    ({"key": "k"}, "key must be bytes or None, not str: encode it"),
    ({"headers": {"a": b"b"}}, PAIRS + r"a dict: pass its items\(\)"),
    ({"headers": {"ab": b"b"}}, PAIRS + r"a dict: pass its items\(\)"),
    ({"headers": [("a", "b")]}, "the value of header 'a' must be bytes or None, not str: encode it"),
    ({"headers": [(b"a", b"b")]}, "the name of a header must be str, not bytes"),
    ({"headers": ["abc"]}, PAIRS + "'abc'"),
    ({"headers": 5}, PAIRS + "int"),
    ({"partition": "0"}, "partition must be a number or None, not str"),
    ({"timestamp": "now"}, "timestamp must be a whole number of milliseconds, not str"),
    ({"timestamp": 1.5}, "timestamp must be a whole number of milliseconds, not float"),
    ({"topic": None}, "topic must be a name, not None"),
    ({"topic": 5}, "topic must be a name, not int"),
    ({"topic": ["t"]}, "topic must be a name, not list"),
]


@pytest.mark.parametrize("how", ["send", "enqueue", "post"])
def test_what_is_no_record(how: str) -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        for is_known in (False, True):
            for wrong, why in RECORDS:
                async with asyncio.timeout(WAIT_S):
                    with pytest.raises(TypeError, match=why) as caught:
                        await getattr(producer, how)(**{"topic": "t", "value": b"v"} | wrong)
                assert caught.value.__suppress_context__
            if not is_known:
                assert "t" not in producer._cluster.metadata.topics, "asking for it could have created it"
                await producer.send("t", b"first")
        await producer.send("t", b"last")
        assert logs.values() == [b"first", b"last"]

    with_producer(test)


def test_a_topic_that_cannot_be_is_refused_by_the_rule() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        for name in ("or ders!", "", ".."):
            with pytest.raises(ApiError, match=r"INVALID_TOPIC_EXCEPTION: Topic name is invalid: "):
                await producer.send(name, b"v")

    with_producer(test)


OPTIONS: list[tuple[Any, dict[str, Any], str]] = [
    (ProducerOptions, {"acks": 1, "idempotent": True}, r"idempotent=True needs acks=-1 \(all\), not 1"),
    (ProducerOptions, {"acks": "1", "idempotent": True}, r"idempotent=True needs acks=-1 \(all\), not 1"),
    (ProducerOptions, {"acks": "most"}, r"acks is 0, 1 or -1 \(all\), not 'most'"),
    (ProducerOptions, {"acks": 2}, r"acks is 0, 1 or -1 \(all\), not 2"),
    (ProducerOptions, {"acks": None}, r"acks is 0, 1 or -1 \(all\), not None"),
    (ProducerOptions, {"acks": True}, r"acks is 0, 1 or -1 \(all\), not True"),
    (ClientOptions, {"bootstrap": (), "client_id": 5}, "client_id must be a str, not int"),
    (ClientOptions, {"bootstrap": (), "request_timeout_ms": "30"}, "request_timeout_ms must be a number, not str"),
    (ClientOptions, {"bootstrap": (), "api_timeout_ms": -1}, "api_timeout_ms has to be at least 0, not -1"),
    (ProducerOptions, {"codec": "brotli"}, "codec is one of none, gzip, snappy, lz4, zstd, not 'brotli'"),
    (ProducerOptions, {"codec": 7}, "codec is one of none, gzip, snappy, lz4, zstd, not 7"),
    (ProducerOptions, {"linger_ms": -5}, "linger_ms has to be at least 0, not -5"),
    (ProducerOptions, {"linger_ms": "5"}, "linger_ms must be a number, not str"),
    (ProducerOptions, {"batch_size_bytes": -1}, "batch_size_bytes has to be at least 0, not -1"),
    (ProducerOptions, {"retries": 1 << 31}, "retries has to be at most 2147483647, not 2147483648"),
    (ProducerOptions, {"buffer_bytes": 0}, "buffer_bytes has to be at least 1, not 0"),
    (ProducerOptions, {"max_in_flight": 0}, "max_in_flight has to be at least 1, not 0"),
    (ProducerOptions, {"transactional_id": 5}, "transactional_id must be a str, not int"),
    (ConsumerOptions, {"auto_commit_interval_ms": -1}, "auto_commit_interval_ms has to be at least 0, not -1"),
    (ConsumerOptions, {"group_id": 5}, "group_id must be a str, not int"),
    (ConsumerOptions, {"assignors": "sticky"}, r"assignors is a tuple of names, as \('sticky',\), not a str"),
    (ConsumerOptions, {"assignors": ["stick"]}, "assignors are some of range, .*, not stick"),
    (ConsumerOptions, {"max_poll_records": 0}, "max_poll_records has to be at least 1, not 0"),
    (ConsumerOptions, {"max_partition_fetch_bytes": 0}, "max_partition_fetch_bytes has to be at least 1, not 0"),
    (ConsumerOptions, {"group_id": "\udcff"}, "^group_id is not text in UTF-8$"),
    (ShareOptions, {"group_id": "\udcff"}, "^group_id is not text in UTF-8$"),
    (ProducerOptions, {"transactional_id": "a\ud800"}, "^transactional_id is not text in UTF-8$"),
    (ShareOptions, {"group_id": 5}, "group_id must be a str, not int"),
    (
        ShareOptions,
        {"group_id": "g", "acknowledge_linger_ms": -1},
        "acknowledge_linger_ms has to be at least 0, not -1",
    ),
]


@pytest.mark.parametrize(("kind", "given", "why"), OPTIONS)
def test_what_are_no_options(kind: Any, given: dict[str, Any], why: str) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        kind(**given)


@pytest.mark.parametrize("codec", Codec)
def test_kafkas_names_of_codecs(codec: Codec) -> None:
    assert ProducerOptions(codec=codec.name.lower()).compression is codec
    assert ProducerOptions(codec=codec).compression is codec


@pytest.mark.parametrize(("acks", "number"), [("all", -1), ("-1", -1), (-1, -1), ("0", 0), (0, 0), ("1", 1), (1, 1)])
def test_kafkas_texts_of_acks(acks: int | str, number: int) -> None:
    options = ProducerOptions(acks=acks)
    assert (options.acknowledgements, options.is_idempotent) == (number, number == -1)

    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"v")
        if number:  # without acknowledgements, nobody knows when the request has come
            assert {each.acks for each in broker.of(ProduceRequest)} == {number}

    with_producer(test, acks=acks)


def test_a_record_is_compressed_by_a_codec_that_was_named() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        await producer.send("t", b"a" * 1000)
        assert logs.values() == [b"a" * 1000]
        assert len(logs.logs[0]) < 500

    with_producer(test, codec="gzip")


def test_idempotence_is_what_acks_allow_unless_told() -> None:
    assert ProducerOptions().is_idempotent
    assert not ProducerOptions(acks=1).is_idempotent
    assert not ProducerOptions(idempotent=False).is_idempotent


MAKERS: list[tuple[Any, tuple[Any, ...], str]] = [
    (Cluster, (None,), "the address of a broker is text, .*, not None"),
    (Cluster, (9092,), "the address of a broker is text, .*, not 9092"),
    (Cluster, ([None],), r"the address of a broker is text, .*, not \[None\]"),
    (Consumer, (NOWHERE, {"group.id": "x"}), r"options must be ConsumerOptions\(\.\.\.\), not dict"),
    (Producer, (NOWHERE, {"acks": "all"}), r"options must be ProducerOptions\(\.\.\.\), not dict"),
    (ShareConsumer, (NOWHERE, "packers"), r"options must be ShareOptions\(\.\.\.\), not str"),
    (RangeReader, (NOWHERE, [], ConsumerOptions()), r"options must be ReadOptions\(\.\.\.\), not ConsumerOptions"),
]


@pytest.mark.parametrize(("kind", "given", "why"), MAKERS)
def test_what_makes_no_client(kind: Any, given: tuple[Any, ...], why: str) -> None:
    async def run() -> None:
        with pytest.raises(TypeError, match=why):
            kind(*given)

    asyncio.run(run())


def test_what_cannot_be_assigned() -> None:
    async def run() -> None:
        async with Consumer(NOWHERE) as consumer:
            for wrong, why in (
                ("orders", "a list of TopicPartition.* is needed, not 'orders'"),
                (TopicPartition("orders", 0), "a list of TopicPartition.* is needed"),
                (["orders"], "a partition is TopicPartition.*, not 'orders'"),
                ([("orders", "0")], "the name of a topic and a number, not 'orders' and '0'"),
                ([("orders", -1)], "the partitions of 'orders' are numbered from 0: there is no -1"),
            ):
                with pytest.raises((TypeError, ValueError), match=why):
                    consumer.assign(wrong)  # type: ignore[arg-type]
            assert consumer.assignment == []

    asyncio.run(run())


def test_a_partition_that_does_not_exist_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """The log used to say so with every look for it."""

    async def run() -> None:
        async with ScriptedBroker() as broker:
            ScriptedPartitions(broker, 1)
            async with Consumer(broker.bootstrap) as consumer:
                consumer.assign([TopicPartition("t", 99), TopicPartition("t", 98)])
                await consumer.poll(timeout_ms=300)
                assert len(consumer.failures()) == 2

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert sorted(each.getMessage() for each in caplog.records if each.name.startswith("ottla")) == [
        f"UNKNOWN_TOPIC_OR_PARTITION: topic 't' has 1 partitions, there is no {index}; it is read when it is there"
        for index in (98, 99)
    ]


def test_settings_of_a_topic_may_be_numbers() -> None:
    asked: list[CreateTopicsRequest] = []

    def create(request: CreateTopicsRequest, version: int) -> CreateTopicsResponse:
        asked.append(request)
        return CreateTopicsResponse(
            topics=[CreateTopicsResponse.CreatableTopicResult(name="t", error_code=0, error_message=None)]
        )

    async def run() -> None:
        async with ScriptedBroker() as broker, Admin(broker.bootstrap) as admin:
            broker.answers[CreateTopicsRequest] = create
            given = {"retention.ms": 3_600_000, "min.cleanable.dirty.ratio": 0.5, "preallocate": True, "a": "b"}
            await admin.topics.create("t", configs=given)
            with pytest.raises(TypeError, match=r"the value of retention\.ms must be text or a number, not list"):
                await admin.topics.create("t", configs={"retention.ms": [1]})  # type: ignore[dict-item]
            with pytest.raises(TypeError, match="topic must be a name, not list; delete_each takes a list of names"):
                await admin.topics.delete(["t"])  # type: ignore[arg-type]

    asyncio.run(run())
    (topic,) = asked[0].topics
    assert [each.value for each in topic.configs] == ["3600000", "0.5", "true", "b"]
