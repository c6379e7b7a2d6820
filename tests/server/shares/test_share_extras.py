"""What Kafka's share groups do not have, on a live node: key order, pauses, dead letters, delayed delivery."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from crc32c import crc32c
from tests.server.share_talk import ACCEPT, REJECT, RELEASE, SMALL, Member, Queue
from tests.server.talk import alter, create, eventually, fetch_request, produce
from tests.support.requests.raw import RawConnection

from ottla.log.files.disk import FileSlice
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.records.batch import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, headers, pack_crc_into, read_header
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import NO_OFFSET, Record, records
from ottla.server.shares.record_acquisition import _notices, _Place
from ottla.testing.broker import EmbeddedBroker


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("shares"), SMALL) as broker:
        yield broker


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as connection:
        yield connection


def keyed(*keys: str) -> list[Record]:
    return [Record(NO_OFFSET, 1_000, key.encode() if key else None, key.encode()) for key in keys]


def offsets(member: Member, **options: object) -> list[int]:
    return [record.offset for record, _ in member.records(**options)]


def read(connection: RawConnection, topic: str) -> list[Record]:
    """All records of partition 0; none if there is no such topic."""
    answer = connection.call(fetch_request({(topic, 0): 0}), 12)
    (data,) = answer.responses[0].partitions  # type: ignore[attr-defined]
    if data.error_code:
        return []
    view = memoryview(data.records)
    return [record for position, _ in headers(view) for record in records(view, position)]


# --- key order


def test_of_each_key_only_the_first_is_out(broker: EmbeddedBroker, connection: RawConnection) -> None:
    with Queue(broker, connection, ottla_share_key_ordered="true") as queue:
        queue.put(*keyed("a", "a", "b", "", "a", "b", ""))
        one, two = queue.join("one"), queue.join("two")
        assert offsets(one) == [0, 2, 3, 6]
        assert offsets(two) == []
        assert one.acknowledge((0, 0, [ACCEPT])) == 0
        assert offsets(two) == [1]
        assert one.acknowledge((2, 2, [RELEASE])) == 0
        assert offsets(two) == [2], "a released record keeps its place before the others of its key"
        assert two.acknowledge((1, 2, [ACCEPT])) == 0
        assert sorted(offsets(one)) == [4, 5]


def test_key_order_survives_a_restart(broker: EmbeddedBroker) -> None:
    with (
        RawConnection(broker.bootstrap) as connection,
        Queue(broker, connection, ottla_share_key_ordered="true") as queue,
    ):
        queue.put(*keyed("a", "b", "a", "b", "a"))
        member = queue.join()
        assert offsets(member) == [0, 1]
        assert member.acknowledge((1, 1, [ACCEPT])) == 0
        broker.restart()
        again = queue.join("again")
        assert eventually(lambda: offsets(again)) == [0, 3]


def test_key_order_looks_no_further_than_the_limit_and_goes_on(
    broker: EmbeddedBroker, connection: RawConnection
) -> None:
    with Queue(broker, connection, ottla_share_key_ordered="true", share_partition_max_record_locks=100) as queue:
        queue.put(*keyed(*["hot"] * 150))
        queue.put(*keyed("cold"))
        member = queue.join()
        for expected in range(3):
            assert offsets(member) == [expected], "the cold one is too far away"
            assert member.acknowledge((expected, expected, [ACCEPT])) == 0


def test_a_garbled_batch_does_not_stop_an_ordered_group(broker: EmbeddedBroker, connection: RawConnection) -> None:
    with Queue(broker, connection, ottla_share_key_ordered="true", ottla_share_dlq_topic="garbled-graves") as queue:
        garbled = build_batch([(b"k", b"v")] * 3)
        garbled[HEADER_BYTES:] = b"\xff" * (len(garbled) - HEADER_BYTES)
        pack_crc_into(garbled, CRC_AT, crc32c(memoryview(garbled)[ATTRIBUTES_AT:]))
        assert produce(connection, queue.topic, garbled)[0] == 0
        queue.put(*keyed("a"))
        member = queue.join()
        assert member.poll() == [(0, 3, 1)]
        assert member.acknowledge((0, 2, [REJECT]), (3, 3, [ACCEPT])) == 0
        assert member.poll() == []


# --- pauses


def test_a_released_record_comes_back_after_a_growing_pause(broker: EmbeddedBroker, connection: RawConnection) -> None:
    settings = {"ottla_share_retry_backoff_ms": 100_000, "ottla_share_retry_backoff_max_ms": 300_000}
    with Queue(broker, connection, **settings) as queue:
        queue.put(b"flaky", b"fine")
        member = queue.join()
        assert member.poll() == [(0, 1, 1)]
        assert member.acknowledge((1, 1, [ACCEPT])) == 0
        for delivery, pause_s in ((2, 100), (3, 200), (4, 300), (5, 300)):
            assert member.acknowledge((0, 0, [RELEASE])) == 0
            assert member.poll() == []
            broker.clock.advance(f"{pause_s - 50}s")
            assert member.poll() == []
            broker.clock.advance("50s")
            assert eventually(member.poll) == [(0, 0, delivery)]
        assert member.acknowledge((0, 0, [ACCEPT])) == 0


def test_who_waits_is_told_when_the_pause_is_over(broker: EmbeddedBroker, connection: RawConnection) -> None:
    with Queue(broker, connection, ottla_share_retry_backoff_ms=200) as queue:
        queue.put(b"flaky")
        member = queue.join()
        assert member.poll() == [(0, 0, 1)]
        assert member.poll([(0, 0, [RELEASE])], max_wait_ms=30_000) == [(0, 0, 2)]


# --- dead letters


def test_rejected_and_worn_out_records_become_dead_letters(broker: EmbeddedBroker, connection: RawConnection) -> None:
    with Queue(broker, connection, ottla_share_dlq_topic="graves", share_delivery_count_limit=2) as queue:
        queue.put(
            Record(NO_OFFSET, 1_000, b"k", b"bad", (("trace", b"7"),)), Record(NO_OFFSET, 2_000, None, b"worn out")
        )
        member = queue.join()
        assert member.poll() == [(0, 1, 1)]
        assert member.poll([(0, 1, [REJECT, RELEASE])], max_wait_ms=60_000) == [(1, 1, 2)]
        assert member.poll([(1, 1, [RELEASE])]) == []
        bad, worn_out = read(connection, "graves")
        assert (bad.key, bad.value, bad.headers[0]) == (b"k", b"bad", ("trace", b"7"))
        assert dict(bad.headers[1:]) == {
            "ottla.dlq.topic": queue.topic.encode(),
            "ottla.dlq.partition": b"0",
            "ottla.dlq.offset": b"0",
            "ottla.dlq.group": queue.group.encode(),
            "ottla.dlq.delivery-count": b"1",
            "ottla.dlq.reason": b"rejected",
            "ottla.dlq.timestamp": b"1000",
        }
        told = dict(worn_out.headers)
        assert worn_out.value == b"worn out"
        assert (told["ottla.dlq.reason"], told["ottla.dlq.delivery-count"]) == (b"delivery-limit", b"2")


def test_nothing_is_given_up_that_cannot_be_buried(broker: EmbeddedBroker, connection: RawConnection) -> None:
    """A dead-letter topic that cannot be created, because its name collides with another's: the record stays with its
    consumer, and with the group after that.
    """
    create(connection, "buried.here")
    with Queue(broker, connection, ottla_share_dlq_topic="buried_here", share_delivery_count_limit=2) as queue:
        queue.put(b"x")
        member, other = queue.join("member"), queue.join("other")
        assert member.poll() == [(0, 0, 1)]
        assert member.acknowledge((0, 0, [REJECT])) == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert member.acknowledge((0, 0, [RELEASE])) == 0
        assert other.poll() == [(0, 0, 2)]
        assert other.acknowledge((0, 0, [ACCEPT])) == 0


def test_a_topic_for_letters_is_not_created_where_none_may_be(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(tmp_path, SMALL | {"auto.create.topics.enable": "false"}) as broker,
        RawConnection(broker.bootstrap) as connection,
        Queue(broker, connection, ottla_share_dlq_topic="graves") as queue,
    ):
        queue.put(b"x", b"y")
        member = queue.join()
        assert member.poll() == [(0, 1, 1)]
        assert member.acknowledge((0, 0, [REJECT])) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert member.acknowledge((1, 1, [ACCEPT])) == 0, "the member keeps what it has"
        create(connection, "graves")
        assert member.acknowledge((0, 0, [REJECT])) == 0
        assert [letter.value for letter in read(connection, "graves")] == [b"x"]


def test_a_letter_larger_than_its_topic_allows_is_written_all_the_same(
    broker: EmbeddedBroker, connection: RawConnection
) -> None:
    with Queue(broker, connection, ottla_share_dlq_topic="large-graves") as queue:
        alter(connection, 2, queue.topic, max_message_bytes=2_000_000)
        produce(connection, queue.topic, [b"x" * (limits.BATCH_BYTES_MAX - 200)])
        member = queue.join()
        assert member.poll() == [(0, 0, 1)]
        assert member.acknowledge((0, 0, [REJECT])) == 0
        assert len(read(connection, "large-graves")) == 1


# --- delayed delivery


def at(broker: EmbeddedBroker, name: str, value: int, text: bytes = b"later") -> Record:
    return Record(NO_OFFSET, broker_ms(broker), None, text, ((name, b"%d" % value),))


def broker_ms(broker: EmbeddedBroker) -> int:
    assert broker.node is not None
    return broker.node.runtime.now_ms()


def test_delayed_records_wait_for_their_time_while_others_pass(
    broker: EmbeddedBroker, connection: RawConnection
) -> None:
    with Queue(broker, connection, ottla_share_delayed_delivery_enable="true") as queue:
        queue.put(
            at(broker, "ottla.deliver-at", broker_ms(broker) + 60_000),
            at(broker, "ottla.delay-ms", 30_000),
            Record(NO_OFFSET, broker_ms(broker), None, b"now"),
            at(broker, "ottla.deliver-at", broker_ms(broker) - 1),
            Record(NO_OFFSET, broker_ms(broker), None, b"nonsense", (("ottla.deliver-at", b"soon"),)),
        )
        member = queue.join()
        assert offsets(member) == [2, 3, 4]
        assert member.acknowledge((2, 4, [ACCEPT])) == 0
        assert offsets(member) == []
        broker.clock.advance("30s")
        assert eventually(lambda: offsets(member)) == [1]
        assert member.acknowledge((1, 1, [ACCEPT])) == 0
        broker.clock.advance("30s")
        assert eventually(lambda: offsets(member)) == [0]


def test_delays_survive_a_restart(broker: EmbeddedBroker) -> None:
    with (
        RawConnection(broker.bootstrap) as connection,
        Queue(broker, connection, ottla_share_delayed_delivery_enable="true") as queue,
    ):
        queue.put(at(broker, "ottla.delay-ms", 20_000), Record(NO_OFFSET, broker_ms(broker), None, b"now"))
        member = queue.join()
        assert offsets(member) == [1]
        assert member.acknowledge((1, 1, [ACCEPT])) == 0
        broker.restart()
        again = queue.join("again")
        assert offsets(again) == []
        broker.clock.advance("20s")
        assert eventually(lambda: offsets(again)) == [0]


def test_delayed_records_do_not_use_up_the_locks(broker: EmbeddedBroker, connection: RawConnection) -> None:
    settings = {"ottla_share_delayed_delivery_enable": "true", "share_partition_max_record_locks": 100}
    with Queue(broker, connection, **settings) as queue:
        queue.put(*[at(broker, "ottla.delay-ms", 40_000) for _ in range(300)])
        queue.put(b"now")
        member = queue.join()
        assert offsets(member) == [300]
        assert member.acknowledge((300, 300, [ACCEPT])) == 0
        broker.clock.advance("40s")
        assert eventually(lambda: offsets(member, max_records=50)) == list(range(50))


@pytest.mark.parametrize(
    ("made", "looked_at"),
    [
        (build_batch([(b"k", b"v")] * 3), True),
        (build_batch([(b"k", b"v")] * (limits.SHARE_INSPECT_RECORDS + 1)), False),
        (build_batch([(b"k", bytes(9 * limits.MIB))], codec=Codec.ZSTD), False),
    ],
    ids=["usual", "very many records", "a bomb"],
)
def test_a_batch_that_would_hold_up_everybody_is_not_looked_into(made: bytearray, looked_at: bool) -> None:
    file: Any = SimpleNamespace(read=lambda position, size_bytes: bytes(made))
    slice_ = FileSlice(file, 0, len(made))
    assert (_notices(slice_, _Place(read_header(made), 0)) is not None) == looked_at
