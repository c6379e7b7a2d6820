"""Dead letters as record batches.

A dead letter is the original record, with headers that say where it comes from and why it was given up. A record that
breaks a contract gets its offset only when the other records of its batch are appended. Its letter is made before that,
by a worker, with the likely offset, and the true offset is written into it later: so the offset is the last header of a
letter, and its digits are at the letter's end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.model import limits
from ottla.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.records.batch import ATTRIBUTES_AT, CRC_AT, HEADER_BYTES, NO_SEQUENCE, pack_crc_into
from ottla.records.build import assemble, put_record
from ottla.records.crc import crc32c
from ottla.records.record import Record

PREFIX = "ottla.dlq."


class _Sealed(NamedTuple):
    batch: bytearray
    offsets: list[int]
    ends: list[int]  # the end positions of each offset's digits in the batch


class Letters:
    """Collects letters for records of one partition in batches of `most_bytes`; a larger letter gets its own batch."""

    def __init__(self, topic: str, index: int, now_ms: int, most_bytes: int = limits.DEAD_LETTER_BATCH_BYTES) -> None:
        self._source = ((PREFIX + "topic", topic.encode()), (PREFIX + "partition", b"%d" % index))
        self._now_ms = now_ms
        self._most_bytes = most_bytes
        self._sealed: list[_Sealed] = []
        self._records = bytearray()
        self._offsets: list[int] = []
        self._ends: list[int] = []
        self.count = 0
        self.size_bytes = 0

    def add(self, record: Record, offset: int, reason: bytes, details: Iterable[tuple[str, bytes]]) -> None:
        """Add a letter: the record with its provenance. If the record was a dead letter already, the old provenance is
        dropped.
        """
        headers = (
            *(header for header in record.headers if not header[0].startswith(PREFIX)),
            *self._source,
            *((PREFIX + name, value) for name, value in details),
            (PREFIX + "reason", reason),
            (PREFIX + "timestamp", b"%d" % record.timestamp),
            (PREFIX + "offset", b"%d" % offset),
        )
        begin = len(self._records)
        put_record(self._records, len(self._offsets), 0, record.key, record.value, headers)
        if begin and len(self._records) + HEADER_BYTES > self._most_bytes:
            del self._records[begin:]
            self._seal()
            put_record(self._records, 0, 0, record.key, record.value, headers)
            begin = 0
        self.count += 1
        self.size_bytes += len(self._records) - begin
        self._offsets.append(offset)
        self._ends.append(HEADER_BYTES + len(self._records))

    def _seal(self) -> None:
        if self._offsets:
            batch = assemble(
                self._records,
                base_offset=0,
                leader_epoch=NO_LEADER_EPOCH,
                attributes=0,
                last_offset_delta=len(self._offsets) - 1,
                base_timestamp=self._now_ms,
                max_timestamp=self._now_ms,
                producer_id=NO_PRODUCER_ID,
                producer_epoch=NO_PRODUCER_EPOCH,
                base_sequence=NO_SEQUENCE,
                count=len(self._offsets),
            )
            self._sealed.append(_Sealed(batch, self._offsets, self._ends))
            self._records, self._offsets, self._ends = bytearray(), [], []

    def batches(self) -> list[bytearray]:
        """Return all batches; no letter may be added afterwards."""
        self._seal()
        return [each.batch for each in self._sealed]

    def move(self, by: int) -> bool:
        """Add `by` to the offsets in the letters, whose batches are made already. False: the new offsets need more
        digits, and nothing was changed. Offsets that need fewer digits get leading zeros.
        """
        if not by or not self._sealed:
            return True
        first, last = self._sealed[0].offsets[0], self._sealed[-1].offsets[-1]
        if by > 0 and len(str(last + by)) != len(str(first)):
            return False
        for batch, offsets, ends in self._sealed:
            for offset, end in zip(offsets, ends, strict=True):
                width = len(str(offset))
                batch[end - width : end] = b"%0*d" % (width, offset + by)
            pack_crc_into(batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
        return True
