"""Transactions through a running node: order, time, trouble with disks and topics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka as ck
import pytest
from tests.server.talk import (
    FETCH_VERSION,
    TOPIC,
    Pipeline,
    alter,
    create,
    delete,
    eventually,
    fetch_request,
    produce_request,
    values_of,
)
from tests.support.requests.raw import RawConnection
from tests.support.requests.same import Side
from tests.support.requests.transactional import Transactional

from ottla.log.files.disk import StorageError
from ottla.log.producers.producers import Origin
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.records.batch import headers
from ottla.records.record import records
from ottla.replica.partition import Partition
from ottla.server.ports.os_disk import OsFile
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest
from ottla.wire.messages.records.describe_producers import DescribeProducersRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.txns.end_txn import EndTxnRequest
from ottla.wire.messages.txns.write_txn_markers import WriteTxnMarkersRequest

STATE = "__transaction_state"
BY_NAME = 12  # the last Produce by name, and the first with KIP-890
FEW = {
    "transaction.state.log.num.partitions": 1,
    "offsets.topic.num.partitions": 1,
    "connections.max.idle.ms": -1,  # a week passes
}
Factory = Callable[..., EmbeddedBroker]


@pytest.fixture
def broker(ottla_broker_factory: Factory) -> EmbeddedBroker:
    return ottla_broker_factory(**FEW)


@pytest.fixture
def side(broker: EmbeddedBroker) -> Iterator[Side]:
    found = Side("ottla", broker.bootstrap)
    yield found
    found.close()


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as connection:
        yield connection


def committed(connection: RawConnection, topic: str, index: int = 0) -> list[bytes | None]:
    """What a reader of committed records finds; control records have no value that anybody wrote."""
    answer: Any = connection.call(fetch_request({(topic, index): 0}, isolation=1), FETCH_VERSION)
    return [value for value in values_of(answer)[topic, index] if value is not None and len(value) != MARKER_BYTES]


MARKER_BYTES = 6
UPGRADE, SAFE_DOWNGRADE = 1, 2
PADDING = b"." * 700_000  # two such records do not fit a segment of a mebibyte


class Gate:
    """Holds up the syncs of the transactions' journal."""

    def __init__(self) -> None:
        self.waiting = 0
        self.open = threading.Event()
        self.open.set()
        self._sync = OsFile.sync

    def __call__(self, file: OsFile) -> None:
        if file.path.startswith(STATE) and file.path.endswith(".log"):
            self.waiting += 1
            assert self.open.wait(30)
        self._sync(file)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    found = Gate()
    monkeypatch.setattr(OsFile, "sync", lambda file: found(file))
    yield found
    found.open.set()


def request(producer: Transactional, topic: str, sequence: int, value: bytes) -> ProduceRequest:
    batch = producer.batch((topic, 0), value, sequence=sequence)
    made = produce_request({(topic, 0): batch})
    made.transactional_id = producer.id
    return made


def test_produces_that_wait_for_the_coordinator_stay_in_order(
    side: Side, connection: RawConnection, broker: EmbeddedBroker, gate: Gate
) -> None:
    """The first of three must wait until its partition has joined; those behind it wait with it."""
    create(connection, "t")
    one = Transactional(side, "x").find().begin()
    alter(connection, TOPIC, STATE, ottla_fsync_before_ack="true")
    gate.open.clear()
    with Pipeline(broker.bootstrap) as pipe:
        for sequence in range(3):
            pipe.send(request(one, "t", sequence, b"v%d" % sequence), BY_NAME)
        pipe.send(produce_request({("t", 0): [b"plain"]}), BY_NAME)
        eventually(lambda: gate.waiting, "the journal's sync")
        assert broker.node is not None
        partition = broker.node.partitions.find("t", 0)
        assert partition.log.next_offset == 0
        gate.open.set()
        answers = [pipe.answer().responses[0].partition_responses[0] for _ in range(4)]
        assert [(each.error_code, each.base_offset) for each in answers] == [(0, 0), (0, 1), (0, 2), (0, 3)]
        # Nobody waits any more: the next one is answered at once.
        gate.open.clear()
        pipe.send(request(one, "t", 3, b"v3"), BY_NAME)
        assert pipe.answer().responses[0].partition_responses[0].base_offset == 4
        gate.open.set()
    one.sequences["t", 0] = 4
    one.ended()
    assert committed(connection, "t") == [b"v0", b"v1", b"v2", b"plain", b"v3"]


