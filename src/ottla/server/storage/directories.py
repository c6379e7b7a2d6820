"""DataDirectory: one entry of `log.dirs` — its disk, its identity, and the checkpoints its partitions start from."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from functools import partial

from ottla.log.files import checkpoint
from ottla.log.files.disk import DamagedError, Directory, Disk, StorageError
from ottla.log.files.names import FUTURE_DIRECTORY, parse_directory
from ottla.log.log import Log
from ottla.log.recovery.leftovers import is_deleted_directory
from ottla.log.recovery.ownership import is_partition
from ottla.model.config import Config
from ottla.model.ids import NO_ID, TopicPartition
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.model.settings.log import CORDONED_LOG_DIRS

log = logging.getLogger(__name__)

_METADATA = TopicPartition(CLUSTER_METADATA_TOPIC, 0)


class DataDirectory:
    """`recovery_points` and friends are what the last run left; partitions read them once, when they open."""

    def __init__(self, path: str, disk: Disk) -> None:
        self.path = path
        self.disk = disk
        self.partitions: dict[TopicPartition, None] = {}  # those that live here, opened or not
        self.id = NO_ID  # until the node knows who it is, see `identity`
        self.failure: StorageError | None = None
        self.damaged: dict[TopicPartition, DamagedError] = {}  # which cannot be opened, whatever else can
        self.offline = False  # it failed, and the cluster was told: nothing here is served until the next start
        self.broker_epoch = checkpoint.clean_shutdown_epoch(disk)  # that the broker had when it stopped in order
        self.clean = checkpoint.take_clean_shutdown(disk)
        self.recovery_points = self._read(checkpoint.RECOVERY_POINTS)
        self.log_starts = self._read(checkpoint.LOG_STARTS)
        self.high_watermarks = self._read(checkpoint.HIGH_WATERMARKS)
        # What lay here at the start: partitions, by their names only, whose topics may exist or not, and what is left
        # of deleted ones.
        names = disk.list("")
        self.found = {TopicPartition(*parsed): None for name in names if (parsed := parse_directory(name)) is not None}
        self.found.pop(_METADATA, None)
        # Whose directories are ours even without a word in them: they lay here at the start, or were made since.
        self.own = set(self.found)
        ours = partial(_is_partition, disk)
        self.futures = {found: name for name in names if (found := _future(name)) and ours(name)}  # moves not finished
        self.deleted = [name for name in names if is_deleted_directory(name) and ours(name)]
        # Those of which the files of the checkpoints say nothing true yet: each with a token of its own.
        self.begun: dict[TopicPartition, object] = {}
        self._noting = threading.Lock()  # for as long as one note takes
        self._writing = threading.Lock()
        self._written: dict[str, int] = {}
        # What is in the files of the checkpoints now.
        self._remembered: dict[str, Mapping[TopicPartition, int]] = {
            checkpoint.RECOVERY_POINTS: dict(self.recovery_points),
            checkpoint.LOG_STARTS: dict(self.log_starts),
            checkpoint.HIGH_WATERMARKS: dict(self.high_watermarks),
        }

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoint.read_offsets(self.disk, name)
        except checkpoint.CheckpointError as error:
            # Offsets can be found again by scanning; a damaged checkpoint only makes the start slower.
            log.warning("%s: ignoring a damaged checkpoint: %s", self.path, error)
            self.clean = False
            return {}

    def write(self, name: str, offsets: Mapping[TopicPartition, int], number: int) -> None:
        """Writes a checkpoint, from any thread, unless one with a higher `number` was written before."""
        with self._writing:
            if number > self._written.get(name, 0):
                checkpoint.write_offsets(self.disk, name, offsets)
                self._written[name] = number
                self._remembered[name] = offsets

    def fail(self, error: StorageError) -> None:
        if self.failure is None:
            log.error("%s: %s; its partitions answer with storage errors until it recovers", self.path, error)
        self.failure = error

    def note_damage(self, partition: TopicPartition, error: DamagedError) -> None:
        """Nothing of it is served or changed; the other partitions go on."""
        log.error(
            "%s: %s-%d answers with storage errors: %s. To have the rest of it, stop the node, remove %s and start "
            "again: that cuts the log off where the damage is",
            self.path,
            *partition,
            error,
            checkpoint.CLEAN_SHUTDOWN,
        )
        self.damaged[partition] = error

    def note_foreign(self, partition: TopicPartition) -> None:
        """Where its files should lie there are others, which are nobody's business here."""
        text = f"the directory {partition} holds files of somebody else"
        log.error("%s: %s answers with storage errors: %s. Move them away and start again", self.path, partition, text)
        self.damaged[partition] = DamagedError(text)

    def tell_cut(self, partition: TopicPartition, opened: Log) -> None:
        """What recovery threw away: as a rule the end of a write that a crash interrupted."""
        synced = self.recovery_points.get(partition, 0)
        if not opened.cut_bytes:
            return
        if opened.next_offset < synced:
            log.error(
                "%s: %s-%d was damaged and lost records that had been synced: it ends at offset %d, not at %d",
                self.path,
                *partition,
                opened.next_offset,
                synced,
            )
        else:
            log.warning(
                "%s: %s-%d: %d bytes behind offset %d were no whole batch; cut off",
                self.path,
                *partition,
                opened.cut_bytes,
                opened.next_offset,
            )

    def forget(self, partition: TopicPartition) -> None:
        """It was deleted: one of the same name begins anew."""
        self.partitions.pop(partition, None)
        self.own.discard(partition)
        self.damaged.pop(partition, None)
        self.begun.pop(partition, None)
        self._forget_offsets(partition)

    def _forget_offsets(self, partition: TopicPartition) -> None:
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks):
            offsets.pop(partition, None)

    def begin_anew(self, partition: TopicPartition) -> None:
        """Its directory comes to be with a note: checkpoints speak of another one of this name, until they are written
        with its own offsets."""
        with self._noting:
            self.disk.make_directory(str(partition))
            self.disk.open(_note(partition), create=True)
            self.begun[partition] = object()

    def heed_note(self, partition: TopicPartition) -> None:
        """After a crash: such a note may be there still."""
        if not self.clean and partition not in self.begun and self.disk.exists(_note(partition)):
            self._forget_offsets(partition)
            self.begun[partition] = object()

    def end_begun(self, begun: Mapping[TopicPartition, object]) -> None:
        """Checkpoints on disk speak of these by now: their notes go, for good. From any thread, and it takes its time.

        A note that resists is tried again after the next checkpoints.
        """
        failures = []
        for partition, token in begun.items():
            try:
                is_removed = self._remove_note(partition, token)
            except StorageError as error:
                failures.append(error)
                continue
            if is_removed:
                with suppress(StorageError):  # deleted meanwhile
                    self.disk.sync_directory(str(partition))
        if failures:
            log.warning("%s: %d notes could not be removed: %s", self.path, len(failures), failures[0])

    def _remove_note(self, partition: TopicPartition, token: object) -> bool:
        with self._noting:
            if self.begun.get(partition) is not token:
                return False  # made anew once more
            self.disk.remove(_note(partition))
            self.begun.pop(partition, None)  # it may have been deleted just now
            return True

    def remembers(self, partition: TopicPartition) -> bool:
        """Whether a checkpoint has an offset of a partition of this name."""
        return any(partition in offsets for offsets in self._remembered.values())

    def remembered_recovery_point(self, partition: TopicPartition) -> int:
        """What is on disk, for the next start."""
        return self._remembered[checkpoint.RECOVERY_POINTS].get(partition, 0)

    def mark_clean(self, opened: Container[TopicPartition] = ()) -> None:
        """Unless a partition still waits for the recovery that the last start owed it."""
        names = () if self.clean else self.partitions
        if self.failure is None and not any(name not in opened and self.disk.exists(str(name)) for name in names):
            try:
                checkpoint.write_clean_shutdown(self.disk, self.broker_epoch)
            except StorageError as error:
                self.fail(error)


