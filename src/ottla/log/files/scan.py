"""Iterates over the batches of a segment file in large reads; for recovery, lookups by time, truncation and compaction.

Rules: a scan never raises for damage, it ends: at the end of the range, at an incomplete batch, or where the bytes
cannot be a batch. The caller compares where it ended with where it should have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from ottla.log.files.disk import File, StorageError
from ottla.model.errors import ApiError
from ottla.model.limits import SCAN_READ_BYTES
from ottla.records.batch import HEADER_BYTES, MAGIC, PREFIX_BYTES, BatchHeader, check, read_header

# The smallest length field of formats v0 and v1, which Kafka 4 may still find in very old segments.
_OLD_LENGTH_MIN = 14
_OLD_CRC_BYTES = 4  # bytes of the CRC, which come before the message that it covers


class ScannedBatch(NamedTuple):
    """One batch: its position in the file and in the bytes just read.

    The bytes are complete only if the scan reads whole batches.
    """

    position: int
    header: BatchHeader
    data: memoryview
    at: int

    def view(self) -> memoryview:
        return self.data[self.at : self.at + self.header.size_bytes]


def scan(file: File, start: int, end: int, *, whole: bool, read_bytes: int = SCAN_READ_BYTES) -> Iterator[ScannedBatch]:
    """Yield the batches between two positions. With `whole`, `data` holds each batch completely.

    Otherwise only its header is certain to be there.
    """
    position = start
    data = memoryview(b"")
    first = start  # the file position of data[0]
    while end - position >= HEADER_BYTES:
        at = position - first
        if len(data) - at < HEADER_BYTES:
            data, first, at = _read(file, position, min(read_bytes, end - position)), position, 0
            if len(data) < HEADER_BYTES:
                return
        header = read_header(data, at)
        if header.magic != MAGIC or header.length < HEADER_BYTES - PREFIX_BYTES:
            _refuse_old_format(file, position, header)
            return
        size_bytes = header.length + PREFIX_BYTES
        if size_bytes > end - position:
            return
        if whole and len(data) - at < size_bytes:
            data, first, at = _read(file, position, min(max(read_bytes, size_bytes), end - position)), position, 0
            if len(data) < size_bytes:
                return
        yield ScannedBatch(position, header, data, at)
        position += size_bytes


def is_sound(batch: ScannedBatch) -> bool:
    """Whether the checksum is right, of a batch that was read whole."""
    try:
        check(batch.data, batch.at, batch.header)
    except ApiError:
        return False
    return True


def find_batch(file: File, start: int, offset: int) -> int | None:
    """Return the position, from `start` on, of the batch that begins with `offset`, whatever bytes come before it."""
    wanted = offset.to_bytes(8, "big")
    position = start
    while file.size - position >= HEADER_BYTES:
        data = file.read(position, SCAN_READ_BYTES)
        at = data.find(wanted)
        while at >= 0:
            for batch in scan(file, position + at, file.size, whole=True, read_bytes=HEADER_BYTES):
                if is_sound(batch):
                    return position + at
                break
            at = data.find(wanted, at + 1)
        position += len(data) - len(wanted) + 1
    return None


def _read(file: File, position: int, size_bytes: int) -> memoryview:
    return memoryview(file.read(position, size_bytes))


def _refuse_old_format(file: File, position: int, header: BatchHeader) -> None:
    """Raise if these are records of the formats v0 and v1: cutting them off as damage would destroy good old records.

    A torn v2 batch can look like one of them if zeros follow its length; only the CRC-32 of the old formats can tell.
    """
    if header.magic in (0, 1) and _OLD_LENGTH_MIN <= header.length <= file.size - position - PREFIX_BYTES:
        message = file.read(position + PREFIX_BYTES, header.length)
        if crc32(message[_OLD_CRC_BYTES:]) == int.from_bytes(message[:_OLD_CRC_BYTES], "big"):
            raise StorageError(
                0, f"{file.path} holds records of format v{header.magic} at {position}; only v2 can be served"
            )
