"""Records that wait to be sent or acknowledged: batches per partition, in order, each with its base sequence.

Pure bookkeeping without I/O; `producer.producer` fills it, `producer.sender` sends the batches and reports the results.

Rules:
- A record is encoded into its batch when it is appended; nothing else of it is kept, except the future of a caller that
  waits for it. A record that cannot be encoded leaves no trace in the batch.
- With idempotence a batch gets its sequence number when it is first sent, and keeps it. A batch with a transient error
  goes back to the waiting ones, in order, and is sent again only as the oldest one outstanding; so retries cannot
  overtake.
- Batches of one partition that are in flight at the same time all have the same identity (producer id and epoch).
  Until the first batch of an identity is acknowledged only that one is in flight: a broker that does not know a
  producer accepts whichever sequence number comes first as its beginning.
- A batch that may be in the log is sent again with the same bytes, so that the broker recognises it. When a batch in
  the middle is given up, those behind it get new sequence numbers once all answers are in (`_restart`).
"""

import asyncio
from collections import deque
from struct import Struct
from typing import NamedTuple

from ottla.model.ids import NO_LEADER_EPOCH, ProducerIdentity, TopicPartition
from ottla.records.batch import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, PRODUCER_ID_AT, TRANSACTIONAL_FLAG, pack_crc_into
from ottla.records.build import EncodedRecords, assemble, put_record
from ottla.records.compress import Codec, compress
from ottla.records.crc import crc32c
from ottla.records.record import Headers, records
from ottla.wire.varint import ZIGZAG_BYTES

# The most that a record takes besides its own bytes: varints of length, deltas, key and value sizes and header count.
RECORD_OVERHEAD_BYTES = 21
HEADER_OVERHEAD_BYTES = 10
_SEQUENCE_SPAN = 2**31  # sequence numbers wrap from 2^31 - 1 to 0
_PRODUCER = Struct(">qhi")  # producer id, epoch, base sequence: adjacent in the batch header
_NULL = b"\x01"  # the varint of -1


class RecordMetadata(NamedTuple):
    """Partition, offset and timestamp of an acknowledged record; offset -1 if unknown (acks=0, old duplicates)."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class Sealing(NamedTuple):
    """The settings with which records are sealed into a batch."""

    codec: Codec = Codec.NONE
    level: int | None = None
    transactional: bool = False


def headers_size_bytes(headers: Headers) -> int:
    """Return an upper bound of the size of the headers in an uncompressed batch."""
    return sum(
        HEADER_OVERHEAD_BYTES + 4 * len(name) + (len(content) if content is not None else 0)
        for name, content in headers
    )


class ProducerBatch:
    """A batch of records of one partition, and the futures of callers that wait for their acknowledgement."""

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
        self.number = number  # position in its partition's queue; halves of a split batch add a digit
        self.created_at_s = created_at_s
        self.payload = bytearray()
        self.count = 0
        self.base_timestamp = self.max_timestamp = -1
        # For the records with a future. Three lists, not one of tuples: less work for the garbage collector.
        self.futures: list[asyncio.Future[RecordMetadata]] = []
        self._positions: list[int] = []
        self._timestamps: list[int] = []
        self.size_bytes = HEADER_BYTES  # uncompressed; counted in the buffer
        self.attempts = 0
        self.in_doubt = False  # an attempt ended without an answer: the batch may be in the log
        self.identity = ProducerIdentity()
        self.sequence = -1
        self.data: bytearray | None = None  # sealed at the first attempt; no record is added afterwards

    def add(self, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        """Encode one record at the end; return its size in bytes. A record that cannot be encoded changes nothing."""
        payload, count = self.payload, self.count
        delta = timestamp - self.base_timestamp if count else 0
        before = len(payload)
        if headers or value is None or delta < 0:
            put_record(payload, count, delta, key, value, headers)
        else:
            number = ZIGZAG_BYTES  # a table, because the varints are half the work per record
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
            except IndexError:  # a number is too large for the table
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
        """Complete the future when the record at this position is acknowledged, or has failed."""
        self.futures.append(future)
        self._positions.append(position)
        self._timestamps.append(timestamp)

    def seal(self, how: Sealing) -> bytearray:
        """Return the batch's bytes, compressed once; producer id, epoch and sequence may still be written into them."""
        if self.data is None:
            self.data = self._assembled(self.payload, how)
            self.payload = bytearray()
        return self.data

    def fill(self, records: EncodedRecords, how: Sealing) -> None:
        """Fill the batch with records that are encoded already, and seal it: no record can be added."""
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
        """Set the batch's producer id, epoch and base sequence."""
        self.identity, self.sequence = identity, sequence
        if self.data is not None:
            _PRODUCER.pack_into(self.data, PRODUCER_ID_AT, identity.producer_id, identity.epoch, sequence)
            pack_crc_into(self.data, CRC_AT, crc32c(memoryview(self.data)[ATTRIBUTES_AT:]))

    def halves(self) -> "list[ProducerBatch]":
        """Split the records into two batches, for a broker that refused this one as too large; sequences stay as they
        are.
        """
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
        new = tuple.__new__  # the same as `RecordMetadata(...)`, but faster
        for position, timestamp, future in zip(self._positions, self._timestamps, self.futures, strict=True):
            if not future.done():
                offset = base_offset + position if base_offset >= 0 else -1
                timestamp = log_append_time if log_append_time >= 0 else timestamp
                future.set_result(new(RecordMetadata, (topic, index, offset, timestamp)))

    def fail(self, error: BaseException) -> None:
        for future in self.futures:
            if not future.done():
                future.set_exception(error)
                # Mark the exception as retrieved: the caller may check only `flush` or its next send.
                future.exception()


