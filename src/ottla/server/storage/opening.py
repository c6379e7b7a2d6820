"""Opening the files of one partition. This may run in any thread, because the partition is unknown until it is open."""

from __future__ import annotations

from typing import NamedTuple

from ottla.log.config import LogConfig
from ottla.log.files import checkpoint
from ottla.log.log import Log
from ottla.log.recovery.recover import Progress
from ottla.model.ids import TopicPartition
from ottla.replica.neighbours import Neighbours
from ottla.replica.partition import Partition
from ottla.server.storage.directories import DataDirectory


class Opening(NamedTuple):
    """All that is needed to open one partition. `open` raises StorageError if it fails."""

    directory: DataDirectory
    name: TopicPartition
    topic_id: bytes | None  # None: the directory has it already
    config: LogConfig
    node_id: int
    neighbours: Neighbours[Partition]
    now_ms: int
    progress: Progress | None

    def open(self) -> Partition:
        directory, name = self.directory, self.name
        opened = Log.open(
            directory.disk,
            str(name),
            self.config,
            now_ms=self.now_ms,
            recovery_point=directory.recovery_points.get(name, 0),
            log_start_offset=directory.log_starts.get(name, 0),
            clean=directory.clean,
            progress=self.progress,
            on_roll=lambda log: partition.rolled(log),
            may_wait=lambda log: partition.uses(log),
        )
        directory.tell_cut(name, opened)
        if self.topic_id is not None:
            checkpoint.write_partition_metadata(opened.directory, self.topic_id, sync=False)
        partition = Partition(
            name.topic,
            name.partition,
            opened,
            neighbours=self.neighbours,
            node_id=self.node_id,
            high_watermark=directory.high_watermarks.get(name, 0),
        )
        return partition
