"""The snapshot files beside the metadata log: `<offset>-<epoch>.checkpoint`, as Kafka names them.

Rules:
- A file with its name is complete and on disk: until then it is written under another.
- The two newest are kept: one to start from, one in case that one cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ottla.cluster import journal
from ottla.cluster.journal import Control, Item
from ottla.cluster.state import JournalError
from ottla.log.durable import Again
from ottla.log.files.disk import Directory, read_all
from ottla.raft.journal import OffsetAndEpoch

SNAPSHOTS_KEPT = 2
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_UNFINISHED = ".part"


def is_first_snapshot(name: str) -> bool:
    """Whether a file, complete or not, is the snapshot before the first record, which only formatting writes."""
    return name.removesuffix(_UNFINISHED) == _name(OffsetAndEpoch(0, 0))


class SnapshotFiles:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        names = directory.list()
        for name in names:
            if name.endswith(_UNFINISHED) and _NAME.fullmatch(name.removesuffix(_UNFINISHED)):
                directory.remove(name)  # whoever wrote or fetched it was interrupted, and would begin anew
        matches = (_NAME.fullmatch(name) for name in names)
        self.places = sorted(OffsetAndEpoch(int(found[1]), int(found[2])) for found in matches if found is not None)

    @property
    def earliest(self) -> OffsetAndEpoch | None:
        return self.places[0] if self.places else None

    @property
    def latest(self) -> OffsetAndEpoch | None:
        return self.places[-1] if self.places else None

    def check(self, place: OffsetAndEpoch) -> list[Control]:
        """The control records of a snapshot; JournalError if it is damaged."""
        name = _name(place)
        return journal.check_snapshot(read_all(self._directory.open(name)), name)

    def items(self, place: OffsetAndEpoch) -> Iterator[Item]:
        """What a snapshot holds, one by one."""
        name = _name(place)
        return journal.snapshot_items(read_all(self._directory.open(name)), name)

    def read(self, place: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        """The size and a piece; None if there is no such snapshot."""
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
        """Piece by piece; complete when there is no next step. What it yields must be called before it goes on."""
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
        """A piece of another node's snapshot; 0 begins anew."""
        file = self._directory.open(_name(place) + _UNFINISHED, create=True)
        file.truncate(position)
        file.append(data)

    def seal(self, place: OffsetAndEpoch) -> None:
        """In any thread: what was received lasts, also if it is tried again after it failed."""
        file = self._directory.open(_name(place) + _UNFINISHED)
        Again(file, 0).sync()
        file.close()

    def install(self, place: OffsetAndEpoch) -> list[Control]:
        """What was received and sealed gets its name; its control records. JournalError if it is damaged; then it is
        thrown away."""
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
        """In any thread: what was written gets its name, and both last."""
        name = _name(place)
        file = self._directory.open(name + _UNFINISHED)
        file.sync()
        file.close()
        self._directory.rename(name + _UNFINISHED, name)
        self._directory.sync()

    def forget(self, place: OffsetAndEpoch) -> None:
        """It cannot be read: nobody shall be given it."""
        self.places.remove(place)

    def keep_newest(self, count: int = SNAPSHOTS_KEPT) -> None:
        while len(self.places) > count:
            self._directory.remove(_name(self.places.pop(0)))


def _name(place: OffsetAndEpoch) -> str:
    return f"{place.offset:020d}-{place.epoch:010d}.checkpoint"
