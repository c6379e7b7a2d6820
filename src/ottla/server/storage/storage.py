"""Storage: the data directories of a node, the partitions in them, and the work that goes on for them in threads.

- `partitions`: the replicas this node holds;
- `waiters`: answers that wait until a partition changes; `watches`: followers that read partitions;
- `syncer`: fsync of what was appended; `writer`: writes to a disk that makes writers wait;
- `cold`: reads of what is not in the page cache; `looking`: looks into the records of batches.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model import limits
from ottla.model.settings.node import FETCH_MAX_BYTES
from ottla.replica.partition import Partition
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.waiters import Waiters
from ottla.server.loop.watches import Watches
from ottla.server.settings.configs import Configs
from ottla.server.storage.batch_looks import Looking
from ottla.server.storage.cold_reads import ColdReads
from ottla.server.storage.directories import DataDirectory, cordoned
from ottla.server.storage.late_writes import Writer
from ottla.server.storage.partitions import Partitions
from ottla.server.storage.syncing import Syncer


class Storage:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        memory: RequestMemory,
        directories: Sequence[DataDirectory],
        node_id: int,
    ) -> None:
        loop = runtime.loop
        self._configs = configs
        self.directories = directories
        self.waiters = Waiters(loop, memory)
        self.watches = Watches()
        self.partitions = Partitions(
            directories,
            configs.log_config,
            runtime.now_ms,
            configs.broker[FETCH_MAX_BYTES],
            all_usable=len(directories) == len(configs.log_dirs()),
            node_id=node_id,
            changed=self.waiters.notify,
            watches=self.watches,
            cordoned=self.cordoned,
        )
        self._threads = [
            runtime.disk_threads(count)
            for count in (limits.COLD_READS_AT_ONCE, limits.WRITES_AT_ONCE, limits.SYNCS_AT_ONCE)
        ]
        for_reads, for_writes, for_syncs = self._threads
        self.cold = ColdReads(loop, for_reads, self.waiters.notify)
        self.writer = Writer(loop, for_writes, self.partitions, self.waiters.notify)
        self.syncer = Syncer(loop, for_syncs, self.partitions, self.waiters.notify)
        self.looking = Looking(loop, runtime.executor)

    def cordoned(self) -> list[bytes]:
        """The ids of the directories that take no new replicas (`cordoned.log.dirs`)."""
        return cordoned(self.directories, self._configs.broker)

    def appended(self, partition: Partition) -> None:
        """Something was appended: wake the requests that wait for it, and have it synced where that is needed."""
        if partition.counts_at_once:
            self.waiters.notify(partition)
        if partition.needs_sync:
            self.syncer.request(partition)

    async def finish_work(self) -> None:
        """Waits for the threads. Nothing is looked at, synced or written in them afterwards."""
        await self.looking.close()
        await self.syncer.idle()
        await self.writer.idle()
        for threads in self._threads:
            threads.close()