def test_what_waits_for_the_coordinator_stays_where_it_is_accounted_for(
    side: Side, connection: RawConnection, broker: EmbeddedBroker, gate: Gate
) -> None:
    """However many large produces a client sends meanwhile: it has the one receive buffer, which counts."""
    create(connection, "t")
    one = Transactional(side, "x").find().begin()
    alter(connection, TOPIC, STATE, ottla_fsync_before_ack="true")
    assert broker.node is not None
    memory, size_bytes, count = broker.node.connections.memory, 900_000, 10
    gate.open.clear()
    with Pipeline(broker.bootstrap) as pipe:

        def flood() -> None:
            for sequence in range(count):
                pipe.send(request(one, "t", sequence, bytes(size_bytes)), BY_NAME)

        sender = threading.Thread(target=flood)
        sender.start()
        eventually(lambda: gate.waiting, "the journal's sync")
        assert connection.call(produce_request({("t", 0): [b"another's"]}), BY_NAME)
        assert size_bytes - limits.RECEIVE_BUFFER_BYTES <= memory.used_bytes <= 2 * size_bytes
        gate.open.set()
        sender.join()
        offsets = [pipe.answer().responses[0].partition_responses[0].base_offset for _ in range(count)]
        assert offsets == list(range(1, count + 1))
    eventually(lambda: memory.used_bytes == 0, "all of it is given back")


def test_a_connection_that_goes_while_its_produce_waits_hurts_nobody(
    side: Side, connection: RawConnection, broker: EmbeddedBroker, gate: Gate
) -> None:
    create(connection, "t")
    one = Transactional(side, "x").find().begin()
    alter(connection, TOPIC, STATE, ottla_fsync_before_ack="true")
    gate.open.clear()
    with Pipeline(broker.bootstrap) as pipe:
        for sequence in range(2):
            pipe.send(request(one, "t", sequence, b"v%d" % sequence), BY_NAME)
        eventually(lambda: gate.waiting, "the journal's sync")
    gate.open.set()
    one.ended(epoch=one.epoch)
    assert one.begin().produce("t", version=BY_NAME)["responses"][0]["partition_responses"][0]["error_code"] == 0


def test_an_end_waits_for_its_record_and_markers_for_the_end(
    side: Side, connection: RawConnection, broker: EmbeddedBroker, gate: Gate
) -> None:
    """Nobody is told of a decision that a loss of power could take back."""
    create(connection, "t")
    one = Transactional(side, "x").find().begin()
    one.produce("t", version=BY_NAME)
    alter(connection, TOPIC, STATE, ottla_fsync_before_ack="true")
    gate.open.clear()
    gate.waiting = 0
    end = EndTxnRequest(transactional_id="x", producer_id=one.producer_id, producer_epoch=one.epoch, committed=True)
    with Pipeline(broker.bootstrap) as pipe:
        pipe.send(end, 5)
        eventually(lambda: gate.waiting, "the journal's sync")
        assert broker.node is not None
        assert broker.node.partitions.find("t", 0).log.next_offset == 1
        gate.open.set()
        assert pipe.answer().error_code == 0
    assert one.rest().describe()["transaction_state"] == "CompleteCommit"
    assert committed(connection, "t") == [b"v"]