def _note(partition: TopicPartition) -> str:
    return f"{partition}/{checkpoint.BEGUN_ANEW}"


def _is_partition(disk: Disk, name: str) -> bool:
    return is_partition(Directory(disk, name))


def _future(name: str) -> TopicPartition | None:
    """Whose replica was being moved into this directory: `topic-0.0123abcd-future`."""
    parsed = parse_directory(name.rpartition(".")[0]) if name.endswith(FUTURE_DIRECTORY) else None
    return None if parsed is None else TopicPartition(*parsed)


def cordoned(directories: Iterable[DataDirectory], settings: Config) -> list[bytes]:
    """The ids of those that take no new replicas, by `cordoned.log.dirs`."""
    names = settings[CORDONED_LOG_DIRS]
    return [directory.id for directory in directories if "*" in names or directory.path in names]


def open_directories(paths: list[str], make_disk: Callable[[str], Disk]) -> list[DataDirectory]:
    """Those of `paths` that can be used; at least one, or the node cannot start."""
    usable = []
    failures: list[StorageError] = []
    for path in paths:
        try:
            usable.append(DataDirectory(path, make_disk(path)))
        except StorageError as error:
            failures.append(StorageError(error.errno, f"{path} cannot be used: {error}"))
    if not usable:
        first, *others = failures
        more = " (nor can any other of log.dirs)" if others else ""
        raise StorageError(first.errno, f"{first}{more}")
    for failure in failures:
        log.error("%s", failure)
    return usable
