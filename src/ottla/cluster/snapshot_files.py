"""The snapshot files beside the metadata log: `<offset>-<epoch>.checkpoint`, as Kafka names them.

Rules:
- A file under its final name is complete and synced: until then it has another name.
- The two newest snapshots are kept: one to start from, one in case the first cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ottla.cluster import journal
from ottla.cluster.journal import Control, Item
from ottla.cluster.state import JournalError
from ottla.log.durable import RewrittenFile
from ottla.log.files.disk import Directory, read_all
from ottla.model.ids import LeaderEpoch
from ottla.raft.journal import EMPTY_LOG, OffsetAndEpoch

SNAPSHOTS_KEPT = 2
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_UNFINISHED = ".part"


def is_first_snapshot(name: str) -> bool:
    """Whether a file, complete or not, is the snapshot before the first record, which only formatting writes."""
    return name.removesuffix(_UNFINISHED) == _name(EMPTY_LOG)


class SnapshotFiles:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        names = directory.list()
        for name in names:
            if name.endswith(_UNFINISHED) and _NAME.fullmatch(name.removesuffix(_UNFINISHED)):
                directory.remove(name)  # an interrupted write or download, which would begin anew
        found = [match for name in names if (match := _NAME.fullmatch(name)) is not None]
        self.places = sorted(OffsetAndEpoch(int(match[1]), LeaderEpoch(int(match[2]))) for match in found)

    @property
    def earliest(self) -> OffsetAndEpoch | None:
        return self.places[0] if self.places else None

    @property
    def latest(self) -> OffsetAndEpoch | None:
        return self.places[-1] if self.places else None

    def check(self, place: OffsetAndEpoch) -> list[Control]:
        """Return the control records of a snapshot; JournalError if it is damaged."""
        name = _name(place)
        return journal.check_snapshot(read_all(self._directory.open(name)), name)

    def items(self, place: OffsetAndEpoch) -> Iterator[Item]:
        """Yield the items of a snapshot one by one."""
        name = _name(place)
        return journal.snapshot_items(read_all(self._directory.open(name)), name)

    def read(self, place: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """Return the file's size and a piece of it; None if there is no such snapshot."""
        if place not in self.places:
            return None
        file = self._directory.open(_name(place))
        return file.size, file.read(position, max_bytes) if 0 <= position < file.size else b""

    def write(self, place: OffsetAndEpoch, pieces: Iterable[bytes | bytearray]) -> None:
        for sync in self.writing(place, pieces):
            if sync is not None:
                sync()

    def writing(
        self, place: OffsetAndEpoch, pieces: Iterable[bytes | bytearray]
    ) -> Iterator[Callable[[], None] | None]:
        """Write a snapshot piece by piece; it is complete when the iterator ends. A yielded callable must be called
        before the next step.
        """
        unfinished = _name(place) + _UNFINISHED
        file = self._directory.open(unfinished, create=True)
        try:
            file.truncate(0)
            for piece in pieces:
                file.append(piece)
                yield None
        finally:
            file.close()
        yield partial(self._make_last, place)
        self.places = sorted({*self.places, place})

    def receive(self, place: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        """Write a piece of another node's snapshot; position 0 begins anew."""
        file = self._directory.open(_name(place) + _UNFINISHED, create=True)
        file.truncate(position)
        file.append(data)

    def seal(self, place: OffsetAndEpoch) -> None:
        """Sync what was received. May run in any thread, and again after a failure."""
        file = self._directory.open(_name(place) + _UNFINISHED)
        RewrittenFile(file, 0).sync()
        file.close()

    def install(self, place: OffsetAndEpoch) -> list[Control]:
        """Rename a received and sealed snapshot to its final name; return its control records. If it is damaged it is
        removed, and JournalError raised.
        """
        unfinished = _name(place) + _UNFINISHED
        try:
            controls = journal.check_snapshot(read_all(self._directory.open(unfinished)), unfinished)
        except JournalError:
            self._directory.remove(unfinished)
            raise
        self._directory.rename(unfinished, _name(place))
        self.places = sorted({*self.places, place})
        return controls

    def _make_last(self, place: OffsetAndEpoch) -> None:
        """Sync a written snapshot and rename it to its final name. May run in any thread."""
        name = _name(place)
        file = self._directory.open(name + _UNFINISHED)
        file.sync()
        file.close()
        self._directory.rename(name + _UNFINISHED, name)
        self._directory.sync()

    def forget(self, place: OffsetAndEpoch) -> None:
        """Forget a snapshot that cannot be read, so that it is not served to others."""
        self.places.remove(place)

    def keep_newest(self, count: int = SNAPSHOTS_KEPT) -> None:
        while len(self.places) > count:
            self._directory.remove(_name(self.places.pop(0)))


def _name(place: OffsetAndEpoch) -> str:
    return f"{place.offset:020d}-{place.epoch:010d}.checkpoint"
