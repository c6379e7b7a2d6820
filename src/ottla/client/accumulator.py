"""Records on their way: batches per partition, in order, each with its place in the producer's sequence.

Pure bookkeeping without I/O; `client.producer` fills it, drains it and reports what became of each batch.

Rules:
- The first batch of a partition's queue is the only one that may be under way; so retries cannot overtake, and the
  sequence numbers of a rejected batch can be given to the next one.
- A batch that was sent once is sent again with the same bytes: same producer id, epoch and sequence, which is what lets
  the broker recognise it.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from ottla.model.ids import TopicPartition
from ottla.records.batch import HEADER_BYTES
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import Headers, Record

# Varints of length, deltas, key and value sizes and header count: what a record takes besides its own bytes, at most.
RECORD_OVERHEAD_BYTES = 21
HEADER_OVERHEAD_BYTES = 10
_SEQUENCE_SPAN = 2**31  # sequence numbers wrap from 2^31 - 1 to 0


class RecordMetadata(NamedTuple):
    """Where an acknowledged record lies; the offset is -1 when the broker did not tell (acks=0, old duplicates)."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class ProducerId(NamedTuple):
    """The identity that makes sends idempotent; -1 without idempotence."""

    producer_id: int = -1
    epoch: int = -1


def estimated_size_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """An upper bound of what the record takes in an uncompressed batch."""
    size = RECORD_OVERHEAD_BYTES + (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
    for name, content in headers:
        size += HEADER_OVERHEAD_BYTES + 4 * len(name) + (len(content) if content is not None else 0)
    return size


class Batch:
    """Records of one partition that travel together, and the futures of those who sent them."""

    __slots__ = (
        "attempts",
        "created_at_s",
        "data",
        "futures",
        "identity",
        "in_doubt",
        "records",
        "sequence",
        "size_bytes",
    )

    def __init__(self, created_at_s: float) -> None:
        self.created_at_s = created_at_s
        self.records: list[Record] = []
        self.futures: list[asyncio.Future[RecordMetadata]] = []
        self.size_bytes = HEADER_BYTES
        self.attempts = 0
        self.in_doubt = False  # an attempt ended without an answer: the broker may have it
        self.identity = ProducerId()
        self.sequence = -1
        self.data: bytearray | None = None  # built at the first attempt, the same for every further one

    def add(self, record: Record, size_bytes: int, future: "asyncio.Future[RecordMetadata]") -> None:
        self.records.append(record)
        self.futures.append(future)
        self.size_bytes += size_bytes

    def build(self, codec: Codec, level: int | None) -> bytearray:
        if self.data is None:
            self.data = build_batch(
                self.records,
                codec=codec,
                level=level,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.epoch,
                base_sequence=self.sequence,
            )
        return self.data

    def halves(self) -> "list[Batch]":
        """The same records in two batches, for a broker that finds this one too large."""
        middle = len(self.records) // 2
        halves = []
        for part in (slice(None, middle), slice(middle, None)):
            half = Batch(self.created_at_s)
            for record, future in zip(self.records[part], self.futures[part], strict=True):
                half.add(record, estimated_size_bytes(record.key, record.value, record.headers), future)
            halves.append(half)
        return halves

    def acknowledge(self, partition: TopicPartition, base_offset: int, log_append_time: int) -> None:
        topic, index = partition
        for position, (record, future) in enumerate(zip(self.records, self.futures, strict=True)):
            if not future.done():
                offset = base_offset + position if base_offset >= 0 else -1
                timestamp = log_append_time if log_append_time >= 0 else record.timestamp
                future.set_result(RecordMetadata(topic, index, offset, timestamp))

    def fail(self, error: BaseException) -> None:
        for future in self.futures:
            if not future.done():
                future.set_exception(error)
                # `flush` and the next send may be all that the caller looks at: no warning for the rest.
                future.exception()


class PartitionQueue:
    """The batches of one partition that are not acknowledged yet, oldest first."""

    __slots__ = ("batches", "identity", "in_flight", "next_sequence", "partition", "retry_at_s")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.batches: deque[Batch] = deque()
        self.in_flight = False
        self.retry_at_s = 0.0
        self.identity = ProducerId()
        self.next_sequence = 0

    def append(
        self,
        record: Record,
        size_bytes: int,
        future: "asyncio.Future[RecordMetadata]",
        *,
        batch_size_bytes: int,
        now_s: float,
    ) -> None:
        batch = self.batches[-1] if self.batches else None
        if batch is None or batch.data is not None or batch.size_bytes + size_bytes > batch_size_bytes:
            batch = Batch(now_s)
            self.batches.append(batch)
        batch.add(record, size_bytes, future)

    def ready_at_s(self, linger_s: float, batch_size_bytes: int, *, flushing: bool) -> float | None:
        """When the first batch may leave; None while there is none or it is under way."""
        if self.in_flight or not self.batches:
            return None
        first = self.batches[0]
        full = len(self.batches) > 1 or first.size_bytes >= batch_size_bytes or first.attempts > 0
        return max(self.retry_at_s, first.created_at_s + (0.0 if full or flushing else linger_s))

    def start(self, identity: ProducerId) -> Batch:
        """Mark the first batch as under way, with a place in the sequence if it has none yet."""
        batch = self.batches[0]
        self.in_flight = True
        if batch.data is None and identity.producer_id >= 0:
            if self.identity != identity:
                self.identity, self.next_sequence = identity, 0
            batch.identity, batch.sequence = identity, self.next_sequence
        batch.attempts += 1
        return batch

    def finish(self) -> Batch:
        """The first batch is in the log: its sequence numbers are used up."""
        batch = self.batches.popleft()
        self.in_flight = False
        self.retry_at_s = 0.0
        if batch.identity == self.identity and batch.sequence >= 0:
            self.next_sequence = (batch.sequence + len(batch.records)) % _SEQUENCE_SPAN
        return batch

    def drop(self) -> Batch:
        """The first batch surely is not in the log: its sequence numbers are free for the next one."""
        self.in_flight = False
        self.retry_at_s = 0.0
        return self.batches.popleft()

    def split(self) -> None:
        """Replace the first batch, which was too large, by its halves."""
        self.batches.extendleft(reversed(self.drop().halves()))

    def rebuild(self) -> None:
        """The first batch goes again under a new identity, because the broker forgot the old one."""
        self.in_flight = False
        self.batches[0].data = None

    def retry(self, at_s: float) -> None:
        self.in_flight = False
        self.retry_at_s = at_s
