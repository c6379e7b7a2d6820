"""PendingCheckpoints: the offsets that are on their way into the checkpoint files of the data directories.

A partition that is made anew under a name that a checkpoint has, or will have when a worker has written it, must not
begin where the former one began (see `checkpoints.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model.ids import TopicPartition
from ottla.replica.partition import Partition
from ottla.server.storage.directories import DataDirectory

Offsets = Mapping[TopicPartition, int]


class PendingCheckpoints:
    def __init__(self) -> None:
        # Log starts that are about to be, of all who wait for them. Of partitions, not names: one may be made anew.
        self.log_starts: list[Mapping[Partition, int]] = []
        self.recovery_points: dict[str, Offsets] = {}  # by directory: those that are or will be on disk

    def begin_anew(self, directory: DataDirectory, name: TopicPartition) -> None:
        """Nothing lies there yet, whatever lay there before."""
        directory.forget(name)
        directory.partitions[name] = None
        directory.own.add(name)
        coming = (partition.topic_partition for starts in self.log_starts for partition in starts)
        if directory.remembers(name) or name in self.recovery_points.get(directory.path, ()) or name in coming:
            directory.begin_anew(name)