def test_markers_are_written_again_until_they_are(
    side: Side, connection: RawConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(connection, "good")
    create(connection, "bad")
    one = Transactional(side, "x").find().begin()
    for topic in ("good", "bad"):
        one.produce(topic, version=BY_NAME)
    append = Partition.append
    failures = [StorageError(5, "no"), StorageError(28, "no room")]

    def failing(self: Partition, *arguments: Any, **options: Any) -> Any:
        if self.topic == "bad" and options.get("origin") == Origin.COORDINATOR and failures:
            raise failures.pop()
        return append(self, *arguments, **options)

    monkeypatch.setattr(Partition, "append", failing)
    assert one.end()["error_code"] == 0  # it is decided
    assert committed(connection, "good") == [b"v"]
    assert committed(connection, "bad") == []
    refused = one.produce("good", version=BY_NAME)["responses"][0]["partition_responses"][0]
    assert refused["error_code"] == ErrorCode.CONCURRENT_TRANSACTIONS
    eventually(lambda: one.describe()["transaction_state"] == "CompleteCommit", "the end")
    assert not failures
    assert committed(connection, "bad") == [b"v"]


def test_a_deleted_topic_needs_no_marker(side: Side, connection: RawConnection) -> None:
    create(connection, "stays")
    create(connection, "goes")
    one = Transactional(side, "x").find().begin()
    for topic in ("stays", "goes"):
        one.produce(topic, version=BY_NAME)
    delete(connection, "goes")
    assert one.ended()["error_code"] == 0
    assert one.describe()["transaction_state"] == "CompleteCommit"
    assert committed(connection, "stays") == [b"v"]


def test_a_transaction_that_takes_too_long_is_aborted(
    side: Side, connection: RawConnection, broker: EmbeddedBroker
) -> None:
    create(connection, "t")
    one = Transactional(side, "x").find()
    one.init(timeout_ms=30_000)
    one.produce("t", version=BY_NAME)
    broker.clock.advance("29s")
    assert one.describe()["transaction_state"] == "Ongoing"
    broker.clock.advance("12s")
    eventually(lambda: one.describe()["transaction_state"] == "CompleteAbort", "the abort")
    assert committed_end(connection, "t") == 2
    late = one.produce("t", version=BY_NAME)["responses"][0]["partition_responses"][0]["error_code"]
    assert late == ErrorCode.INVALID_PRODUCER_EPOCH
    assert one.end()["error_code"] == ErrorCode.INVALID_TXN_STATE  # it was another end
    one.begin()
    assert one.produce("t", version=BY_NAME)["responses"][0]["partition_responses"][0]["error_code"] == 0
    one.ended()


def committed_end(connection: RawConnection, topic: str) -> int:
    asked = ListOffsetsRequest.Topic
    wanted = asked(name=topic, partitions=[asked.Partition(partition_index=0, timestamp=-1)])
    answer: Any = connection.call(ListOffsetsRequest(replica_id=-1, isolation_level=1, topics=[wanted]), 9)
    return int(answer.topics[0].partitions[0].offset)


def test_ids_that_nobody_uses_are_forgotten(side: Side, broker: EmbeddedBroker, connection: RawConnection) -> None:
    create(connection, "t")
    idle, busy = Transactional(side, "idle").find().begin(), Transactional(side, "busy").find()
    busy.init(timeout_ms=900_000)
    broker.clock.advance(f"{6 * 24 * 3600}s")
    busy.begin()
    broker.clock.advance(f"{24 * 3600 + 7200}s")
    missing = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    eventually(lambda: idle.describe()["error_code"] == missing, "the tombstone")
    assert busy.describe()["error_code"] == 0
    assert idle.end()["error_code"] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    before = idle.producer_id
    assert idle.init()["error_code"] == 0
    assert (idle.producer_id, idle.epoch) != (before, 0)


def test_everything_is_there_after_a_restart(ottla_broker_factory: Factory) -> None:
    broker = ottla_broker_factory(**FEW)
    side = Side("ottla", broker.bootstrap)
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
    one, two = (Transactional(side, id).find().begin() for id in ("one", "two"))
    one.produce("t", version=BY_NAME)
    two.produce("t", version=BY_NAME)
    two.ended(False)
    described = [each.describe() for each in (one, two)]
    side.close()
    broker.stop()
    broker.start()
    one.side = two.side = side = Side("ottla", broker.bootstrap)
    assert [each.describe() for each in (one, two)] == described
    one.produce("t", version=BY_NAME)
    assert one.ended()["error_code"] == 0
    with RawConnection(broker.bootstrap) as connection:
        assert committed(connection, "t")[-1] == b"v"
        assert committed_end(connection, "t") == 5
    side.close()


def test_clients_are_believed_where_verification_is_off(ottla_broker_factory: Factory) -> None:
    """An old client that forgets to add its partition: refused, but not where the operator wants it so."""
    for enabled, code in ((True, ErrorCode.INVALID_TXN_STATE), (False, ErrorCode.NONE)):
        broker = ottla_broker_factory(**FEW, **{"transaction.partition.verification.enable": str(enabled).lower()})
        side = Side("ottla", broker.bootstrap)
        with RawConnection(broker.bootstrap) as connection:
            create(connection, "t")
        one = Transactional(side, "x").find().begin()
        answer = one.produce("t", version=10)["responses"][0]["partition_responses"][0]
        assert answer["error_code"] == code
        side.close()


def test_a_hanging_transaction_can_be_found_and_ended(side: Side, connection: RawConnection) -> None:
    """What no coordinator knows of: a marker from an admin lets readers go on."""
    create(connection, "t")
    one = Transactional(side, "x").find().begin()
    one.produce("t", version=BY_NAME)
    asked = DescribeProducersRequest(topics=[DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])])

    def open_since() -> int:
        answer: Any = connection.call(asked, 0)
        (producer,) = answer.topics[0].partitions[0].active_producers
        assert producer.producer_id == one.producer_id
        return int(producer.current_txn_start_offset)

    assert open_since() == 0
    assert committed_end(connection, "t") == 0
    marker = WriteTxnMarkersRequest.WritableTxnMarker
    abort = marker(
        producer_id=one.producer_id,
        producer_epoch=one.epoch,
        transaction_result=False,
        topics=[marker.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        coordinator_epoch=0,
    )
    answer: Any = connection.call(WriteTxnMarkersRequest(markers=[abort]), 1)
    assert answer.markers[0].topics[0].partitions[0].error_code == 0
    assert open_since() == -1
    assert committed_end(connection, "t") == 2


def test_the_journal_follows_the_transaction_version(
    side: Side, connection: RawConnection, broker: EmbeddedBroker
) -> None:
    """With version 0 records that old brokers read, from 1 on the flexible form; ends raise epochs as clients ask."""
    create(connection, "t")
    one = Transactional(side, "x").find()
    found = []
    for level, upgrade_type in ((2, UPGRADE), (0, SAFE_DOWNGRADE), (1, UPGRADE)):
        finalise(connection, level, upgrade_type)
        one.begin()
        one.add("t", 0)
        one.produce("t", version=11)
        assert one.ended(version=4)["error_code"] == 0
        assert broker.node is not None
        log = broker.node.partitions.find(STATE, 0).log
        start = found[-1][1] if found else 0
        data = memoryview(log.read(start, 1 << 20, max_offset=log.next_offset).slice.read())
        versions = {record.value[:2] for at, _ in headers(data) for record in records(data, at)}
        found.append((versions, log.next_offset))
    assert [versions for versions, _ in found] == [{b"\0\1"}, {b"\0\0"}, {b"\0\1"}]


def finalise(connection: RawConnection, level: int, upgrade_type: int) -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="transaction.version", max_version_level=level, upgrade_type=upgrade_type
    )
    answer: Any = connection.call(UpdateFeaturesRequest(feature_updates=[update]), 2)
    assert answer.error_code == 0, answer


