"""Produce: the same batches get the same answers from Ottla as from a real Kafka, the refused ones too."""

import struct
import time
from collections.abc import Callable, Iterator

import pytest
from crc32c import crc32c
from tests.compat.conftest import Names, versions_of
from tests.support.requests.same import Both, Plain, Side
from tests.support.waiting import until

from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Record
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NOW = int(time.time() * 1000)
HOUR_MS = 3_600_000
UNKNOWN_ID = bytes(range(16))
Batch = bytes | bytearray | None
Data = ProduceRequest.TopicProduceData


def plain_batch(count: int = 3, **options: object) -> bytearray:
    records = [Record(at, NOW, b"k%d" % at, b"v" * 100, ()) for at in range(count)]
    return build_batch(records, **options)  # type: ignore[arg-type]


def produce(
    side: Side, version: int, topic: str, *batches: Batch, partition: int = 0, acks: int = -1, by: bytes | None = None
) -> Plain:
    """One request with one batch per partition, from `partition` on."""
    topic_id = by or side.ids.get(topic, UNKNOWN_ID)
    partitions = [
        Data.PartitionProduceData(index=partition + at, records=None if batch is None else bytes(batch))
        for at, batch in enumerate(batches)
    ]
    data = Data(name=topic, topic_id=topic_id, partition_data=partitions)
    return side.call(ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data]), version)


@pytest.mark.parametrize("version", versions_of(ProduceRequest))
def test_every_version(both: Both, new_name: Names, version: int) -> None:
    name = new_name("produce")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, 2)
        for codec in Codec:
            yield produce(side, version, name, plain_batch(codec=codec))
        yield produce(side, version, name, plain_batch(), acks=1)
        yield produce(side, version, name, plain_batch(), plain_batch(), plain_batch())  # the third does not exist
        yield produce(side, version, name, plain_batch(), partition=-1)
        yield produce(side, version, name + "-never", plain_batch())

    both.same(script)


def corrupt(at: int, value: bytes) -> bytearray:
    batch = plain_batch()
    batch[at : at + len(value)] = value
    return batch


def resealed(at: int, value: bytes) -> bytearray:
    """A batch with other bytes in it whose checksum is right."""
    batch = corrupt(at, value)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return batch


def counted(count: int) -> bytearray:
    """A batch whose header says, consistently, that it holds more records than it does."""
    batch = resealed(57, struct.pack(">i", count))
    struct.pack_into(">i", batch, 23, count - 1)
    struct.pack_into(">I", batch, 17, crc32c(bytes(batch[21:])))
    return batch


ODD_BATCHES: dict[str, Callable[[], Batch]] = {
    "a wrong checksum": lambda: corrupt(17, b"\1\2\3\4"),
    "a flipped bit in a value": lambda: corrupt(120, b"\xff"),
    "empty bytes": lambda: b"",
    "a batch cut short": lambda: plain_batch()[:-10],
    "less than a header": lambda: plain_batch()[:30],
    "two batches": lambda: plain_batch() + plain_batch(),
    "junk after the batch": lambda: plain_batch() + b"junk",
    "a length too small": lambda: corrupt(8, struct.pack(">i", 10)),
    "a negative length": lambda: corrupt(8, struct.pack(">i", -1)),
    "message format 1": lambda: resealed(16, b"\1"),
    "message format 0": lambda: resealed(16, b"\0"),
    "message format 3": lambda: resealed(16, b"\3"),
    "a count too large": lambda: resealed(57, struct.pack(">i", 4)),
    "a count too small": lambda: resealed(57, struct.pack(">i", 2)),
    "a count of zero": lambda: resealed(57, struct.pack(">i", 0)),
    "a negative count": lambda: resealed(57, struct.pack(">i", -1)),
    "a last offset that does not fit the count": lambda: resealed(23, struct.pack(">i", 7)),
    "a count that nothing can hold": lambda: counted(2**31 - 1),
    "a negative last offset": lambda: resealed(23, struct.pack(">i", -1)),
    "a base offset of its own": lambda: corrupt(0, struct.pack(">q", 77)),
    "a leader epoch of its own": lambda: corrupt(12, struct.pack(">i", 77)),
    "a control batch": lambda: plain_batch(1, control=True),
    "a sequence without a producer": lambda: plain_batch(base_sequence=5),
    "a producer without a sequence": lambda: plain_batch(producer_id=5000, producer_epoch=0),
    "a batch without records": lambda: build_batch([], base_offset=0),
}


@pytest.mark.parametrize("case", ODD_BATCHES)
def test_odd_batches(both: Both, new_name: Names, case: str) -> None:
    name = new_name("odd")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)
        for version in (3, 8, 13):
            yield produce(side, version, name, ODD_BATCHES[case]())

    both.same(script)


def test_null_records(both: Both, new_name: Names, against: str) -> None:
    """Kafka's handler stumbles over them and never answers; ours must."""
    if against == "ottla":
        both.ottla.create(name := new_name("null"))
        answer = produce(both.ottla, 9, name, None)
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == ErrorCode.INVALID_RECORD


