"""DataDirectory: one entry of `log.dirs` with its disk, its directory id, and the checkpoints of its partitions."""

from __future__ import annotations

import logging
import shutil
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

UNKNOWN_BYTES = -1

_METADATA = TopicPartition(CLUSTER_METADATA_TOPIC, 0)


class DataDirectory:
    """`recovery_points`, `log_starts` and `high_watermarks` come from the last run; a partition reads them when it
    opens.
    """

    def __init__(self, path: str, disk: Disk) -> None:
        self.path = path
        self.disk = disk
        self.partitions: dict[TopicPartition, None] = {}  # the partitions placed here, opened or not
        self.id = NO_ID  # until the node's identity is known, see `identity`
        self.failure: StorageError | None = None
        # partitions that cannot be opened although the directory works
        self.damaged: dict[TopicPartition, DamagedError] = {}
        self.offline = False  # it failed and the controller knows: nothing here is served until the next start
        self.broker_epoch = checkpoint.clean_shutdown_epoch(disk)  # the broker epoch at the last clean shutdown
        self.clean = checkpoint.take_clean_shutdown(disk)
        self.recovery_points = self._read(checkpoint.RECOVERY_POINTS)
        self.log_starts = self._read(checkpoint.LOG_STARTS)
        self.high_watermarks = self._read(checkpoint.HIGH_WATERMARKS)
        # The partition directories found at the start, by name only: their topics may exist, or may have been deleted
        # meanwhile.
        names = disk.list("")
        self.found = {TopicPartition(*parsed): None for name in names if (parsed := parse_directory(name)) is not None}
        self.found.pop(_METADATA, None)
        # Partitions whose directories belong to this node even without `partition.metadata`: they were found at the
        # start, or created since.
        self.own = set(self.found)
        ours = partial(_is_partition, disk)
        # unfinished moves between directories
        self.futures = {found: name for name in names if (found := _future(name)) and ours(name)}
        self.deleted = [name for name in names if is_deleted_directory(name) and ours(name)]
        # Partitions to which the checkpoint files do not apply yet (see `checkpoints.py`), each with a unique token.
        self.begun: dict[TopicPartition, object] = {}
        self._noting = threading.Lock()  # held while a marker file is written or removed
        self._writing = threading.Lock()
        self._written: dict[str, int] = {}
        # The present contents of the checkpoint files.
        self._remembered: dict[str, Mapping[TopicPartition, int]] = {
            checkpoint.RECOVERY_POINTS: dict(self.recovery_points),
            checkpoint.LOG_STARTS: dict(self.log_starts),
            checkpoint.HIGH_WATERMARKS: dict(self.high_watermarks),
        }

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoint.read_offsets(self.disk, name)
        except checkpoint.CheckpointError as error:
            # Scanning the logs finds the offsets again; a damaged checkpoint only makes the start slower.
            log.warning("%s: ignoring a damaged checkpoint: %s", self.path, error)
            self.clean = False
            return {}

    def write(self, name: str, offsets: Mapping[TopicPartition, int], number: int) -> None:
        """Write a checkpoint, from any thread, unless one with a higher `number` was written before."""
        with self._writing:
            if number > self._written.get(name, 0):
                checkpoint.write_offsets(self.disk, name, offsets)
                self._written[name] = number
                self._remembered[name] = offsets

    def fail(self, error: StorageError) -> None:
        if self.failure is None:
            log.error(
                "%s: %s; its %d partitions answer with storage errors until it recovers",
                self.path,
                error,
                len(self.partitions),
            )
        self.failure = error

    def note_damage(self, partition: TopicPartition, error: DamagedError) -> None:
        """Mark a partition as damaged: it is neither served nor changed; the other partitions are not affected."""
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
        """Mark a partition as damaged because its directory holds files that do not belong to a partition."""
        text = f"the directory {partition} holds files of somebody else"
        log.error("%s: %s answers with storage errors: %s. Move them away and start again", self.path, partition, text)
        self.damaged[partition] = DamagedError(text)

    def tell_cut(self, partition: TopicPartition, opened: Log) -> None:
        """Log what recovery truncated: usually the end of a write that a crash interrupted."""
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
        """Drop everything known of a deleted partition: a new one of the same name starts from offset 0."""
        self.partitions.pop(partition, None)
        self.own.discard(partition)
        self.damaged.pop(partition, None)
        self.begun.pop(partition, None)
        self._forget_offsets(partition)

    def _forget_offsets(self, partition: TopicPartition) -> None:
        for offsets in (self.recovery_points, self.log_starts, self.high_watermarks):
            offsets.pop(partition, None)

    def begin_anew(self, partition: TopicPartition) -> None:
        """Create the directory of a partition with a marker file: the checkpoints contain offsets of an older partition
        of the same name, until they are written with its own.
        """
        with self._noting:
            self.disk.make_directory(str(partition))
            self.disk.open(_note(partition), create=True)
            self.begun[partition] = object()

    def heed_note(self, partition: TopicPartition) -> None:
        """Ignore the checkpointed offsets of a partition whose marker file was left by a crash."""
        if not self.clean and partition not in self.begun and self.disk.exists(_note(partition)):
            self._forget_offsets(partition)
            self.begun[partition] = object()

    def end_begun(self, begun: Mapping[TopicPartition, object]) -> None:
        """Remove the marker files of these partitions durably, since the checkpoints on disk contain their own offsets
        now.

        May run in any thread, and takes a while. A marker that cannot be removed is tried again after the next
        checkpoints.
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
                return False  # the partition was created anew once more
            self.disk.remove(_note(partition))
            self.begun.pop(partition, None)  # the partition may have been deleted just now
            return True

    def remembers(self, partition: TopicPartition) -> bool:
        """Return whether a checkpoint on disk has an offset for a partition of this name."""
        return any(partition in offsets for offsets in self._remembered.values())

    def remembered_recovery_point(self, partition: TopicPartition) -> int:
        """Return the recovery point that is on disk."""
        return self._remembered[checkpoint.RECOVERY_POINTS].get(partition, 0)

    def mark_clean(self, opened: Container[TopicPartition] = ()) -> None:
        """Write the clean-shutdown marker, unless a partition still needs recovery from an earlier crash."""
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
    """Return the partition whose replica was being moved into this directory: `topic-0.0123abcd-future`."""
    parsed = parse_directory(name.rpartition(".")[0]) if name.endswith(FUTURE_DIRECTORY) else None
    return None if parsed is None else TopicPartition(*parsed)


def cordoned(directories: Iterable[DataDirectory], settings: Config) -> list[bytes]:
    """Return the ids of the directories that take no new replicas (`cordoned.log.dirs`)."""
    names = settings[CORDONED_LOG_DIRS]
    return [directory.id for directory in directories if "*" in names or directory.path in names]


def open_directories(paths: list[str], make_disk: Callable[[str], Disk]) -> list[DataDirectory]:
    """Open those of `paths` that can be used; raise if there is none, because the node cannot start then."""
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


def disk_room(path: str) -> tuple[int, int]:
    """Return the size and the free bytes of a directory's disk; UNKNOWN_BYTES if they are not known."""
    try:
        usage = shutil.disk_usage(path)
    except OSError:  # removed, or a simulated disk
        return UNKNOWN_BYTES, UNKNOWN_BYTES
    return usage.total, usage.free
