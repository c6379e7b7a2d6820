"""ShareGroupLetters: makes the dead letters of records that a share group gives up.

The batches of these records are on disk, compressed as their producers chose. They are read, and letters are made of
them, in steps: the first few on the loop, the others by a worker (`server/storage/batch_looks.py`). The log is read
slice by slice: the letters of one slice are appended to the dead-letter topic before the next ones are made, so that
few are in memory.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator

from ottla.log.files.disk import FileSlice, StorageError
from ottla.log.steps import Steps
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import BatchHeader, headers
from ottla.records.record import Record, decode, payload, rows
from ottla.replica.partition import Partition
from ottla.server.dead_letters.letters import Letters
from ottla.server.storage.batch_looks import BatchLooks
from ottla.shares.partition.terms import Dead, GiveUpReason

log = logging.getLogger(__name__)

_STEPS_HERE = 8
_REASONS = {GiveUpReason.REJECTED: b"rejected", GiveUpReason.DELIVERY_LIMIT: b"delivery-limit"}


class ShareGroupLetters:
    """The records `dead` of one partition, which one group gives up. `place` is called with the batches of letters,
    slice by slice, and may raise ApiError; `done` is called with None when all are placed, or with the error.
    """

    def __init__(
        self,
        source: Partition,
        group_id: str,
        dead: Iterable[Dead],
        make: Callable[[], Letters],
        place: Callable[[list[bytearray]], None],
        done: Callable[[ApiError | None], None],
    ) -> None:
        self._source = source
        self._group_id = group_id
        self._dead = sorted(dead)
        self._make = make
        self._place = place
        self._done = done
        self._offset = 0

    def go_on(self, looks: BatchLooks) -> None:
        try:
            first, slice_ = self._next_slice()
        except ApiError as error:
            self._done(error)
            return
        if slice_ is None:
            self._done(None)
            return
        reading = _Reading(slice_, self._source.name, self._group_id, self._dead, first, self._make())

        def read(_: object) -> None:
            try:
                if reading.refusal is not None:
                    raise reading.refusal
                self._place(reading.letters.batches())
            except ApiError as error:
                self._done(error)
                return
            self._offset = max(reading.next_offset, first + 1)
            self.go_on(looks)

        if looks.allow(limits.LOOKED_AT_ON_LOOP_BYTES):
            for _ in range(_STEPS_HERE):
                if reading.is_heavy or reading.step():
                    break
        if reading.done:
            read(reading)
        else:
            looks.search(reading, read)

    def _next_slice(self) -> tuple[int, FileSlice | None]:
        """Return the next given-up offset that the log still has, and the slice of the log that begins there."""
        where = self._source.log
        while self._dead:
            offset = max(self._dead[0].first, self._offset, where.log_start_offset)
            if offset <= self._dead[0].last:
                try:
                    found = where.read(offset, limits.SCAN_READ_BYTES, max_offset=self._source.high_watermark)
                    return offset, found.slice
                except StorageError as error:
                    raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            self._dead.pop(0)
        return 0, None


class _Reading(Steps):
    """Makes the letters of the given-up records in one slice, in steps."""

    def __init__(
        self, slice_: FileSlice, name: str, group_id: str, dead: list[Dead], first: int, letters: Letters
    ) -> None:
        super().__init__(self._read())
        self.letters = letters
        self.next_offset = 0
        self.is_heavy = False  # the next step is too long for the loop
        self._slice = slice_
        self._name = name
        self._group = ("group", group_id.encode())
        self._first = first
        self._dead = dead
        self._lasts = [each.last for each in dead]

    def _read(self) -> Iterator[None]:
        data = self._slice.read()
        for number, (at, header) in enumerate(headers(data)):
            if number % limits.CHECKED_AT_ONCE_RECORDS == 0:
                yield
            if header.base_offset > self._lasts[-1]:
                return
            self.next_offset = header.next_offset
            if header.is_control or self._of(header.base_offset, header.last_offset) is None:
                continue
            found: list[tuple[Record, Dead]] = []
            try:
                unpacked = yield from self._unpacked(data, at, header)
                yield from self._find(unpacked, header, found)
            except ApiError as error:  # the records are invalid: no letter could contain them
                log.warning(
                    "%s: the batch at %d is given up without a letter: %s", self._name, header.base_offset, error
                )
                continue
            for count, (record, dead) in enumerate(found, 1):
                details = (self._group, ("delivery-count", b"%d" % dead.count))
                self.letters.add(record, record.offset, _REASONS[dead.reason], details)
                if not count % limits.CHECKED_AT_ONCE_RECORDS:
                    yield

    def _unpacked(self, data: bytes, at: int, header: BatchHeader) -> Generator[None, None, bytes]:
        if header.size_bytes <= limits.LOOKED_AT_ON_LOOP_PACKED_BYTES:
            try:
                return payload(data, at, header, limits.LOOKED_AT_ON_LOOP_BYTES)
            except ApiError as error:
                if error.code != ErrorCode.MESSAGE_TOO_LARGE:
                    raise
        self.is_heavy = True
        yield
        unpacked = payload(data, at, header)
        yield
        return unpacked

    def _find(self, unpacked: bytes, header: BatchHeader, found: list[tuple[Record, Dead]]) -> Iterator[None]:
        for portion in decode(unpacked, header):
            for record in rows(portion):
                dead = self._of(record.offset, record.offset)
                if dead is not None and record.offset >= self._first:
                    found.append((record, dead))
            yield

    def _of(self, first: int, last: int) -> Dead | None:
        """Return the first given-up range that overlaps these offsets, or None."""
        at = bisect_left(self._lasts, first)
        return self._dead[at] if at < len(self._dead) and self._dead[at].first <= last else None
