"""Claims about a log, checked against a history of everything that clients saw.

Guarantees (per run, chosen by the scenario):
- `SAFE`: every crash of the run is one that the durability setting covers (process crash: page cache; power loss:
  synced before the acknowledgement). No record that was acknowledged or read is ever lost.
- `AT_RISK`: power may be lost without syncing. The end of a log may then be lost, acknowledged or not, and its offsets
  be given to other records: claims 2, 3 and 7 are not checked; everything else still holds.

- `ROTTEN`: bits flip on the disks. Anything may be lost or unreadable; only claim 1 is checked: damaged data is never
  served.

Claims:
1. none invented: every record read was sent, by that producer to that partition, and its content is unharmed;
2. none lost: an acknowledged record is in the log at the offset that its producer was told;
3. stable: an offset once read or acknowledged never shows another record, and never disappears again;
4. dense: a reader sees every offset from where it began, without gaps;
5. none duplicated: a record of an idempotent producer is in the log once, whatever was retried;
6. none reordered: the records of one producer lie in a partition in the order in which they were sent;
7. log start and end offsets never go back, and no record is deleted without a request. (In a cluster the start may go
   back: followers checkpoint it only periodically, as in Kafka, and one that crashed may become leader.)

Violations are collected, not raised: code under test could catch an exception, and the first one is rarely the only
one.
"""

from __future__ import annotations

import enum
import hashlib
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model.ids import TopicPartition

_HEAD = struct.Struct(">8sHHIQ")  # content hash, writer, partition, sequence, size of the filling


class Guarantee(enum.Enum):
    SAFE = "safe"
    AT_RISK = "at risk"
    ROTTEN = "rotten"


class SimBounds(NamedTuple):
    """The start and end offsets of a partition."""

    start_offset: int
    end_offset: int


NO_BOUNDS = SimBounds(0, 0)


class Payload(NamedTuple):
    """The identity of a record of the workload; sequences count per writer, over all partitions."""

    writer: int
    partition: int
    sequence: int


class SimWriter(NamedTuple):
    """What a producer promises: an idempotent one writes no duplicates, one with acknowledgements keeps its order."""

    number: int
    idempotent: bool
    acks: int


def encode_payload(payload: Payload, filling: bytes) -> bytes:
    head = _HEAD.pack(bytes(8), payload.writer, payload.partition, payload.sequence, len(filling))
    body = head[8:] + filling
    return hashlib.blake2b(body, digest_size=8).digest() + body


def decode_payload(value: bytes | None) -> Payload | None:
    """Return the payload; None if this is not an undamaged record of the workload."""
    if value is None or len(value) < _HEAD.size:
        return None
    digest, writer, partition, sequence, size_bytes = _HEAD.unpack_from(value)
    if len(value) != _HEAD.size + size_bytes or hashlib.blake2b(value[8:], digest_size=8).digest() != digest:
        return None
    return Payload(writer, partition, sequence)


@dataclass(slots=True)
class _Partition:
    """Everything that is known about one partition."""

    seen: dict[int, Payload] = field(default_factory=dict)  # by offset: records that were read or acknowledged
    acknowledged: dict[Payload, int] = field(default_factory=dict)
    bounds: SimBounds = NO_BOUNDS
    erased_offset: int = 0  # the highest log start that a client asked for


