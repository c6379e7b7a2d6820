"""MetadataSnapshots: writes snapshots of the committed state from time to time, so that a start has little to read.

A snapshot is due after a number of journal bytes (the store decides) or after an interval. A small snapshot is written
at once while the node starts; any other is written in the background, a large one from a copy of the state. The state
is never written in the middle of a transaction, because the records after the snapshot need the transaction's first
ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.snapshot import snapshot
from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.model.ids import LeaderEpoch
from ottla.server.loop.runtime import Runtime
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.quorum import Quorum

log = logging.getLogger(__name__)


class MetadataSnapshots:
    """`interval_ms` 0 means that no snapshots are written by time."""

    def __init__(self, runtime: Runtime, quorum: Quorum, metadata: MetadataHost, interval_ms: int) -> None:
        self._runtime = runtime
        self._quorum = quorum
        self._metadata = metadata
        self._interval_ms = interval_ms
        self._next_ms = runtime.now_ms() + interval_ms
        self._writing: asyncio.Task[None] | None = None
        metadata.commits.add(self._committed)
        metadata.reloads.add(self.close)

    def upkeep(self, now_ms: int) -> None:
        """Write a snapshot if the interval is over and the state has changed."""
        if self._interval_ms and now_ms >= self._next_ms:
            self._next_ms = now_ms + self._interval_ms
            if self._quorum.snapshot_offset < self._metadata.end_offset:
                self._write()

    def close(self) -> None:
        """Give up the snapshot that is being written: the node stops, or the journal begins with another snapshot."""
        if self._writing is not None:
            self._writing.cancel()

    def _committed(self, _: int) -> None:
        if self._quorum.snapshot_due:
            self._write()

    def _write(self) -> None:
        metadata = self._metadata
        if self._writing is not None or not metadata.is_settled:
            return
        state, offset, epoch = metadata.state, metadata.end_offset, metadata.last_epoch
        secured = len(state.acls) + len(state.scram) + len(state.tokens) + len(state.quotas)
        is_small = state.partition_count + secured <= limits.SNAPSHOT_AT_ONCE_PARTITIONS
        entries = list(snapshot(state)) if is_small else snapshot(state.copy())
        if is_small and self._quorum.is_in_place:
            self._write_at_once(entries, offset, epoch)
        else:
            self._writing = asyncio.get_running_loop().create_task(self._write_slowly(entries, offset, epoch))

    def _write_at_once(self, entries: Iterable[MetadataEntry], offset: int, epoch: LeaderEpoch) -> None:
        try:
            self._quorum.flushed()
            for sync in self._quorum.writing_snapshot(entries, offset, epoch):
                if sync is not None:
                    sync()
        except StorageError as error:
            log.error("no metadata snapshot could be written: %s", error)

    async def _write_slowly(self, entries: Iterable[MetadataEntry], offset: int, epoch: LeaderEpoch) -> None:
        try:
            await self._quorum.flushed()
            for sync in self._quorum.writing_snapshot(entries, offset, epoch):
                if sync is not None:
                    await self._runtime.in_worker(sync)
                else:
                    await asyncio.sleep(0)
        except StorageError as error:  # the journal itself is complete; the next commit tries again
            log.error("no metadata snapshot could be written: %s", error)
        finally:
            self._writing = None