def test_compaction_leaves_an_open_transaction_alone(
    side: Side, connection: RawConnection, broker: EmbeddedBroker
) -> None:
    """Segments behind the last stable offset are not cleaned; after the end they are, and what was aborted is gone."""
    create(
        connection,
        "t",
        cleanup_policy="compact",
        segment_bytes=1 << 20,
        min_cleanable_dirty_ratio=0,
        delete_retention_ms=0,
    )
    one = Transactional(side, "x").find()
    one.init(timeout_ms=900_000)
    plain = Transactional(side, "y").find().begin()
    for at in range(3):
        plain.produce("t", version=BY_NAME, value=b"before %d" % at + PADDING)
    plain.ended()
    one.produce("t", version=BY_NAME, value=b"open" + PADDING)
    for at in range(3):
        plain.produce("t", version=BY_NAME, value=b"after %d" % at + PADDING)
    plain.ended()
    assert broker.node is not None
    partition = broker.node.partitions.find("t", 0)

    def kept() -> list[bytes]:
        answer: Any = connection.call(fetch_request({("t", 0): 0}, max_bytes=1 << 26), FETCH_VERSION)
        found: list[bytes] = []
        while answer.responses[0].partitions[0].records:
            data = memoryview(bytes(answer.responses[0].partitions[0].records))
            last = 0
            for at, header in headers(data):
                if not header.is_control:
                    found.extend((record.value or b"").rstrip(b".") for record in records(data, at))
                last = header.next_offset
            answer = connection.call(fetch_request({("t", 0): last}), FETCH_VERSION)
        return found

    assert len(kept()) == 7

    def cleaned(*values: bytes) -> bool:
        broker.clock.advance("20s")
        return not set(values) & set(kept())

    eventually(lambda: cleaned(b"before 0", b"before 1"), "the first cleaning")
    assert kept()[-4:] == [b"open", b"after 0", b"after 1", b"after 2"]
    assert partition.last_stable_offset == 4
    one.ended(False)
    plain.produce("t", version=BY_NAME, value=b"last" + PADDING)
    plain.ended()
    eventually(lambda: cleaned(b"open", b"after 0", b"after 1"), "the second cleaning")


