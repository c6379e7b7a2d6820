"""DataDirectory: one entry of `log.dirs` — its disk, its identity, and the checkpoints its partitions start from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from ottla.log import checkpoint
from ottla.log.disk import Disk, StorageError
from ottla.log.leftovers import remove_deleted_directories
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)


class DataDirectory:
    """`recovery_points` and friends are what the last run left; partitions read them once, when they open."""

    def __init__(self, path: str, disk: Disk) -> None:
        self.path = path
        self.disk = disk
        self.partitions: dict[TopicPartition, None] = {}  # those that live here, opened or not
        self.failure: StorageError | None = None
        self.clean = checkpoint.take_clean_shutdown(disk)
        self.recovery_points = self._read(checkpoint.RECOVERY_POINTS)
        self.log_starts = self._read(checkpoint.LOG_STARTS)
        self.high_watermarks = self._read(checkpoint.HIGH_WATERMARKS)
        remove_deleted_directories(disk)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        try:
            return checkpoint.read_offsets(self.disk, name)
        except checkpoint.CheckpointError as error:
            # Offsets can be found again by scanning; a damaged checkpoint only makes the start slower.
            log.warning("%s: ignoring a damaged checkpoint: %s", self.path, error)
            self.clean = False
            return {}

    def remember(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Writes a checkpoint; a disk that cannot take it is noted, and asked again at the next round."""
        try:
            checkpoint.write_offsets(self.disk, name, offsets)
            self.failure = None
        except StorageError as error:
            self.fail(error)

    def fail(self, error: StorageError) -> None:
        if self.failure is None:
            log.error("%s: %s; its partitions answer with storage errors until it recovers", self.path, error)
        self.failure = error

    def mark_clean(self) -> None:
        if self.failure is None:
            checkpoint.write_clean_shutdown(self.disk)


def open_directories(paths: list[str], make_disk: Callable[[str], Disk]) -> list[DataDirectory]:
    """Those of `paths` that can be used; at least one, or the node cannot start."""
    usable = []
    for path in paths:
        try:
            usable.append(DataDirectory(path, make_disk(path)))
        except StorageError as error:
            log.error("%s cannot be used: %s", path, error)
    if not usable:
        raise StorageError(0, f"none of the log directories can be used: {', '.join(paths)}")
    return usable
