"""The real store, on a simulated disk that loses power, as the journal of a simulated node."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.raft.memory import Batch

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.journal import Control, snapshot_batches
from ottla.cluster.snapshot_files import SnapshotFiles
from ottla.cluster.store import DIRECTORY, DOUBT, MetadataStore, StoreConfig
from ottla.log.files.disk import Directory, replace_file
from ottla.raft.journal import OffsetAndEpoch
from ottla.records.batch import headers
from ottla.records.control import ControlType
from ottla.sim.world.disk import Crash, DiskFaults, SimDisk
from ottla.wire.journal import cluster_metadata as records

CONFIG = StoreConfig(segment_bytes=2_000, segment_ms=1 << 40, bytes_between_snapshots=1 << 30)


class StoredJournal:
    """Everything the port asks for goes to the store; `crash` is a loss of power."""

    def __init__(self, rng: Random, controls: Sequence[tuple[ControlType, bytes]] = ()) -> None:
        self._disk = SimDisk(rng, DiskFaults(garbage_rate=0.1))
        self._count = 0
        if controls:
            _bootstrap(self._disk, controls)
        self._open()

    def _open(self) -> None:
        self.store = MetadataStore.open(self._disk, CONFIG, now_ms=lambda: 0, clean=False)
        self.store.load()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def append(self, value: bytes, epoch: int) -> int:
        self._count += 1
        record = records.TopicRecord(name=value.decode(), topic_id=self._count.to_bytes(16, "big"))
        self.store.write_entries([MetadataEntry(record)], epoch)
        return self.store.end_offset

    def begin_doubt(self) -> None:
        replace_file(Directory(self._disk, ""), DOUBT, b"")

    def crash(self) -> None:
        self._disk = self._disk.crash(Crash.POWER)
        self._open()

    def take_snapshot(self, offset: int, controls: Sequence[tuple[ControlType, bytes]]) -> None:
        latest = self.store.latest_snapshot
        if offset <= (latest.offset if latest is not None else 0):
            return
        epoch = self.store.log.epochs.epoch_at(offset - 1)
        state = [
            MetadataEntry(records.TopicRecord(name=f"below-{offset}-{number}", topic_id=bytes(16)))
            for number in range(5)
        ]
        self.store.write_snapshot(
            state, OffsetAndEpoch(offset, epoch), last_timestamp=0, quorum=[Control(*each) for each in controls]
        )

    @property
    def batches(self) -> list[Batch]:
        found = []
        offset = self.store.start_offset
        while offset < self.store.end_offset:
            data = memoryview(self.store.read(offset, 1 << 20))
            for position, header in headers(data):
                whole = bytes(data[position : position + header.size_bytes])
                found.append(Batch(header.base_offset, header.last_offset + 1, header.leader_epoch, whole))
                offset = header.last_offset + 1
        return found

    def values(self) -> dict[int, tuple[int, bytes]]:
        return {batch.base: (batch.epoch, batch.data) for batch in self.batches}


def _bootstrap(disk: SimDisk, controls: Sequence[tuple[ControlType, bytes]]) -> None:
    """What a formatter leaves on the first voters."""
    disk.make_directory(DIRECTORY)
    quorum = [Control(*each) for each in controls]
    pieces = snapshot_batches([], epoch=0, last_timestamp=0, now_ms=1, quorum=quorum)
    SnapshotFiles(Directory(disk, DIRECTORY)).write(OffsetAndEpoch(0, 0), pieces)