def test_a_reader_of_committed_records_is_told_of_every_abort(
    broker: EmbeddedBroker, connection: RawConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real client, more aborted transactions than an answer may name, and one that was aborted a segment later."""

    monkeypatch.setattr(limits, "ABORTED_PER_FETCH_MAX", 5)
    create(connection, "t", segment_bytes=1 << 20)
    common = {"bootstrap.servers": broker.bootstrap}
    late, often = (ck.Producer({**common, "transactional.id": name}) for name in ("late", "often"))
    plain = ck.Producer(common)

    def write(producer: Any, value: bytes) -> None:
        producer.produce("t", value, partition=0)
        assert producer.flush(60) == 0

    def abort(times: int) -> None:
        for _ in range(times):
            often.begin_transaction()
            write(often, b"aborted")
            often.abort_transaction(60)

    late.init_transactions(60)
    often.init_transactions(60)
    late.begin_transaction()
    write(late, b"aborted late")
    abort(12)
    write(plain, PADDING)
    write(plain, PADDING)  # in the next segment
    abort(3)
    late.abort_transaction(60)
    write(plain, b"end")
    consumer = ck.Consumer({**common, "group.id": "g", "isolation.level": "read_committed", "fetch.wait.max.ms": 50})
    consumer.assign([ck.TopicPartition("t", 0, 0)])
    seen: list[bytes] = []
    while b"end" not in seen:
        message = consumer.poll(60)
        assert message is not None and message.error() is None
        seen.append(message.value())
    consumer.close()
    assert seen == [PADDING, PADDING, b"end"]
