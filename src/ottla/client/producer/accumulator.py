"""Records on their way: batches per partition, in order, each with its place in the producer's sequence.

Pure bookkeeping without I/O; `client.producer` fills it, `client.sender` drains it and reports what became of each
batch.

Rules:
- A record is encoded into its batch when it is appended; nothing else of it is kept, except the future of who asked.
  What cannot be encoded leaves no trace: the next record finds everything as if nobody had tried.
- With idempotence a batch gets its place in the sequence when it is first sent, and keeps it. What fails in a way that
  passes goes back among those that wait, in order, and is sent again only as the oldest one outstanding; so retries
  cannot overtake.
- Batches of one partition that are under way at the same time all have the same identity (producer id and epoch).
  Until a first batch of an identity is acknowledged only that one is under way: a broker that does not know a producer
  takes whichever sequence number comes first for its beginning.
- A batch that may be in the log is sent again with the same bytes, which lets the broker recognise it. When a batch in
  the middle is given up, those behind it are numbered anew once all answers are in (`_restart`).
"""

import asyncio
from collections import deque
from struct import Struct
from typing import NamedTuple

from ottla.model.ids import ProducerIdentity, TopicPartition
from ottla.records.batch import (
    ATTRIBUTES_AT,
    CRC_AT,
    HEADER_BYTES,
    NO_LEADER_EPOCH,
    PRODUCER_ID_AT,
    TRANSACTIONAL_FLAG,
    pack_crc_into,
)
from ottla.records.build import EncodedRecords, assemble, put_record
from ottla.records.compress import Codec, compress
from ottla.records.crc import crc32c
from ottla.records.record import Headers, records

# Varints of length, deltas, key and value sizes and header count: what a record takes besides its own bytes, at most.
RECORD_OVERHEAD_BYTES = 21
HEADER_OVERHEAD_BYTES = 10
_SEQUENCE_SPAN = 2**31  # sequence numbers wrap from 2^31 - 1 to 0
_PRODUCER = Struct(">qhi")  # producer id, epoch, base sequence: neighbours in the batch's header
# Zigzag varints of the numbers that fit one or two bytes: looked up, because they are half the work per record.
_VARINTS = [bytes((n << 1,)) for n in range(64)] + [bytes((n << 1 & 0x7F | 0x80, n >> 6)) for n in range(64, 2048)]
_NULL = b"\x01"  # the varint of -1


