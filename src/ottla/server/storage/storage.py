"""Storage: the data directories of a node, their partitions, and the work that threads do for them.

- `partitions`: the replicas this node holds; `changes`: how they follow the cluster's metadata;
- `waiters`: answers that wait until a partition changes; `watches`: followers that read partitions;
- `syncer`: fsync of appended records; `writer`: writes to a slow disk;
- `cold`: reads of data that is not in the page cache; `looks`: looks into the records of batches;
- `checkpoints`: the offsets from which the next start begins; `upkeep`: periodic work;
- `directory_losses`: subscribers that are told of a directory that went offline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.model import limits
from ottla.model.settings.node import FETCH_MAX_BYTES
from ottla.model.settings.replication import REPLICA_LAG_TIME_MAX_MS
from ottla.replica.partition import Partition
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.subscribers import Subscribers
from ottla.server.loop.waiters import Waiters
from ottla.server.loop.watches import Watches
from ottla.server.settings.configs import Configs
from ottla.server.storage.batch_looks import BatchLooks
from ottla.server.storage.checkpoints import Checkpoints
from ottla.server.storage.cold_reads import ColdReads
from ottla.server.storage.directories import DataDirectory, cordoned
from ottla.server.storage.late_writes import Writer
from ottla.server.storage.neighbours import NodeNeighbours
from ottla.server.storage.partitions import Partitions
from ottla.server.storage.replica_changes import ReplicaChanges
from ottla.server.storage.syncing import Syncer
from ottla.server.storage.upkeep import Upkeep


class Storage:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        memory: RequestMemory,
        directories: Sequence[DataDirectory],
        node_id: int,
        *,
        isr_may_change: Callable[[Partition], None],
    ) -> None:
        """`isr_may_change` is called with a partition led here whose in-sync replicas may have to change."""
        loop = runtime.loop
        self._configs = configs
        self.directories = directories
        self.waiters = Waiters(loop, memory)
        self.watches = Watches()
        self.directory_losses: Subscribers[[DataDirectory]] = Subscribers("the loss of a data directory")
        self.partitions = Partitions(
            directories,
            configs.log_config,
            runtime.now_ms,
            configs.broker[FETCH_MAX_BYTES],
            all_usable=len(directories) == len(configs.log_dirs()),
            node_id=node_id,
            neighbours=NodeNeighbours(
                state=lambda: self.partitions.state,
                lag_ms_max=configs.broker[REPLICA_LAG_TIME_MAX_MS],
                steady_ms=runtime.steady_ms,
                changed=self.waiters.notify,
                watches=self.watches,
                sync=lambda partition: self.syncer.request(partition),
                write=lambda partition: self.writer.request(partition),
                sealed=lambda partition: self.syncer.seal(partition),
                isr_may_change=isr_may_change,
            ),
            cordoned=self.cordoned,
            directory_lost=self.directory_losses.tell,
        )
        self._threads = [
            runtime.disk_threads(count)
            for count in (limits.COLD_READS_AT_ONCE, limits.WRITES_AT_ONCE, limits.SYNCS_AT_ONCE)
        ]
        for_reads, for_writes, for_syncs = self._threads
        self.cold = ColdReads(loop, for_reads, self.waiters.notify)
        self.writer = Writer(loop, for_writes, self.partitions, self.waiters.notify)
        self.syncer = Syncer(loop, for_syncs, self.partitions, self.waiters.notify)
        self.looks = BatchLooks(loop, runtime.executor)
        self.changes = ReplicaChanges(self.partitions)
        self.checkpoints = Checkpoints(self.partitions, runtime.executor)
        self.upkeep = Upkeep(runtime, configs, self.partitions, self.checkpoints, self.syncer, self.waiters.notify)

    def cordoned(self) -> list[bytes]:
        """Return the ids of the directories that take no new replicas (`cordoned.log.dirs`)."""
        return cordoned(self.directories, self._configs.broker)

    def appended(self, partition: Partition) -> None:
        """Handle an append: notify the waiters of the partition, and request a sync if the topic needs one."""
        if partition.counts_at_once:
            self.waiters.notify(partition)
        if partition.needs_sync:
            self.syncer.request(partition)

    def cut(self, partition: Partition) -> None:
        """Handle a truncation of the partition's log, after which records of another leader replace the old ones."""
        self.upkeep.cut(partition)

    def start(self) -> None:
        """Start the background work; the partitions are recovered."""
        self.syncer.start()
        self.upkeep.start()

    async def finish_work(self) -> None:
        """Wait for the threads. They look at, sync and write nothing afterwards."""
        await self.looks.close()
        await self.syncer.idle()
        await self.writer.idle()
        for threads in self._threads:
            threads.close()

    def close(self) -> None:
        """Stop cleanly: flush and close all logs, write checkpoints and clean-shutdown markers.

        Directories of deleted topics are removed at the next start.
        """
        closed = self.partitions.close_logs()
        self.checkpoints.write_now()
        for directory in closed:
            directory.mark_clean({name for name, _ in self.partitions.opened_in(directory)})
