"""MetadataHost: the cluster's state as this node knows it: everything that is committed, and nothing else.

Records come from the quorum in order, each once, on every node; what they changed goes to `on_change`. Very many are
taken in slices (`cluster/stages.py`); each slice is followed before the next one is taken. Whoever was told that a
topic exists can use it at once on the node that told it: the active controller's replies leave after the records behind
them have arrived here.

A record that cannot be applied (a damaged journal, one of a release to come, a mistake of ours) is the end: a node that
went on would know of a cluster that does not exist.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, cast

from ottla.cluster.entities import Change, PartitionsAdded
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.journal import Item
from ottla.cluster.snapshot import snapshot
from ottla.cluster.stages import in_stages
from ottla.cluster.state import ClusterState, JournalError
from ottla.log.files.disk import StorageError
from ottla.machine.stepped import in_one_go
from ottla.model import limits
from ottla.server.loop.slices import Steps
from ottla.server.loop.workers import in_worker
from ottla.server.storage.identity import Identity

if TYPE_CHECKING:
    from ottla.server.quorum.quorum import Quorum

log = logging.getLogger(__name__)


class MetadataHost:
    """What the quorum tells. `state` may be read at any time and kept by nobody: a snapshot puts another in its place.

    `on_change` hears what changed, `on_reload` that the state is another one, both perhaps in slices; `on_lead` that
    this node leads (True) or no longer does, `on_leader` that somebody does, `on_committed` how far everything is
    committed and applied.
    """

    quorum: Quorum  # set when it is opened: it needs this one to tell

    def __init__(self, identity: Identity, snapshot_interval_ms: int, now_ms: Callable[[], int]) -> None:
        self.node_id = identity.node_id
        self.cluster_id = identity.cluster_id
        self.directory_ids = identity.directory_ids
        self.state = ClusterState()
        self.end_offset = 0  # everything below is applied
        self.on_change: Callable[[list[Change]], Iterator[None] | None] = _ignore
        self.on_reload: Callable[[], Iterator[None] | None] = _do_nothing
        self.on_lead: Callable[[bool], None] = _ignore
        self.on_leader: Callable[[], None] = _do_nothing
        self.on_committed: Callable[[int], None] = _ignore
        self.on_failure: Callable[[], None] = _do_nothing
        # While a sole voter decides on this very state: what that changed since it was last asked.
        self.applied: Callable[[], list[Change]] | None = None
        self._has_failed = False
        self._is_taking = False  # records, slice by slice: the state is none that ever was committed
        self._now_ms = now_ms
        self._last_epoch = 0  # of the last record that was applied
        self._holds = 0
        self._held: list[tuple[Sequence[MetadataEntry], int, int]] = []
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._writing: asyncio.Task[None] | None = None  # a snapshot
        self._snapshot_interval_ms = snapshot_interval_ms
        self._snapshot_at_ms = now_ms() + snapshot_interval_ms

    # --- for handlers

    @property
    def epoch(self) -> int:
        """Of the quorum."""
        return self.quorum.epoch

    @property
    def features_epoch(self) -> int:
        """Clients keep the features with the highest epoch: the offset up to which they are known."""
        return self.end_offset - 1

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until something that was committed, or a new leader, makes `condition` true. Raises JournalError if
        nothing ever will."""
        while not condition():
            if self._has_failed:
                raise JournalError("the metadata of the cluster cannot be followed")
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[future] = None
            try:
                await future
            finally:
                self._waiting.pop(future, None)

    # --- from the quorum

    def taking(self, entries: Sequence[MetadataEntry], epoch: int, high_watermark: int) -> Steps:
        if self._has_failed:
            return
        if self._holds:
            self._held.append((entries, epoch, high_watermark))
        else:
            yield from self._taking(entries, epoch, high_watermark)

    def loading_snapshot(self, items: Iterable[Item], offset: int, epoch: int) -> Steps:
        """The new state is made beside the old one, which everybody sees meanwhile."""
        if self._has_failed:
            return
        state = ClusterState()
        entries = (item.content for item in items if isinstance(item.content, MetadataEntry))
        try:
            while some := [entry.record for entry in islice(entries, limits.METADATA_RECORDS_PER_SLICE)]:
                state.apply_all(some)
                if len(some) == limits.METADATA_RECORDS_PER_SLICE:
                    yield
        except JournalError:
            self.fail()
            raise
        self.close()
        self.state = state
        self.end_offset, self._last_epoch = offset, epoch
        self._held.clear()
        yield from self._telling(self.on_reload)
        self._wake()

    def lead(self, epoch: int) -> None:
        log.info("node %d is the active controller of epoch %d", self.node_id, epoch)
        self.on_lead(True)
        self.on_leader()
        self._wake()

    def follow(self, leader_id: int, epoch: int) -> None:
        self.on_lead(False)
        if leader_id >= 0:
            self.on_leader()
        self._wake()

    # --- for the active controller

    def hold(self) -> None:
        """What is committed until `release` is applied then: a command that is being carried out comes first."""
        self._holds += 1

    def release(self) -> None:
        self._holds -= 1
        while self._held and not self._holds:
            in_one_go(self._taking(*self._held.pop(0)))

    def fail(self) -> None:
        """The state has something else than the journal."""
        log.critical("the metadata of the cluster cannot be followed any further: this node stops", exc_info=True)
        self._has_failed = True
        self._held.clear()
        self.on_failure()
        self._wake()

    # --- for the node

    def upkeep(self, now_ms: int) -> None:
        """By the clock: a snapshot now and then, so that a start never has much to read."""
        if self._snapshot_interval_ms and now_ms >= self._snapshot_at_ms:
            self._snapshot_at_ms = now_ms + self._snapshot_interval_ms
            if self.quorum.snapshot_offset < self.end_offset:
                self._write_snapshot()

    def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()

    # --- inside

    def _taking(self, entries: Sequence[MetadataEntry], epoch: int, high_watermark: int) -> Steps:
        self._is_taking = True
        try:
            if self.applied is None:
                stages = in_stages(self.state, [entry.record for entry in entries])
            else:
                stages = iter([self.applied()])
            for number, changes in enumerate(stages):
                if number:
                    yield
                if changes:
                    yield from self._telling(self.on_change, _merged(changes))
        except Exception:
            self.fail()
            raise
        finally:
            self._is_taking = False
        self._last_epoch, self.end_offset = epoch, high_watermark
        self.on_committed(high_watermark)
        self._wake()
        if self.quorum.snapshot_due:
            self._write_snapshot()

    def _telling(self, follow: Callable[..., Iterator[None] | None], *told: list[Change]) -> Steps:
        """Whoever fails to follow must not keep the state from going on."""
        try:
            yield from follow(*told) or ()
        except Exception:
            log.exception("a change of the cluster could not be followed")

    def _wake(self) -> None:
        for future in tuple(self._waiting):
            if not future.done():
                future.set_result(None)

    def _write_snapshot(self) -> None:
        """While everything else goes on; a large one of a copy. Never of the middle of a transaction: what would be
        read behind it could not stand alone."""
        if self._writing is not None or self._held or self._has_failed or self.state.in_transaction or self._is_taking:
            return
        is_small = self.state.partition_count <= limits.SNAPSHOT_AT_ONCE_PARTITIONS
        entries = list(snapshot(self.state)) if is_small else snapshot(self.state.copy())
        if is_small and self.quorum.is_in_place:
            self._write_at_once(entries)
            return
        writing = self._write_slowly(entries, self.end_offset, self._last_epoch)
        self._writing = asyncio.get_running_loop().create_task(writing)

    def _write_at_once(self, entries: Iterable[MetadataEntry]) -> None:
        try:
            self.quorum.flushed()
            for sync in self.quorum.writing_snapshot(entries, self.end_offset, self._last_epoch):
                if sync is not None:
                    sync()
        except StorageError as error:
            log.error("no metadata snapshot could be written: %s", error)

    async def _write_slowly(self, entries: Iterable[MetadataEntry], offset: int, epoch: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self.quorum.flushed()
            for sync in self.quorum.writing_snapshot(entries, offset, epoch):
                if sync is not None:
                    await in_worker(loop, self.quorum.executor, sync)
                else:
                    await asyncio.sleep(0)
        except StorageError as error:  # the journal itself is complete; the next change tries again
            log.error("no metadata snapshot could be written: %s", error)
        finally:
            self._writing = None


def _merged(changes: list[Change]) -> list[Change]:
    """Partitions that were added one by one, as one change per topic."""
    merged: list[Change] = []
    for same, group in groupby(changes, key=lambda change: change.topic if type(change) is PartitionsAdded else None):
        if same is None:
            merged.extend(group)
        else:
            added = [partition for change in group for partition in cast(PartitionsAdded, change).partitions]
            merged.append(PartitionsAdded(same, tuple(added)))
    return merged


def _ignore(_: object) -> None:
    """Until the node is listening."""


def _do_nothing() -> None:
    """Until the node is listening."""