class RecordMetadata(NamedTuple):
    """Where an acknowledged record lies; the offset is -1 when the broker did not tell (acks=0, old duplicates)."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class Sealing(NamedTuple):
    """How records become a batch."""

    codec: Codec = Codec.NONE
    level: int | None = None
    transactional: bool = False


def headers_size_bytes(headers: Headers) -> int:
    """An upper bound of what the headers take in an uncompressed batch."""
    return sum(
        HEADER_OVERHEAD_BYTES + 4 * len(name) + (len(content) if content is not None else 0)
        for name, content in headers
    )


class ProducerBatch:
    """Records of one partition that travel together, and the futures of those who want to hear of them."""

    __slots__ = (
        "_positions",
        "_timestamps",
        "attempts",
        "base_timestamp",
        "count",
        "created_at_s",
        "data",
        "futures",
        "identity",
        "in_doubt",
        "max_timestamp",
        "number",
        "payload",
        "sequence",
        "size_bytes",
    )

    def __init__(self, number: tuple[int, ...], created_at_s: float) -> None:
        self.number = number  # the place in its partition's queue; halves add a digit to that of the whole
        self.created_at_s = created_at_s
        self.payload = bytearray()
        self.count = 0
        self.base_timestamp = self.max_timestamp = -1
        # Of the records that somebody waits for. Three lists, not one of tuples: less for the garbage collector.
        self.futures: list[asyncio.Future[RecordMetadata]] = []
        self._positions: list[int] = []
        self._timestamps: list[int] = []
        self.size_bytes = HEADER_BYTES  # uncompressed; what it takes of the buffer
        self.attempts = 0
        self.in_doubt = False  # an attempt ended without an answer: the broker may have it
        self.identity = ProducerIdentity()
        self.sequence = -1
        self.data: bytearray | None = None  # sealed at the first attempt; nothing is added afterwards

    def add(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        """Encode one record at the end; returns the bytes it took. One that cannot be encoded changes nothing."""
        payload, count = self.payload, self.count
        delta = timestamp - self.base_timestamp if count else 0
        before = len(payload)
        if headers or value is None or delta < 0:
            put_record(payload, count, delta, key, value, headers)
        else:
            number = _VARINTS
            try:
                if key is None:
                    body = b"".join((b"\0", number[delta], number[count], _NULL, number[len(value)], value, b"\0"))
                else:
                    body = b"".join(
                        (
                            b"\0",
                            number[delta],
                            number[count],
                            number[len(key)],
                            key,
                            number[len(value)],
                            value,
                            b"\0",
                        )
                    )
                length = number[len(body)]
                payload += length
                payload += body
            except IndexError:  # one of the numbers is larger than the table
                put_record(payload, count, delta, key, value, headers)
        if count == 0:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.count = count + 1
        grown = len(payload) - before
        self.size_bytes += grown
        return grown

    def watch(self, position: int, timestamp: int, future: "asyncio.Future[RecordMetadata]") -> None:
        """The future ends when the record at this position is acknowledged, or has failed."""
        self.futures.append(future)
        self._positions.append(position)
        self._timestamps.append(timestamp)

    def seal(self, how: Sealing) -> bytearray:
        """The batch's bytes, compressed once; its place in the sequence may still be stamped in."""
        if self.data is None:
            self.data = self._assembled(self.payload, how)
            self.payload = bytearray()
        return self.data

    def fill(self, records: EncodedRecords, how: Sealing) -> None:
        """Make it a batch of records that are encoded already, and seal it: nothing is added to them."""
        assert self.count == 0
        self.count, self.base_timestamp, self.max_timestamp = records.record_count, *records[3:]
        self.size_bytes += len(records.data)
        self.data = self._assembled(records.data, how)

    def _assembled(self, payload: bytearray | memoryview, how: Sealing) -> bytearray:
        return assemble(
            compress(how.codec, payload, how.level) if how.codec else payload,
            base_offset=0,
            leader_epoch=NO_LEADER_EPOCH,
            attributes=how.codec | (TRANSACTIONAL_FLAG if how.transactional else 0),
            last_offset_delta=self.count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=self.sequence,
            count=self.count,
        )

    def assign(self, identity: ProducerIdentity, sequence: int) -> None:
        """Give the batch its place in the sequence."""
        self.identity, self.sequence = identity, sequence
        if self.data is not None:
            _PRODUCER.pack_into(self.data, PRODUCER_ID_AT, identity.producer_id, identity.epoch, sequence)
            pack_crc_into(self.data, CRC_AT, crc32c(memoryview(self.data)[ATTRIBUTES_AT:]))

    def halves(self) -> "list[ProducerBatch]":
        """The same records in two batches, for a broker that finds this one too large; sequences stay as they are."""
        assert self.data is not None
        middle = self.count // 2
        halves = [ProducerBatch((*self.number, half), self.created_at_s) for half in range(2)]
        for position, record in enumerate(records(self.data)):
            halves[position >= middle].add(record.timestamp, record.key, record.value, record.headers)
        for position, timestamp, future in zip(self._positions, self._timestamps, self.futures, strict=True):
            late = position >= middle
            halves[late].watch(position - middle if late else position, timestamp, future)
        if self.sequence >= 0:
            halves[0].assign(self.identity, self.sequence)
            halves[1].assign(self.identity, (self.sequence + middle) % _SEQUENCE_SPAN)
        return halves

    def acknowledge(self, partition: TopicPartition, base_offset: int, log_append_time: int) -> None:
        topic, index = partition
        new = tuple.__new__  # what `RecordMetadata(...)` does, without the detour
        for position, timestamp, future in zip(self._positions, self._timestamps, self.futures, strict=True):
            if not future.done():
                offset = base_offset + position if base_offset >= 0 else -1
                timestamp = log_append_time if log_append_time >= 0 else timestamp
                future.set_result(new(RecordMetadata, (topic, index, offset, timestamp)))

    def fail(self, error: BaseException) -> None:
        for future in self.futures:
            if not future.done():
                future.set_exception(error)
                # `flush` and the next send may be all that the caller looks at: no warning for the rest.
                future.exception()


