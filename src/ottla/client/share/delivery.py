"""A record that a share consumer has acquired: a `ConsumedRecord` that can be acknowledged.

Rules:
- A delivery is acknowledged once. Until the acknowledgement is sent, a later one replaces it; afterwards another one is
  a `ValueError`. Renewing is no acknowledgement: it may be repeated, and followed by one.
- `with delivery:` accepts it at the end of the block, and releases it when the block raises, unless the block has
  acknowledged it.
- Nothing here waits, so deliveries may be acknowledged from any thread.
"""

from collections.abc import Iterable
from enum import IntEnum
from types import TracebackType
from typing import NamedTuple, Protocol

from ottla.client.consumer.fetching import ConsumedRecord, RawBatch, decode_batch
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.records import batch as batches_of
from ottla.wire.messages.shares.share_fetch import ShareFetchResponse

PartitionAnswer = ShareFetchResponse.ShareFetchableTopicResponse.PartitionData


class Acknowledgement(IntEnum):
    """KIP-932's types of acknowledgement. A gap is an offset without a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Lease(Protocol):
    """The records that one fetch acquired from one partition: their consumer, and the end of their lock by the loop's
    clock.
    """

    until_s: float

    def acknowledge(self, delivery: "Delivery", kind: Acknowledgement) -> None: ...


class Delivery(ConsumedRecord):
    """A record, locked for this consumer until it is acknowledged or its lock runs out."""

    delivery_count: int  # how often it was delivered, this time included
    acknowledgement: Acknowledgement | None
    lease: Lease

    @classmethod
    def of(cls, record: ConsumedRecord, delivery_count: int, lease: Lease) -> "Delivery":
        made: Delivery = tuple.__new__(cls, record)
        made.delivery_count = delivery_count
        made.acknowledgement = None
        made.lease = lease
        return made

    def accept(self) -> None:
        """Acknowledge that the record was processed."""
        self.lease.acknowledge(self, Acknowledgement.ACCEPT)

    def release(self) -> None:
        """Release the record for another attempt, perhaps by this consumer."""
        self.lease.acknowledge(self, Acknowledgement.RELEASE)

    def reject(self) -> None:
        """Reject the record: it cannot be processed."""
        self.lease.acknowledge(self, Acknowledgement.REJECT)

    def renew(self) -> None:
        """Extend the lock of the record."""
        self.lease.acknowledge(self, Acknowledgement.RENEW)

    @property
    def is_settled(self) -> bool:
        """Whether the record was acknowledged."""
        return self.acknowledgement is not None and self.acknowledgement is not Acknowledgement.RENEW

    def __enter__(self) -> "Delivery":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_settled:
            (self.accept if error is None else self.release)()


class Acquired(NamedTuple):
    """The contents of an answer for one partition: records with their delivery counts; offsets without a record; and
    offsets whose records cannot be read, with the reason. Offsets are ranges: a gap may be of any size.
    """

    records: list[tuple[ConsumedRecord, int]]
    gaps: list[range]
    unreadable: list[range]
    error: ApiError | None


def acquired_of(partition: TopicPartition, answer: PartitionAnswer, *, check_crc: bool) -> Acquired:
    """Return the records that this consumer acquired, out of batches in which others may be acquired by other
    consumers.
    """
    ranges = sorted((each.first_offset, each.last_offset, each.delivery_count) for each in answer.acquired_records)
    found = Acquired([], [], [], None)
    if not ranges:
        return found
    records: list[ConsumedRecord] = []
    bad_from, error = _read(partition, answer, ranges[0][0], check_crc, records)
    at = 0
    for first, last, count in ranges:
        expected = first
        while at < len(records) and records[at].offset <= last:
            record = records[at]
            at += 1
            if record.offset >= expected:
                _add(found.gaps, expected, record.offset)
                found.records.append((record, count))
                expected = record.offset + 1
        good_until = last + 1 if bad_from is None else min(max(bad_from, expected), last + 1)
        _add(found.gaps, expected, good_until)
        _add(found.unreadable, good_until, last + 1)
    return found._replace(error=error)


def _add(ranges: list[range], first: int, end: int) -> None:
    if first < end:
        ranges.append(range(first, end))


def _read(
    partition: TopicPartition, answer: PartitionAnswer, first: int, check_crc: bool, records: list[ConsumedRecord]
) -> tuple[int | None, ApiError | None]:
    """Read all records from `first` on; return (None, None), or the first offset that cannot be read, and the error."""
    readable_to = first
    view = memoryview(answer.records)
    try:
        for at, header in batches_of.headers(view):
            if header.last_offset >= first and not header.is_control:
                readable_to = max(header.base_offset, first)
                data = view[at : at + header.size_bytes]
                if check_crc:
                    batches_of.check(data, 0, header)
                records.extend(decode_batch(RawBatch(partition, header, data, first, None)))
            readable_to = max(header.next_offset, first)
    except ApiError as error:
        return readable_to, error
    return None, None


class Acknowledgements:
    """The pending acknowledgements of one partition: of records that were handed out one by one, and of ranges that
    never were (gaps, and unreadable records).
    """

    __slots__ = ("offsets", "ranges")

    def __init__(self) -> None:
        self.offsets: dict[int, Acknowledgement] = {}
        self.ranges: list[tuple[range, Acknowledgement]] = []

    @property
    def renews(self) -> bool:
        return Acknowledgement.RENEW in self.offsets.values()

    def runs(self) -> list[tuple[int, int, list[int]]]:
        """Return (first, last, types) in order; a single type stands for all offsets."""
        whole = [(each[0], each[-1], [int(kind)]) for each, kind in self.ranges]
        return sorted(whole + runs(self.offsets.items()))


def runs(offsets: Iterable[tuple[int, Acknowledgement]]) -> list[tuple[int, int, list[int]]]:
    """Return (first, last, types) of consecutive offsets; a single type stands for all if they agree."""
    found: list[tuple[int, int, list[int]]] = []
    for offset, kind in sorted(offsets):
        if found and found[-1][1] == offset - 1:
            first, _, kinds = found[-1]
            kinds.append(int(kind))
            found[-1] = (first, offset, kinds)
        else:
            found.append((offset, offset, [int(kind)]))
    return [(first, last, kinds[:1] if len(set(kinds)) == 1 else kinds) for first, last, kinds in found]