class PartitionQueue:
    """The unsettled batches of one partition: those that wait and those in flight, each in order."""

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
        self.tries = 0  # failed attempts in a row, by which the backoff grows
        self.trouble: Exception | None = None  # the error of the last failed attempt
        self.tried: tuple[int, int] | None = None  # leader and leader epoch of the last attempt
        self._created = 0
        self._identity = ProducerIdentity()
        self._known = False  # the broker has acknowledged a batch of this identity
        # The last identity of which a batch is known to be missing in the log, and that batch's number.
        self._gap: tuple[ProducerIdentity, tuple[int, ...]] | None = None
        self._next_sequence = 0
        self._restart = False  # assign new sequence numbers to the waiting batches once none is in flight

    # --- filling ------------------------------------------------------------------------------------------------

    def open_batch(self, size_bytes: int, batch_size_bytes: int) -> ProducerBatch | None:
        """Return the batch that takes a record of this size, or None."""
        if self.waiting:
            batch = self.waiting[-1]
            if batch.data is None and batch.attempts == 0 and batch.size_bytes + size_bytes <= batch_size_bytes:
                return batch
        return None

    def new_batch(self, now_s: float) -> ProducerBatch:
        """Create the next batch. It joins the queue once it holds a record (`take`)."""
        return ProducerBatch((self._created + 1,), now_s)

    def take(self, batch: ProducerBatch) -> None:
        """Append a new batch behind all others."""
        self._created += 1
        self.waiting.append(batch)

    @property
    def newest(self) -> tuple[int, ...]:
        """The number of the newest batch."""
        return (self._created,)

    def settled_up_to(self, number: tuple[int, ...]) -> bool:
        """Whether every batch up to this one is acknowledged or has failed."""
        return not (self.waiting and self.waiting[0].number[:1] <= number) and all(
            each.number[:1] > number for each in self.in_flight
        )

    # --- draining -----------------------------------------------------------------------------------------------

    def ready_at_s(self, linger_s: float, batch_size_bytes: int, *, flushing: bool) -> float | None:
        """Return when the first waiting batch may be sent; None if there is none."""
        if not self.waiting:
            return None
        first = self.waiting[0]
        full = len(self.waiting) > 1 or first.size_bytes >= batch_size_bytes or first.attempts > 0
        return max(self.retry_at_s, first.created_at_s + (0.0 if full or flushing else linger_s))

    def may_start(self, identity: ProducerIdentity, in_flight_max: int) -> bool:
        """Return whether the first waiting batch may be sent beside those in flight (see the rules above)."""
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
        """Take the first batch to send it; with idempotence assign a sequence number unless it has one."""
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
        """Remove the sequence numbers of waiting batches that are known to be missing in the log; none may be in
        flight.
        """
        self._restart = False
        for batch in self.waiting:
            if batch.sequence >= 0 and not batch.in_doubt:
                batch.assign(ProducerIdentity(), -1)

    # --- results of batches -------------------------------------------------------------------------------------

    def is_oldest(self, batch: ProducerBatch) -> bool:
        """Whether no earlier batch is outstanding."""
        return all(each.number >= batch.number for each in self.in_flight) and not (
            self.waiting and self.waiting[0].number < batch.number
        )

    def finish(self, batch: ProducerBatch) -> None:
        """Remove a batch that was acknowledged."""
        self.in_flight.remove(batch)
        self.retry_at_s, self.tries = 0.0, 0
        if batch.identity == self._identity:
            self._known = True

    def retry(self, batch: ProducerBatch, at_s: float) -> None:
        """Put the batch back among those that wait, to be sent again not before `at_s`."""
        self.in_flight.remove(batch)
        self._put_in_order(self.waiting, batch)
        self.retry_at_s = at_s

    def renumber(self, batch: ProducerBatch) -> None:
        """Put back a batch that is surely not in the log, to be sent under another identity; so are those after it."""
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
        """Give a batch up. Return whether it leaves a gap in the sequence, which makes the identity useless."""
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
        """Note that the batch may be in the log, unless one before it is known to be missing."""
        if self._gap is None or batch.identity != self._gap[0] or batch.number <= self._gap[1]:
            batch.in_doubt = True

    def _retire(self, missing: ProducerBatch) -> None:
        """Note that a batch of an identity is missing in the log. The broker accepts nothing after a gap, so the
        batches behind it are missing as well, and get new sequence numbers when all answers are in.
        """
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