def test_too_large(both: Both, new_name: Names) -> None:
    name = new_name("large")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, **{"max.message.bytes": "300"})
        for count in (1, 2, 3, 30):
            for version in (3, 8, 13):
                yield produce(side, version, name, plain_batch(count))

    both.same(script)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_compacted_topic_wants_keys(both: Both, new_name: Names, codec: Codec) -> None:
    name = new_name("keys")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, **{"cleanup.policy": "compact"})
        mixed = build_batch([(b"a", b"1"), (None, b"2"), (b"c", b"3"), (None, b"4")], timestamp=NOW, codec=codec)
        for version in (3, 7, 8, 9, 13):
            yield produce(side, version, name, mixed)
        yield produce(side, 13, name, build_batch([(b"", b"empty keys are keys")], timestamp=NOW, codec=codec))

    both.same(script)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_timestamps(both: Both, new_name: Names, codec: Codec) -> None:
    """Times outside of the bounds are refused record by record; times may be missing."""
    name = new_name("time")

    def script(side: Side) -> Iterator[Plain]:
        bounds = {"message.timestamp.after.max.ms": str(HOUR_MS), "message.timestamp.before.max.ms": str(HOUR_MS)}
        side.create(name, **bounds)
        times = {"future": NOW + 3 * HOUR_MS, "past": NOW - 3 * HOUR_MS, "none": -1, "negative": -5, "good": NOW}
        for when in times.values():
            records = [Record(0, NOW, b"k", b"v", ()), Record(1, when, b"k", b"v", ())]
            for version in (7, 8, 13):
                # The message names the present moment.
                topic_id = side.ids[name]
                batch = bytes(build_batch(records, codec=codec))
                data = Data(
                    name=name,
                    topic_id=topic_id,
                    partition_data=[Data.PartitionProduceData(index=0, records=batch)],
                )
                request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
                yield side.call(request, version, blank=("error_message", "batch_index_error_message"))

    both.same(script)


def test_log_append_time(both: Both, new_name: Names) -> None:
    name = new_name("append-time")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, **{"message.timestamp.type": "LogAppendTime"})
        yield produce(side, 9, name, plain_batch())
        yield produce(side, 9, name, build_batch([Record(0, NOW + 99 * HOUR_MS, b"k", b"v", ())]))

    both.same(script)


def test_topic_ids(both: Both, new_name: Names) -> None:
    name = new_name("ids")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)
        yield produce(side, 13, name, plain_batch(), by=UNKNOWN_ID)
        yield produce(side, 13, name, plain_batch(), by=bytes(16))
        yield produce(side, 13, "", plain_batch(), by=side.ids[name])

    both.same(script)


def idempotent(side: Side) -> int:
    """A producer id. A Kafka that was just started has to fetch a block of them first and asks to wait."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    answer = until(lambda: side.answer(request, 4), lambda found: getattr(found, "error_code", 0) != loading)
    assert isinstance(answer, InitProducerIdResponse) and answer.error_code == 0, answer
    return answer.producer_id


def test_sequences(both: Both, new_name: Names) -> None:
    """Duplicates, gaps, old and new epochs, unknown producers."""
    name = new_name("sequence")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, 2)
        producer = idempotent(side)

        def send(sequence: int, count: int = 2, epoch: int = 0, partition: int = 0, who: int = producer) -> Plain:
            batch = plain_batch(count, producer_id=who, producer_epoch=epoch, base_sequence=sequence)
            return produce(side, 9, name, batch, partition=partition)

        for sequence in range(0, 14, 2):
            yield send(sequence)
        yield send(12)  # a duplicate of the last
        yield send(8)  # of an earlier one that is still remembered
        yield send(2)  # of one that is not
        yield send(10, 4)  # overlaps
        yield send(20)  # a gap
        yield send(14, epoch=1)  # a new epoch starts at zero
        yield send(0, epoch=1)
        yield send(14, epoch=0)  # the old one is gone
        yield send(2, epoch=1)
        yield send(-1)  # no sequence
        yield send(5, partition=1)  # a partition that has not seen this producer
        yield send(5, who=producer + 999_999, partition=1)
        yield send(0, partition=1, epoch=7)
        yield send(7, partition=1, epoch=7)
        yield send(2, partition=1, epoch=-1)

    both.same(script)


def test_sequence_wraps(both: Both, new_name: Names) -> None:
    name = new_name("wrap")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)
        producer = idempotent(side)
        top = 2**31 - 1
        for sequence, count in ((top - 1, 3), (1, 2), (3, 2)):
            batch = plain_batch(count, producer_id=producer, producer_epoch=0, base_sequence=sequence)
            yield produce(side, 9, name, batch)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(InitProducerIdRequest))
def test_init_producer_id(both: Both, version: int) -> None:
    def script(side: Side) -> Iterator[Plain]:
        idempotent(side)
        yield side.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), version)
        yield side.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1), version)
        if version >= 3:
            known = idempotent(side)
            for producer_id, epoch in ((known, 0), (known, 5), (known, -1), (-1, 0), (known, 32766)):
                request = InitProducerIdRequest(
                    transactional_id=None, transaction_timeout_ms=1, producer_id=producer_id, producer_epoch=epoch
                )
                yield side.call(request, version)

    both.same(script)


def test_compression_of_the_topic(both: Both, new_name: Names) -> None:
    """A topic with a codec of its own takes batches of any; the answers do not show it."""
    name = new_name("recompress")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, **{"compression.type": "gzip"})
        for codec in Codec:
            yield produce(side, 9, name, plain_batch(codec=codec))

    both.same(script)
