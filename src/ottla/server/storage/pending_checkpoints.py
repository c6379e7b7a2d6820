"""PendingCheckpoints: the offsets that are being written into the checkpoint files of the data directories.

A partition that is created anew under a name for which a checkpoint has an offset, or will have when a worker has
written it, must not begin at that offset (see `checkpoints.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model.ids import TopicPartition
from ottla.replica.partition import Partition
from ottla.server.storage.directories import DataDirectory

Offsets = Mapping[TopicPartition, int]


class PendingCheckpoints:
    def __init__(self) -> None:
        # New log start offsets that are being written, one mapping per DeleteRecords request. Their keys are partition
        # objects, not names, because a partition may be created anew under the same name.
        self.log_starts: list[Mapping[Partition, int]] = []
        self.recovery_points: dict[str, Offsets] = {}  # by directory: the recovery points that are or will be on disk

    def begin_anew(self, directory: DataDirectory, name: TopicPartition) -> None:
        """Prepare a directory for a new partition, regardless of earlier partitions of the same name."""
        directory.forget(name)
        directory.partitions[name] = None
        directory.own.add(name)
        coming = (partition.topic_partition for starts in self.log_starts for partition in starts)
        if directory.remembers(name) or name in self.recovery_points.get(directory.path, ()) or name in coming:
            directory.begin_anew(name)
