"""The contents of a Fetch answer for a cursor: its batches, and the cursor's position behind them. Pure.

Rules:
- Reading an answer moves nothing. The cursor moves when its owner takes the batches over (`ConsumerFetcher.collect`):
  an answer that was read and then lost for whatever reason is simply requested again.
- Batches arrive whole: a `RawBatch` has the range of offsets that was asked for.
- Control batches are skipped, and with `read_committed` so are those of aborted transactions.
- The CRC of every batch is checked unless `check_crc` is off. Batches before a damaged one are good: the damage is
  reported when the cursor stands right before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import NamedTuple

from ottla.client.consumer.offsets import Time
from ottla.client.errors import LogTruncated, check
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, NO_LEADER_EPOCH, LeaderEpoch, TopicPartition
from ottla.records import batch as batches_of
from ottla.records.batch import BatchHeader
from ottla.records.committed import AbortedFilter
from ottla.records.record import Columns, Headers, columns
from ottla.wire.messages.records.fetch import FetchResponse

PartitionAnswer = FetchResponse.FetchableTopicResponse.PartitionData
UNKNOWN_POSITION = -1


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Settings of fetches; Kafka's names and defaults, units last."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 * limits.MIB
    max_partition_bytes: int = limits.MIB
    read_committed: bool = False
    check_crc: bool = True


class RawBatch(NamedTuple):
    """One batch as it came from the broker, and the range of its offsets that was asked for."""

    partition: TopicPartition
    header: BatchHeader
    data: memoryview
    start: int
    end: int | None


class ConsumedRecord(NamedTuple):
    """A record with its topic, partition and offset."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int


_consumed_record = partial(tuple.__new__, ConsumedRecord)


class FetchCursor:
    """How far one partition has been fetched, and up to which offset it is wanted. With a `time` instead of a
    position, the leader is asked for the offset first.
    """

    __slots__ = (
        "busy",
        "end",
        "failure",
        "is_dropped",
        "last_epoch",
        "partition",
        "position",
        "replica",
        "retries",
        "time",
        "topic_id",
        "tried",
    )

    def __init__(
        self, partition: TopicPartition, start: int | Time, end: int | None = None, topic_id: bytes = NO_ID
    ) -> None:
        self.partition = partition
        self.topic_id = topic_id  # set once it is known; the position is valid only in the topic with this id
        self.time = start if isinstance(start, Time) else None
        self.position = UNKNOWN_POSITION if isinstance(start, Time) else start
        self.end = end
        self.last_epoch = NO_LEADER_EPOCH  # of the last batch fetched; lets the broker see a truncated log
        self.retries = 0
        self.busy = False  # a request for it is in flight, or its result was not collected yet
        self.failure: Exception | None = None  # why its leader has to be looked up
        self.is_dropped = False  # the owner has replaced it
        self.tried: tuple[int, LeaderEpoch] | None = None  # leader and leader epoch of the last attempt
        self.replica: tuple[int, float] | None = None  # a follower to fetch from instead of the leader, and until when

    @property
    def done(self) -> bool:
        return self.end is not None and self.position >= self.end


class Fetched(NamedTuple):
    """The result for one cursor: batches (perhaps none), or an error. `next_offset` is behind all batches, skipped
    ones included; for a cursor that had only a time, it is the offset of that time.
    """

    cursor: FetchCursor
    batches: list[RawBatch]
    next_offset: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    size_bytes: int = 0
    error: Exception | None = None
    next_epoch: LeaderEpoch = NO_LEADER_EPOCH


def read_answer(cursor: FetchCursor, answer: PartitionAnswer, options: ReadOptions) -> Fetched:
    """Return the wanted batches of one partition's answer. Raises if there is nothing but an error for this cursor."""
    check(answer.error_code)
    diverging = answer.diverging_epoch
    if diverging.end_offset >= 0:
        raise LogTruncated(cursor.partition, cursor.position, diverging.epoch, diverging.end_offset)
    position, epoch = cursor.position, cursor.last_epoch
    taken: list[RawBatch] = []
    size_bytes = 0
    if answer.records:
        view = memoryview(answer.records)
        filtered = AbortedFilter(_aborted(answer)) if options.read_committed else None
        try:
            for at, header in batches_of.headers(view):
                if cursor.end is not None and position >= cursor.end:
                    break
                if header.next_offset <= position:
                    continue
                data = view[at : at + header.size_bytes]
                if options.check_crc:
                    batches_of.check(data, 0, header)
                aborted = filtered is not None and filtered.is_aborted(header, data)
                if not header.is_control and not aborted:
                    taken.append(RawBatch(cursor.partition, header, data, position, cursor.end))
                    size_bytes += header.size_bytes
                position, epoch = header.next_offset, header.leader_epoch
        except Exception:
            if position == cursor.position:
                raise
        if position == cursor.position:
            # A broker sends at least one whole batch from the requested offset on; any other answer would loop for
            # ever.
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE, f"no whole batch came for offset {position} of {cursor.partition}"
            )
    return Fetched(
        cursor,
        taken,
        position,
        answer.high_watermark,
        answer.last_stable_offset,
        size_bytes,
        next_epoch=epoch,
    )


def _aborted(answer: PartitionAnswer) -> list[tuple[int, int]]:
    return [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]


def decode_batch(raw: RawBatch) -> Iterator[ConsumedRecord]:
    """Yield the records of a fetched batch that lie in the wanted range."""
    found = chain.from_iterable(map(partial(_rows, raw), columns(raw.data)))
    header, start, end = raw.header, raw.start, raw.end
    if start <= header.base_offset and (end is None or end >= header.next_offset):
        return found
    return (record for record in found if record.offset >= start and (end is None or record.offset < end))


def _rows(raw: RawBatch, found: Columns) -> Iterator[ConsumedRecord]:
    topic, partition = raw.partition
    rows = zip(repeat(topic), repeat(partition), *found, repeat(raw.header.leader_epoch), strict=False)
    return map(_consumed_record, rows)
