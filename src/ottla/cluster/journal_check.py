"""Walk: checks that the metadata log is undamaged, batch by batch, as it lies in the files.

Rules:
- No checksum covers where a batch begins and how long it is. So each batch must begin where the one before it ends, in
  offsets and in bytes, and the last batch must end with its file: otherwise damaged bytes would be taken for the end of
  the log.
- Nothing is changed; damage raises JournalError.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from ottla.cluster.state import JournalError
from ottla.log.files.scan import ScannedBatch, scan
from ottla.log.log import Log
from ottla.model.errors import ApiError
from ottla.records.batch import check


class Walk:
    """A walk from `offset` on, which must be the beginning of a batch or the end of the log."""

    def __init__(self, log: Log, offset: int) -> None:
        self._log = log
        self._offset = offset
        self._number = max(bisect_right(log.bases, offset) - 1, 0)  # the index of the current segment
        self._position = 0
        segment = log.segments[self._number]
        if segment.base_offset != offset:
            found = segment.find(offset)
            if found is None:
                raise JournalError(f"the metadata log cannot be read at offset {offset}")
            self._position = found[0]

    def to(self, end: int) -> Iterator[ScannedBatch]:
        """Yield the batches below `end`, which must be the end of a batch."""
        while self._offset < end:
            for batch in self._rest():
                yield batch
                if self._offset >= end:
                    break
            else:
                if not self._next():
                    break
        if self._offset != end:
            raise JournalError(f"the metadata log has offset {self._offset} in the place of {end}")

    def to_end(self) -> Iterator[ScannedBatch]:
        """Yield all batches that are left."""
        yield from self._rest()
        while self._next():
            yield from self._rest()
        if self._offset != self._log.next_offset:
            raise JournalError(f"the metadata log ends at {self._log.next_offset}, but has offset {self._offset - 1}")

    def _rest(self) -> Iterator[ScannedBatch]:
        """Yield the rest of the current segment."""
        file = self._log.segments[self._number].file
        for batch in scan(file, self._position, file.size, whole=True):
            header = batch.header
            try:
                check(batch.data, batch.at, header)
            except ApiError as error:
                raise JournalError(f"the metadata log is damaged at offset {self._offset}: {error}") from error
            if header.base_offset != self._offset or header.last_offset_delta < 0:
                raise JournalError(f"the metadata log is damaged at offset {self._offset}: it is {header.base_offset}")
            self._position = batch.position + header.size_bytes
            self._offset = header.next_offset
            yield batch
        if self._position != file.size:
            raise JournalError(f"the metadata log is damaged at offset {self._offset}: what follows is no batch")

    def _next(self) -> bool:
        """Go on to the next segment; False if there is none."""
        if self._number + 1 == len(self._log.segments):
            return False
        self._number += 1
        self._position = 0
        return True
