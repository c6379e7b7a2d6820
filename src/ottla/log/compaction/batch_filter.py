"""Decides which records of a batch compaction keeps.

A record stays if it is the latest of its key within the range of the offset map (or lies behind that range), and a
tombstone only until the delete horizon of its batch. The horizon (KIP-534) is set when the batch is first cleaned: a
flag in the attributes, and base_timestamp replaced by the time after which the tombstones (or the marker) may be
removed; timestamp deltas are then relative to it.

Rules:
- Offsets never change: a batch keeps base offset, last offset, sequence and epoch whatever records it loses.
- The last batch of a producer that is still remembered, and the last batch of the round, stay as an empty header when
  their records are removed: the sequence and the end of the cleaned range must survive.
- Unchanged batches are copied as they are. Records of a changed one are copied byte for byte, at most with a new
  timestamp delta.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.log.compaction.offset_map import OffsetMap
from ottla.log.compaction.transactions import CleanedTxns
from ottla.model.ids import ProducerId
from ottla.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_FLAG,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
)
from ottla.records.build import assemble_like
from ottla.records.compress import compress
from ottla.records.record import Frame, frames, payload
from ottla.wire.varint import zigzag_bytes


class LastRecord(NamedTuple):
    """The last batch of a remembered producer: the offset of its last data, or -1 if only a marker of it is known."""

    last_data_offset: int
    epoch: int


class KeptBatch(NamedTuple):
    """A batch to be written into the cleaned segment."""

    data: Buffer
    last_offset: int
    max_timestamp: int
    record_count: int


@dataclass(slots=True)
class CleaningTally:
    """Counts of what a round read and wrote."""

    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    keyless: int = 0


@dataclass(slots=True)
class BatchFilter:
    """The filter of one round; batches must be passed in offset order."""

    offsets: OffsetMap
    txns: CleanedTxns
    producers: Mapping[ProducerId, LastRecord]
    end_offset: int  # the first offset that is not cleaned in this round
    now_ms: int
    delete_retention_ms: int
    tally: CleaningTally = field(default_factory=CleaningTally)

    def keep(self, view: Buffer, pos: int, header: BatchHeader) -> KeptBatch | None:
        """Return the batch as it should be written, or None if it is removed."""
        self.tally.bytes_read += header.size_bytes
        control = header.is_control
        if control:
            discardable = self.txns.control(view, pos, header)
            horizon = header.delete_horizon_ms
            discard = discardable and horizon is not None and horizon <= self.now_ms
        else:
            discard = discardable = self.txns.data(header)
        must_stay = header.next_offset == self.end_offset or self._is_last_of_producer(header)
        kept = None if discard else self._keep_records(view, pos, header, marker_done=control and discardable)
        if kept is None and must_stay:
            kept = _empty(header)
        if kept is not None:
            self.tally.bytes_written += len(kept.data)
            self.tally.records_written += kept.record_count
        return kept

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.producers.get(header.producer_id)
        if last is None or not header.has_producer_id:
            return False
        if last.last_data_offset >= 0:
            return header.last_offset == last.last_data_offset
        # Only a marker of the producer is known, and the marker carries the epoch that fences older instances.
        return header.is_control and header.producer_epoch == last.epoch

    def _keep_records(self, view: Buffer, pos: int, header: BatchHeader, *, marker_done: bool) -> KeptBatch | None:
        if header.count == 0:
            return None
        data = payload(view, pos, header)
        if header.is_control:
            staying, tombstones = list(frames(data, header)), False
        else:
            staying, tombstones = self._latest(data, header)
        self.tally.records_read += header.count
        if not staying:
            return None
        new_horizon = (tombstones or marker_done) and not header.has_delete_horizon
        if len(staying) == header.count and not new_horizon:
            whole = memoryview(view)[pos : pos + header.size_bytes]
            return KeptBatch(whole, header.last_offset, header.max_timestamp, header.count)
        return self._rebuild(data, header, staying, self.now_ms + self.delete_retention_ms if new_horizon else None)

    def _latest(self, data: bytes, header: BatchHeader) -> tuple[list[Frame], bool]:
        """Return the records that stay, and whether there are tombstones among them."""
        latest_offset, latest_of = self.offsets.latest_offset, self.offsets.get
        horizon = header.delete_horizon_ms
        keep_tombstones = horizon is None or self.now_ms < horizon
        staying: list[Frame] = []
        tombstones = False
        for frame in frames(data, header):
            if frame.offset <= latest_offset:
                if frame.key_end < 0:
                    self.tally.keyless += 1
                    continue
                if not (frame.has_value or keep_tombstones):
                    continue
                if frame.offset < latest_of(data[frame.key_start : frame.key_end]):
                    continue
            staying.append(frame)
            tombstones |= not frame.has_value
        return staying, tombstones

    def _rebuild(self, data: bytes, header: BatchHeader, staying: list[Frame], horizon_ms: int | None) -> KeptBatch:
        if horizon_ms is None:
            base_timestamp, attributes = header.base_timestamp, header.attributes
            packed = b"".join([data[frame.start : frame.end] for frame in staying])
        else:
            base_timestamp, attributes = horizon_ms, header.attributes | DELETE_HORIZON_FLAG
            packed = _with_base_timestamp(data, staying, horizon_ms)
        if header.attributes & CODEC_MASK:
            packed = compress(header.codec, packed)
        max_timestamp = header.max_timestamp
        if not header.is_log_append_time:
            max_timestamp = max(frame.timestamp for frame in staying)
        changed = header._replace(
            attributes=attributes, base_timestamp=base_timestamp, max_timestamp=max_timestamp, count=len(staying)
        )
        batch = assemble_like(changed, packed)
        return KeptBatch(batch, header.last_offset, max_timestamp, len(staying))


def _with_base_timestamp(data: bytes, staying: list[Frame], base_timestamp: int) -> bytes:
    out = bytearray()
    for frame in staying:
        body = bytearray((frame.attributes,))
        body += zigzag_bytes(frame.timestamp - base_timestamp)
        body += data[frame.body : frame.end]
        out += zigzag_bytes(len(body))
        out += body
    return bytes(out)


def _empty(header: BatchHeader) -> KeptBatch:
    """Return the batch without records: offsets, producer and times stay; codec and delete horizon are reset."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG)
    batch = assemble_like(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, count=0), b"")
    return KeptBatch(batch, header.last_offset, header.max_timestamp, 0)