class PartitionQueue:
    """The batches of one partition that are not settled yet: those that wait and those under way, each in order."""

    __slots__ = (
        "_created",
        "_gap",
        "_identity",
        "_known",
        "_next_sequence",
        "_restart",
        "in_flight",
        "partition",
        "retry_at_s",
        "tried",
        "tries",
        "trouble",
        "waiting",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.retry_at_s = 0.0
        self.tries = 0  # that failed in a row: what the backoff grows with
        self.trouble: Exception | None = None  # why the last attempt that failed did so
        self.tried: tuple[int, int] | None = None  # the leader, and its epoch, that the last attempt went to
        self._created = 0
        self._identity = ProducerIdentity()
        self._known = False  # the broker acknowledged something of this identity
        # The last identity with a number that is known to be missing, and whose number that is.
        self._gap: tuple[ProducerIdentity, tuple[int, ...]] | None = None
        self._next_sequence = 0
        self._restart = False  # number what waits anew as soon as nothing is under way

    # --- filling ------------------------------------------------------------------------------------------------

    def open_batch(self, size_bytes: int, batch_size_bytes: int) -> ProducerBatch | None:
        """The batch that takes a record of this size, if there is one."""
        if self.waiting:
            batch = self.waiting[-1]
            if batch.data is None and batch.attempts == 0 and batch.size_bytes + size_bytes <= batch_size_bytes:
                return batch
        return None

    def new_batch(self, now_s: float) -> ProducerBatch:
        """The batch that will come next. It belongs to the queue when it holds something (`take`)."""
        return ProducerBatch((self._created + 1,), now_s)

    def take(self, batch: ProducerBatch) -> None:
        """A new batch, behind all others."""
        self._created += 1
        self.waiting.append(batch)

    @property
    def newest(self) -> tuple[int, ...]:
        """The number of the last batch so far."""
        return (self._created,)

    def settled_up_to(self, number: tuple[int, ...]) -> bool:
        """Whether every batch up to this one is acknowledged or has failed."""
        return not (self.waiting and self.waiting[0].number[:1] <= number) and all(
            each.number[:1] > number for each in self.in_flight
        )

    # --- draining -----------------------------------------------------------------------------------------------

    def ready_at_s(self, linger_s: float, batch_size_bytes: int, *, flushing: bool) -> float | None:
        """When the first of those that wait may leave; None while there is none."""
        if not self.waiting:
            return None
        first = self.waiting[0]
        full = len(self.waiting) > 1 or first.size_bytes >= batch_size_bytes or first.attempts > 0
        return max(self.retry_at_s, first.created_at_s + (0.0 if full or flushing else linger_s))

    def may_start(self, identity: ProducerIdentity, in_flight_max: int) -> bool:
        """Whether the first of those that wait may join those under way (see the rules above)."""
        if not self.in_flight:
            return True
        if identity.producer_id < 0:
            return len(self.in_flight) < in_flight_max
        if self._restart:
            return False
        first = self.waiting[0]
        if first.sequence >= 0:
            return first.number < self.in_flight[0].number and first.identity == self._identity
        return self._known and identity == self._identity and len(self.in_flight) < in_flight_max

    def start(self, identity: ProducerIdentity) -> ProducerBatch:
        """Take the first batch; with idempotence it gets its place in the sequence unless it has one."""
        if self._restart and not self.in_flight:
            self._unnumber()
        batch = self.waiting.popleft()
        batch.attempts += 1
        if identity.producer_id >= 0:
            if batch.sequence < 0:
                if self._identity != identity:
                    self._identity, self._next_sequence, self._known = identity, 0, False
                batch.assign(identity, self._next_sequence)
                self._next_sequence = (self._next_sequence + batch.count) % _SEQUENCE_SPAN
            self._put_in_order(self.in_flight, batch)
        else:
            self.in_flight.append(batch)
        return batch

    def _unnumber(self) -> None:
        """Nothing is under way, so all that is known to be missing in the log may get other numbers."""
        self._restart = False
        for batch in self.waiting:
            if batch.sequence >= 0 and not batch.in_doubt:
                batch.assign(ProducerIdentity(), -1)

    # --- what became of a batch ---------------------------------------------------------------------------------

    def is_oldest(self, batch: ProducerBatch) -> bool:
        """Whether no earlier batch is outstanding."""
        return all(each.number >= batch.number for each in self.in_flight) and not (
            self.waiting and self.waiting[0].number < batch.number
        )

    def finish(self, batch: ProducerBatch) -> None:
        """The batch is in the log."""
        self.in_flight.remove(batch)
        self.retry_at_s, self.tries = 0.0, 0
        if batch.identity == self._identity:
            self._known = True

    def retry(self, batch: ProducerBatch, at_s: float) -> None:
        """The batch is to be sent again, not before `at_s`."""
        self.in_flight.remove(batch)
        self._put_in_order(self.waiting, batch)
        self.retry_at_s = at_s

    def renumber(self, batch: ProducerBatch) -> None:
        """The batch, surely not in the log, goes again under another identity; so does what comes after it."""
        self.in_flight.remove(batch)
        self._put_in_order(self.waiting, batch)
        self._retire(batch)

    def split(self, batch: ProducerBatch) -> None:
        """Replace a batch that was too large by its halves."""
        self.in_flight.remove(batch)
        for half in batch.halves():
            half.attempts = 1
            self._put_in_order(self.waiting, half)

    def drop(self, batch: ProducerBatch) -> bool:
        """Give a batch up. The result says whether it leaves a hole: its identity is of no use to what follows then."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)
        else:
            self.waiting.remove(batch)
        self.retry_at_s = 0.0
        if batch.sequence < 0:
            return False
        if batch.in_doubt:
            self._restart = True
            if batch.identity == self._identity:
                self._identity = ProducerIdentity()
            return True
        if any(each.sequence >= 0 and each.identity == batch.identity for each in (*self.waiting, *self.in_flight)):
            self._retire(batch)
            return True
        if batch.identity == self._identity:
            self._next_sequence = batch.sequence
        return False

    def doubt(self, batch: ProducerBatch) -> None:
        """The broker may have this batch, unless one before it is known to be missing."""
        if self._gap is None or batch.identity != self._gap[0] or batch.number <= self._gap[1]:
            batch.in_doubt = True

    def _retire(self, missing: ProducerBatch) -> None:
        """A number of an identity is missing in the log. The broker takes nothing after a gap, so what was numbered
        behind it is missing as well, and is numbered anew when all answers are in."""
        identity = missing.identity
        self._gap = identity, missing.number
        self._restart = True
        for batch in (*self.waiting, *self.in_flight):
            if batch.identity == identity:
                batch.in_doubt = False
        if identity == self._identity:
            self._identity = ProducerIdentity()

    @staticmethod
    def _put_in_order(batches: "deque[ProducerBatch] | list[ProducerBatch]", batch: ProducerBatch) -> None:
        position = 0
        for each in batches:
            if each.number > batch.number:
                break
            position += 1
        batches.insert(position, batch)