class History:
    """What clients did and saw, and the violations found in it."""

    def __init__(self, guarantee: Guarantee, *, replicated: bool = False) -> None:
        """`replicated`: only records acknowledged by all in-sync replicas must survive."""
        self.guarantee = guarantee
        self._replicated = replicated
        self.violations: list[str] = []
        self.writers: dict[int, SimWriter] = {}
        self.sent: dict[Payload, None] = {}
        self.failed: dict[Payload, None] = {}
        self.acknowledged = 0
        self.reads = 0
        self._partitions: dict[TopicPartition, _Partition] = {}

    def blame(self, what: str) -> None:
        if len(self.violations) < 100:  # one broken invariant may be reported a thousand times
            self.violations.append(what)

    # -- what producers report

    def add_writer(self, writer: SimWriter) -> None:
        self.writers[writer.number] = writer

    def sending(self, payload: Payload) -> None:
        self.sent[payload] = None

    def acked(self, partition: TopicPartition, payload: Payload, offset: int) -> None:
        if offset < 0:
            return  # acks=0: nothing is promised
        self.acknowledged += 1
        if self.guarantee is not Guarantee.SAFE or (self._replicated and self.writers[payload.writer].acks != -1):
            return  # the record may be lost, and its offset reused
        known = self._of(partition)
        known.acknowledged[payload] = offset
        self._settle(partition, offset, payload, "acknowledged")

    def gave_up(self, payload: Payload) -> None:
        """Note that the producer reported a failure; the record may be in the log or not."""
        self.failed[payload] = None

    # -- what consumers report

    def read(self, partition: TopicPartition, offset: int, value: bytes | None, expected_offset: int | None) -> None:
        """Note a record that was read; `expected_offset` is where the reader was to go on (None for the first)."""
        self.reads += 1
        if self.guarantee is Guarantee.ROTTEN:
            expected_offset = None
        if expected_offset is not None and offset != expected_offset:
            self.blame(f"{name(partition)}: not dense: offset {offset} came where {expected_offset} was to come")
        payload = decode_payload(value)
        if payload is None:
            self.blame(f"{name(partition)}: corrupt record at offset {offset}: {value!r:.80}")
            return
        if payload not in self.sent or payload.partition != partition.partition:
            self.blame(f"{name(partition)}: invented record at offset {offset}: {payload} was never sent there")
        self._settle(partition, offset, payload, "read")

    def known_bounds(self, partition: TopicPartition) -> SimBounds:
        """Return the highest log start and end that any client was told so far; call it before asking the broker."""
        return self._of(partition).bounds

    def told_bounds(self, partition: TopicPartition, told: SimBounds, before: SimBounds) -> None:
        """Note the answer of ListOffsets; `before` is what was known before the request (answers may overtake each
        other).
        """
        if self.guarantee is Guarantee.ROTTEN:
            return
        known = self._of(partition)
        if self.guarantee is Guarantee.SAFE:
            if told.start_offset < before.start_offset and not self._replicated:
                self.blame(f"{name(partition)}: log start went back from {before.start_offset} to {told.start_offset}")
            if told.end_offset < before.end_offset:
                self.blame(f"{name(partition)}: end went back from {before.end_offset} to {told.end_offset}")
        if told.start_offset > known.erased_offset:
            self.blame(
                f"{name(partition)}: log start {told.start_offset}, but only {known.erased_offset} was asked for"
            )
        if told.start_offset > told.end_offset:
            self.blame(f"{name(partition)}: log start {told.start_offset} lies behind the end {told.end_offset}")
        if self.guarantee is Guarantee.SAFE:
            known.bounds = SimBounds(
                max(known.bounds.start_offset, told.start_offset), max(known.bounds.end_offset, told.end_offset)
            )

    # -- what erasers report

    def erasing(self, partition: TopicPartition, before_offset: int) -> None:
        known = self._of(partition)
        known.erased_offset = max(known.erased_offset, before_offset)

    def may_be_erased(self, partition: TopicPartition, offset: int) -> bool:
        """Whether a client asked to delete this offset; up to there the start of a replicated log may go back and
        forth.
        """
        return self._replicated and offset < self._of(partition).erased_offset

    def erased(self, partition: TopicPartition, start_offset: int) -> None:
        """Note that DeleteRecords succeeded, and the log starts at `start_offset` now."""
        known = self._of(partition)
        if self.guarantee is Guarantee.SAFE:
            known.bounds = SimBounds(max(known.bounds.start_offset, start_offset), known.bounds.end_offset)

    # -- the end

    def final_log(self, partition: TopicPartition, start_offset: int, records: list[tuple[int, bytes | None]]) -> None:
        """Note the whole partition, read from its start when all is quiet; from now on nothing in it may change."""
        if self.guarantee is Guarantee.ROTTEN:
            for offset, value in records:
                self.read(partition, offset, value, None)
            return
        self.guarantee = Guarantee.SAFE
        expected = start_offset
        content: dict[int, Payload] = {}
        for offset, value in records:
            self.read(partition, offset, value, expected)
            expected = offset + 1
            payload = decode_payload(value)
            if payload is not None:
                content[offset] = payload
        known = self._of(partition)
        for offset, payload in known.seen.items():
            if offset >= start_offset and offset not in content:
                what = "acknowledged" if known.acknowledged.get(payload) == offset else "read"
                self.blame(
                    f"{name(partition)}: lost: {payload} was {what} at offset {offset}; the log ends at {expected}"
                )
        self._check_duplicates(partition, content)
        self._check_order(partition, content)

    def content(self, partition: TopicPartition) -> dict[int, Payload]:
        """Return the records that are known to be in the log, by offset."""
        return self._of(partition).seen

    def _check_duplicates(self, partition: TopicPartition, content: dict[int, Payload]) -> None:
        found: dict[Payload, int] = {}
        for offset, payload in content.items():
            if payload in found and self._is_exactly_once(payload):
                self.blame(f"{name(partition)}: duplicate of {payload} at offsets {found[payload]} and {offset}")
            found.setdefault(payload, offset)

    def _check_order(self, partition: TopicPartition, content: dict[int, Payload]) -> None:
        """Check that acknowledged records, and all records of idempotent producers, lie in the order in which they were
        sent.

        Records that the producer gave up are exempt: they may arrive late. Without idempotence there may be copies of
        retried records anywhere; only the acknowledged one counts.
        """
        placed = [(offset, payload) for payload, offset in self._of(partition).acknowledged.items()]
        placed += [(offset, payload) for offset, payload in content.items() if self._is_exactly_once(payload)]
        last: dict[int, int] = {}
        for offset, payload in sorted(placed):
            if payload in self.failed:
                continue
            later = last.get(payload.writer, -1)
            if payload.sequence < later:
                self.blame(f"{name(partition)}: reordered: {payload} at {offset} comes after sequence {later}")
            last[payload.writer] = payload.sequence

    def _is_exactly_once(self, payload: Payload) -> bool:
        writer = self.writers.get(payload.writer)
        return writer is not None and writer.idempotent

    def _of(self, partition: TopicPartition) -> _Partition:
        known = self._partitions.get(partition)
        if known is None:
            known = self._partitions[partition] = _Partition()
        return known

    def _settle(self, partition: TopicPartition, offset: int, payload: Payload, how: str) -> None:
        if self.guarantee is not Guarantee.SAFE:
            return
        before = self._of(partition).seen.setdefault(offset, payload)
        if before != payload and not self.may_be_erased(partition, offset):
            self.blame(f"{name(partition)}: offset {offset} was {before} and is now {how} as {payload}")


def name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
