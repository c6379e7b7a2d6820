"""Batches that a worker looks into: in their order, whatever happens meanwhile, and nobody else waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.server.talk import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    TOPIC,
    Pipeline,
    alter,
    create,
    delete,
    eventually,
    fetch_request,
    produce,
    produce_request,
    whole,
)
from tests.support.requests.raw import Closed, RawConnection

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.server.net.inbound import InboundBuffer
from ottla.testing.broker import EmbeddedBroker

MANY = 5_000  # more records than are looked at on the loop


class Gate(ThreadPoolExecutor):
    """A worker that begins nothing before it is opened."""

    def __init__(self) -> None:
        super().__init__(1)
        self.open = threading.Event()
        self.asked = threading.Event()

    def submit(self, work: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        self.asked.set()

        def wait_and_do() -> Any:
            assert self.open.wait(60)
            return work(*args, **more)

        return super().submit(wait_and_do)


@pytest.fixture
def gate(ottla_broker: EmbeddedBroker) -> Iterator[Gate]:
    assert ottla_broker.node is not None
    made = ottla_broker.node.storage.looks._executor = Gate()
    yield made
    made.open.set()
    made.shutdown()


@pytest.fixture
def connection(ottla_broker: EmbeddedBroker) -> Iterator[RawConnection]:
    with RawConnection(ottla_broker.bootstrap) as made:
        create(made, "t", 2, cleanup_policy="compact")
        yield made


def batch(value: bytes, count: int = 1, key: bytes | None = b"k", **fields: Any) -> bytearray:
    return build_batch([(key, value)] * count, timestamp=1, **fields)


def code_and_offset(answer: Any) -> tuple[ErrorCode, int]:
    (found,) = (each for topic in answer.responses for each in topic.partition_responses)
    return ErrorCode(found.error_code), found.base_offset


def values(connection: RawConnection, index: int = 0) -> list[bytes]:
    """The value of each run of equal ones."""
    request = fetch_request({("t", index): 0}, partition_max_bytes=1 << 24)
    answer: Any = connection.call(request, FETCH_VERSION)
    found = [record.value for record in whole(bytes(answer.responses[0].partitions[0].records))]
    return [value for at, value in enumerate(found) if at == 0 or found[at - 1] != value]


def test_what_follows_on_the_connection_waits_and_others_do_not(
    ottla_broker: EmbeddedBroker, connection: RawConnection, gate: Gate
) -> None:
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(produce_request({("t", 0): batch(b"slow", MANY)}), PRODUCE_VERSION)
        pipe.send(produce_request({("t", 0): batch(b"quick")}), PRODUCE_VERSION)
        assert gate.asked.wait(60)
        assert produce(connection, "t", batch(b"another's")) == (0, 0)
        gate.open.set()
        assert code_and_offset(pipe.answer()) == (ErrorCode.NONE, 1)
        assert code_and_offset(pipe.answer()) == (ErrorCode.NONE, MANY + 1)
    assert values(connection) == [b"another's", b"slow", b"quick"]


def test_sequences_stay_in_order(ottla_broker: EmbeddedBroker, connection: RawConnection, gate: Gate) -> None:
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    with Pipeline(ottla_broker.bootstrap) as pipe:
        for sequence, codec in enumerate([Codec.ZSTD, Codec.NONE, Codec.GZIP]):
            sent = batch(b"%d" % sequence, MANY, base_sequence=sequence * MANY, codec=codec, **producer)
            pipe.send(produce_request({("t", 0): sent}), PRODUCE_VERSION)
        pipe.send(produce_request({("t", 0): batch(b"last", base_sequence=3 * MANY, **producer)}), PRODUCE_VERSION)
        gate.open.set()
        assert [code_and_offset(pipe.answer()) for _ in range(4)] == [(ErrorCode.NONE, at * MANY) for at in range(4)]
    assert values(connection) == [b"0", b"1", b"2", b"last"]


def test_the_request_s_other_batches_do_not_wait(
    ottla_broker: EmbeddedBroker, connection: RawConnection, gate: Gate
) -> None:
    with Pipeline(ottla_broker.bootstrap) as pipe:
        request = produce_request({("t", 0): batch(b"slow", MANY), ("t", 1): batch(b"quick")})
        pipe.send(request, PRODUCE_VERSION)
        assert gate.asked.wait(60)
        eventually(lambda: values(connection, 1) == [b"quick"])
        gate.open.set()
        answer = pipe.answer()
        assert [
            (topic.name, each.index, each.error_code, each.base_offset)
            for topic in answer.responses
            for each in topic.partition_responses
        ] == [("t", 0, 0, 0), ("t", 1, 0, 0)]


def test_without_acks_all_is_appended_though_the_client_has_gone(
    ottla_broker: EmbeddedBroker, connection: RawConnection, gate: Gate
) -> None:
    with Pipeline(ottla_broker.bootstrap) as pipe:
        for value, count in ((b"slow", MANY), (b"quick", 1)):
            request = produce_request({("t", 0): batch(value, count)}, acks=0)
            pipe.send(request, PRODUCE_VERSION, answered=False)
    assert gate.asked.wait(60)
    gate.open.set()
    eventually(lambda: values(connection) == [b"slow", b"quick"])


def test_without_acks_a_refusal_closes_the_connection(
    ottla_broker: EmbeddedBroker, connection: RawConnection, gate: Gate
) -> None:
    with Pipeline(ottla_broker.bootstrap) as pipe:
        request = produce_request({("t", 0): batch(b"no key", MANY, key=None)}, acks=0)
        pipe.send(request, PRODUCE_VERSION, answered=False)
        gate.open.set()
        with pytest.raises(Closed):
            pipe.connection.receive()
    assert values(connection) == []


def test_a_topic_that_is_deleted_meanwhile(ottla_broker: EmbeddedBroker, connection: RawConnection, gate: Gate) -> None:
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(produce_request({("t", 0): batch(b"v", MANY)}), PRODUCE_VERSION)
        assert gate.asked.wait(60)
        delete(connection, "t")
        gate.open.set()
        assert code_and_offset(pipe.answer())[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_made_anew_meanwhile(
    ottla_broker: EmbeddedBroker, connection: RawConnection, gate: Gate
) -> None:
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(produce_request({("t", 0): batch(b"v", MANY)}), PRODUCE_VERSION)
        assert gate.asked.wait(60)
        delete(connection, "t")
        create(connection, "t", compression_type="gzip")
        gate.open.set()
        assert code_and_offset(pipe.answer()) == (ErrorCode.NONE, 0)
    assert ottla_broker.node is not None
    header = ottla_broker.node.partitions.find("t", 0).log.active.file.read(0, 61)
    assert header[22] & 7 == Codec.GZIP, "it was looked at again, under the settings of now"


@pytest.mark.parametrize(
    ("policy", "becomes", "said"),
    [("compact", "delete", ErrorCode.NONE), ("delete", "compact", ErrorCode.INVALID_RECORD)],
)
def test_settings_that_change_meanwhile(
    ottla_broker: EmbeddedBroker, connection: RawConnection, gate: Gate, policy: str, becomes: str, said: ErrorCode
) -> None:
    create(connection, "changing", cleanup_policy=policy, message_timestamp_before_max_ms=1 << 60)
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(produce_request({("changing", 0): batch(b"no key", MANY, key=None)}), PRODUCE_VERSION)
        assert gate.asked.wait(60)
        alter(connection, TOPIC, "changing", cleanup_policy=becomes)
        gate.open.set()
        assert code_and_offset(pipe.answer())[0] == said


def test_a_refusal_names_no_more_than_some_records(connection: RawConnection) -> None:
    request = produce_request({("t", 0): batch(b"no key", MANY, key=None)})
    answer: Any = connection.call(request, PRODUCE_VERSION)
    (found,) = answer.responses[0].partition_responses
    assert found.error_code == ErrorCode.INVALID_RECORD and f"due to {MANY} record errors" in found.error_message
    assert [each.batch_index for each in found.record_errors] == list(range(limits.RECORD_FAULTS_TOLD_MAX))


def test_a_stop_appends_nothing_that_was_not_looked_at(ottla_broker: EmbeddedBroker, connection: RawConnection) -> None:
    assert ottla_broker.node is not None
    gate = ottla_broker.node.storage.looks._executor = Gate()
    with Pipeline(ottla_broker.bootstrap) as pipe:
        assert produce(connection, "t", batch(b"before")) == (0, 0)
        pipe.send(produce_request({("t", 0): batch(b"v", MANY)}), PRODUCE_VERSION)
        assert gate.asked.wait(60)
        threading.Timer(0.2, gate.open.set).start()
        ottla_broker.restart()
        with pytest.raises((Closed, OSError)):
            pipe.answer()
    gate.shutdown()
    with RawConnection(ottla_broker.bootstrap) as again:
        assert values(again) == [b"before"]
        assert produce(again, "t", batch(b"after")) == (0, 1)


def test_a_held_request_is_accounted_for_until_it_is_done(
    ottla_broker: EmbeddedBroker, connection: RawConnection, gate: Gate
) -> None:
    """Its memory is not given to others who wait, and comes back when it is done with, its connection gone or not."""
    assert ottla_broker.node is not None
    memory = ottla_broker.node.connections.memory
    large = build_batch([(b"k", bytes(500_000))] * 2, timestamp=1)
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(produce_request({("t", 0): large}), PRODUCE_VERSION)
        assert gate.asked.wait(60)
        assert values(connection, 1) == []  # a round trip later the loop is idle
        held = memory.used_bytes
        assert held >= len(large) - limits.RECEIVE_BUFFER_BYTES
        hungry = InboundBuffer(memory, 1)
        memory.wait(1, hungry, lambda _: None)  # nobody can give anything back
        assert memory.used_bytes == held + 1
        memory.release(1, hungry)
        gate.open.set()
        assert code_and_offset(pipe.answer()) == (ErrorCode.NONE, 0)
    eventually(lambda: memory.used_bytes == 0)
