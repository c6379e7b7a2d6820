"""MetadataStore: the metadata journal on disk — the log `__cluster_metadata-0`, its snapshots and `quorum-state`.

It implements raft's port `raft.journal.Journal`, and the quorum's shell writes entries with it.

Rules:
- Records below `flushed_offset` are synced. A sole voter syncs before it answers (`sync`); with several voters a worker
  syncs, see `begin_flush`: changes are rare, and a group of any size costs one sync.
- After `work_later`, writes that must be durable before other nodes hear of them (votes, truncations) are not made
  durable in the call but wait in `take_work`: the quorum's shell does them in a worker, and holds raft's messages back
  until they are done.
- A snapshot holds everything below its offset; the log below the oldest kept snapshot is deleted.
- All other calls of raft are complete when they return; a StorageError leaves the log as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from ottla.cluster import journal
from ottla.cluster.election_file import read_election, write_election
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.journal import Control, Item
from ottla.cluster.journal_check import Walk
from ottla.cluster.snapshot_files import SNAPSHOTS_KEPT, SnapshotFiles
from ottla.cluster.state import JournalError
from ottla.log.config import LogConfig
from ottla.log.durable import Syncable
from ottla.log.files.checkpoint import CheckpointError, read_partition_metadata, write_partition_metadata
from ottla.log.files.disk import DamagedError, Directory, Disk, StorageError
from ottla.log.log import Log, Origin
from ottla.log.recovery.salvage import split
from ottla.model.ids import FIRST_LEADER_EPOCH, METADATA_TOPIC_ID, NO_LEADER_EPOCH, LeaderEpoch
from ottla.model.limits import INT32_MAX, SCAN_READ_BYTES
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.raft.journal import ElectionState, OffsetAndEpoch, QuorumRecord
from ottla.records.control import ControlType, control_batch, control_type
from ottla.records.record import records as records_of

DIRECTORY = f"{CLUSTER_METADATA_TOPIC}-0"
# A file beside it: one of several fixed voters formatted this directory itself (see `raft/lost_disk.py`).
DOUBT = "quorum-doubt"
_ABOUT_VOTERS = (ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS)


class StoreConfig(NamedTuple):
    """The `metadata.log.*` settings."""

    segment_bytes: int
    segment_ms: int
    bytes_between_snapshots: int


class JournalWork(NamedTuple):
    """Work that was put off: steps, to be done in this order, and then a flush of the log if `flush`."""

    steps: list[Callable[[], None]]
    flush: bool


class MetadataStore:
    """Make one with `MetadataStore.open`, then call `load`."""

    def __init__(
        self,
        log: Log,
        directory: Directory,
        config: StoreConfig,
        snapshots: SnapshotFiles,
        now_ms: Callable[[], int],
    ) -> None:
        self.log = log
        self._now_ms = now_ms
        self._directory = directory
        self._config = config
        self._snapshots = snapshots
        self.losses: list[str] = []  # messages about damaged data that had to be dropped
        self._quorum_records: list[QuorumRecord] = []
        self._bytes_since_snapshot = 0
        self._flushed = log.recovery_point
        self._failure: StorageError | None = None
        self.works_at_once = True
        self._work: list[Callable[[], None]] = []
        self._must_flush = False

    @classmethod
    def open(cls, disk: Disk, config: StoreConfig, *, now_ms: Callable[[], int], clean: bool) -> MetadataStore:
        """`now_ms` returns the time of day, for records and segments."""
        log_config = LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            max_message_bytes=INT32_MAX,
            retention_ms=-1,
            retention_bytes=-1,
            file_delete_delay_ms=0,
            dense=True,
        )
        directory = Directory(disk, DIRECTORY)
        snapshots = SnapshotFiles(directory)
        spare_below = snapshots.latest.offset if snapshots.latest is not None else 0
        try:
            log = Log.open(
                disk,
                DIRECTORY,
                log_config,
                now_ms=now_ms(),
                recovery_point=spare_below,
                spare_below=spare_below,
                clean=clean,
                topic_id=METADATA_TOPIC_ID,
            )
        except DamagedError as error:
            raise JournalError(f"the metadata log is damaged: {error}") from error
        try:
            read_partition_metadata(directory)
        except CheckpointError:  # lost with the power; the topic id of this log is known anyway
            write_partition_metadata(directory, METADATA_TOPIC_ID, sync=True)
        store = cls(log, directory, config, snapshots, now_ms)
        if log.cut_bytes:
            store.losses.append(f"{log.cut_bytes} bytes behind offset {log.next_offset} were no whole batch")
        return store

    # --- reading

    def load(self) -> None:
        """Find the newest readable snapshot, and collect the control records about voters from it and the log after it.
        JournalError if the metadata is damaged: after a clean stop the log has not been checked before.
        """
        offset = self._load_snapshot()
        if offset < self.log.log_start_offset:
            raise JournalError(
                f"the metadata begins at offset {self.log.log_start_offset}, and no snapshot holds what was before"
            )
        for batch in self._walk_from(offset).to_end():
            self._bytes_since_snapshot += batch.header.size_bytes
            if batch.header.is_control:
                self._quorum_records += _about_voters(batch.data, batch.at)

    def _walk_from(self, offset: int) -> Walk:
        """Check the log up to the snapshot at `offset`, and return the walk from there. The log below the snapshot is
        kept for followers that lag. If it is damaged they could never append it: it is dropped, and they fetch the
        snapshot.
        """
        walk = Walk(self.log, self.log.log_start_offset)
        try:
            for _ in walk.to(offset):
                pass
        except JournalError as error:
            self.losses.append(f"what lies below the snapshot at {offset}: {error}")
            self._snapshots.keep_newest(1)
            self._drop_below(offset, offset)
            if not split(self.log, offset, self._now_ms()):
                raise
            return Walk(self.log, offset)
        return walk

    def _load_snapshot(self) -> int:
        problem: JournalError | None = None
        while (place := self._snapshots.latest) is not None:
            try:
                self._take_snapshot(place, self._snapshots.check(place))
            except JournalError as error:
                problem = error
                self.losses.append(f"the snapshot at {place.offset}: {error}")
                self._snapshots.forget(place)
                continue
            if (place.epoch, place.offset) > (self.log.epochs.latest, self.end_offset) and place.offset:
                # The log lost records that the snapshot has, or a snapshot was installed and the log not yet restarted
                # at it.
                self._begin_at(place.offset)
            return place.offset
        if problem is not None and self.log.log_start_offset > 0:
            raise problem
        return 0

    def _take_snapshot(self, place: OffsetAndEpoch, controls: list[Control]) -> None:
        self._quorum_records = [
            QuorumRecord(place.offset - 1, control.type, control.value)
            for control in controls
            if control.type in _ABOUT_VOTERS
        ]

    def snapshot_items(self) -> Iterator[Item]:
        """Yield the content of the newest snapshot one by one."""
        assert self.latest_snapshot is not None, "there is none"
        return self._snapshots.items(self.latest_snapshot)

    def quorum_records(self) -> list[QuorumRecord]:
        return self._quorum_records

    def read_items(self, offset: int, end: int) -> Iterator[Item]:
        """Return some of the items from `offset` on, at least one, all below `end`, which is the end of a batch. Their
        bytes are read before the first item is yielded, because the log may be truncated meanwhile.
        """
        found = self.log.read(offset, SCAN_READ_BYTES, max_offset=end)
        if found.slice is None:
            raise JournalError(f"the metadata log has nothing at offset {offset}")
        return (item for item in journal.items(memoryview(found.slice.read())) if item.offset >= offset)

    @property
    def start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self.log.next_offset

    @property
    def flushed_offset(self) -> int:
        return self._flushed

    @property
    def last_epoch(self) -> LeaderEpoch:
        if self.log.epochs.latest >= 0:
            return self.log.epochs.latest
        latest = self.latest_snapshot
        return latest.epoch if latest is not None and latest.offset == self.end_offset else FIRST_LEADER_EPOCH

    def epoch_end(self, epoch: LeaderEpoch) -> tuple[LeaderEpoch, int]:
        return self.log.epoch_end(epoch)

    def read(self, offset: int, max_bytes: int) -> bytes:
        found = self.log.read(offset, max_bytes, max_offset=self.end_offset)
        return found.slice.read() if found.slice is not None else b""

    # --- writing

    def write_entries(self, entries: Sequence[MetadataEntry], epoch: LeaderEpoch) -> None:
        """Write entries that take effect together, as the leader. StorageError: nothing was written."""
        now_ms = self._now_ms()
        batches = journal.atomic(entries, base_offset=self.end_offset, epoch=epoch, now_ms=now_ms)
        self._write(batches[0] if len(batches) == 1 else bytearray().join(batches), epoch, now_ms)

    def append_controls(self, controls: Sequence[tuple[ControlType, bytes]], epoch: LeaderEpoch) -> None:
        now_ms = self._now_ms()
        batch = control_batch(list(controls), timestamp=now_ms, base_offset=self.end_offset, leader_epoch=epoch)
        self._write(batch, epoch, now_ms)

    def append_fetched(self, records: bytes | memoryview) -> None:
        self.log.append(bytearray(records), NO_LEADER_EPOCH, self._now_ms(), Origin.REPLICATION)
        self._bytes_since_snapshot += len(records)

    def _write(self, data: bytearray, epoch: LeaderEpoch, now_ms: int) -> None:
        if self._failure is not None:
            raise StorageError(self._failure.errno, f"the metadata log is in doubt since: {self._failure}")
        self.log.append(data, epoch, now_ms, Origin.COORDINATOR)
        self._bytes_since_snapshot += len(data)

    def truncate(self, offset: int) -> None:
        self._cut(offset)
        self._flush_soon()  # what was cut off must not reappear after a crash behind the records that replace it

    def _flush_soon(self) -> None:
        if self.works_at_once:
            self.flush()
        else:
            self._must_flush = True

    def _cut(self, offset: int) -> None:
        self.log.truncate_to(offset, now_ms=self._now_ms())
        self._flushed = min(self._flushed, self.end_offset)

    def sync(self, start: int) -> None:
        """Sync everything now, or truncate the log to `start`: a change that was refused must not reappear."""
        try:
            self.flush()
        except StorageError as error:
            self._failure = error
            self._cut(start)
            self._failure = None
            raise

    def flush(self) -> None:
        """Sync everything now, in this thread."""
        end = self.end_offset
        self.log.flush()
        self._flushed = end

    def begin_flush(self) -> list[Syncable]:
        """Return what must be synced, in this order, in any thread. Call `end_flush` or `flush_failed` before the next
        one.
        """
        return self.log.files_to_sync()

    def end_flush(self) -> None:
        self._flushed = max(self._flushed, self.log.mark_synced())

    def flush_failed(self) -> None:
        self.log.sync_failed()

    @property
    def in_doubt(self) -> bool:
        return self._directory.disk.exists(DOUBT)

    def end_doubt(self) -> None:
        self._durably(self._remove_doubt)

    def _remove_doubt(self) -> None:
        self._directory.disk.remove(DOUBT)
        self._directory.disk.sync_directory("")

    def read_election(self) -> ElectionState:
        return read_election(self._directory)

    def write_election(self, election: ElectionState, voters: Sequence[int], kraft_version: int) -> None:
        self._durably(partial(write_election, self._directory, election, voters, kraft_version))

    def _durably(self, work: Callable[[], None]) -> None:
        if self.works_at_once:
            work()
        else:
            self._work.append(work)

    def work_later(self) -> None:
        """From now on, put off what must be durable until the caller of `take_work` has done it."""
        self.works_at_once = False

    def work_at_once(self) -> None:
        """From now on, make everything that must be durable so in the call, as before `work_later`."""
        self.works_at_once = True

    @property
    def has_work(self) -> bool:
        return bool(self._work) or self._must_flush

    def take_work(self) -> JournalWork:
        """Return what was put off; it can be done in any thread, and again if it failed (`put_back`)."""
        work = JournalWork(self._work, self._must_flush)
        self._work, self._must_flush = [], False
        return work

    def put_back(self, work: JournalWork) -> None:
        self._work = work.steps + self._work
        self._must_flush = work.flush or self._must_flush

    # --- snapshots

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        return self._snapshots.earliest

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return self._snapshots.latest

    @property
    def snapshot_due(self) -> bool:
        return self._bytes_since_snapshot >= self._config.bytes_between_snapshots

    def write_snapshot(
        self, entries: Iterable[MetadataEntry], place: OffsetAndEpoch, *, last_timestamp: int, quorum: Sequence[Control]
    ) -> None:
        """Write the whole state as of `place`, and delete the snapshots and segments that it makes superfluous."""
        if self._flushed < place.offset:
            self.flush()
        for sync in self.writing_snapshot(entries, place, last_timestamp=last_timestamp, quorum=quorum):
            if sync is not None:
                sync()

    def writing_snapshot(
        self, entries: Iterable[MetadataEntry], place: OffsetAndEpoch, *, last_timestamp: int, quorum: Sequence[Control]
    ) -> Iterator[Callable[[], None] | None]:
        """`write_snapshot` in steps, so that other work has its turn between them. A yielded callable must be called,
        in any thread, before the next step.
        """
        # A start does not check the log below the newest snapshot.
        assert self._flushed >= place.offset, "what a snapshot holds is on disk"
        before_bytes = self._bytes_since_snapshot
        pieces = journal.snapshot_batches(
            entries, epoch=place.epoch, last_timestamp=last_timestamp, now_ms=self._now_ms(), quorum=quorum
        )
        yield from self._snapshots.writing(place, pieces)
        self._bytes_since_snapshot = max(0, self._bytes_since_snapshot - before_bytes)
        self.log.roll(self._now_ms())
        self._drop_old(place.offset)

    def _drop_old(self, high_watermark: int) -> None:
        self._snapshots.keep_newest()
        places = self._snapshots.places
        if len(places) == SNAPSHOTS_KEPT:
            self._drop_below(places[0].offset, high_watermark)

    def _drop_below(self, offset: int, high_watermark: int) -> None:
        self.log.advance_log_start(offset)
        self.log.delete_old_segments(self._now_ms(), high_watermark)
        self.log.remove_deleted(self._now_ms())

    def read_snapshot(self, snapshot: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        return self._snapshots.read(snapshot, position, max_bytes)

    def receive_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        self._snapshots.receive(snapshot, position, data)

    def seal_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        self._durably(partial(self._snapshots.seal, snapshot))

    def install_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        # The snapshot gets its final name before the log loses its files: after a power loss the second alone is
        # impossible.
        try:
            controls = self._snapshots.install(snapshot)
        except JournalError as error:
            raise ValueError(str(error)) from error
        self._take_snapshot(snapshot, controls)
        self._begin_at(snapshot.offset)
        self._bytes_since_snapshot = 0
        self._snapshots.keep_newest(1)

    def _begin_at(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset, now_ms=self._now_ms())
        self._flushed = min(self._flushed, self.end_offset)
        self._flush_soon()  # so that no record of the old log reappears after a crash

    def close(self) -> None:
        self.log.close()


def _about_voters(view: memoryview, position: int) -> list[QuorumRecord]:
    found = ((record, control_type(record.key)) for record in records_of(view, position))
    return [QuorumRecord(record.offset, kind, record.value or b"") for record, kind in found if kind in _ABOUT_VOTERS]
