"""MetadataHost: the cluster's state as this node knows it: all committed records are applied, and no others.

On every node the quorum hands over the committed records in order, each once; subscribers are told the changes. Many
records are applied in slices (`cluster/stages.py`), and subscribers handle a slice before the next one is applied. A
client that was told of a topic can use it at once on the node that told it: the active controller sends its replies
after their records were applied here.

A record that cannot be applied (a damaged journal, a record of a later release, a bug) stops the node: if it went on,
its state would differ from the state of the cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from typing import cast

from ottla.cluster.entities import Change, PartitionsAdded
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.journal import Item
from ottla.cluster.stages import in_stages
from ottla.cluster.state import ClusterState, JournalError
from ottla.machine.stepped import in_one_go
from ottla.model import limits
from ottla.model.ids import FIRST_LEADER_EPOCH, LeaderEpoch
from ottla.server.loop.slices import Steps
from ottla.server.loop.subscribers import Subscribers
from ottla.server.storage.identity import Identity

log = logging.getLogger(__name__)


class MetadataHost:
    """The quorum's listener. `state` may be read at any time but not kept: a snapshot replaces the object.

    The events that other parts can subscribe to:
    - `changes`: committed records were applied, perhaps in slices; called with the changes;
    - `reloads`: a snapshot replaced `state`; may be handled in slices;
    - `leaders`: the quorum has another leader; called with its id, -1 for none;
    - `commits`: records were committed and applied; called with the offset after them;
    - `failures`: no more records can be applied.
    """

    def __init__(self, identity: Identity) -> None:
        self.node_id = identity.node_id
        self.cluster_id = identity.cluster_id
        self.directory_ids = identity.directory_ids
        self.state = ClusterState()
        self.end_offset = 0  # all records below this offset are applied
        self.last_epoch = FIRST_LEADER_EPOCH  # the epoch of the last applied record
        self.changes: Subscribers[[list[Change]]] = Subscribers("a change of the cluster")
        self.reloads: Subscribers[[]] = Subscribers("a snapshot of the cluster")
        self.leaders: Subscribers[[int]] = Subscribers("a new controller")
        self.commits: Subscribers[[int]] = Subscribers("a commit")
        self.failures: Subscribers[[]] = Subscribers("the end of the metadata")
        self._shared: Callable[[], list[Change]] | None = None
        self._has_failed = False
        self._is_taking = False  # whether records are being applied in slices: `state` is then between two commits
        self._holds = 0
        self._held: list[tuple[Sequence[MetadataEntry], LeaderEpoch, int]] = []
        self._waiting: dict[asyncio.Future[None], None] = {}

    # --- for handlers

    @property
    def features_epoch(self) -> int:
        """The epoch of the finalized features: the last applied offset. Clients keep the features with the highest
        epoch.
        """
        return self.end_offset - 1

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a committed record or a new leader makes `condition` true.

        Raise JournalError once no more records can be applied.
        """
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

    def taking(self, entries: Sequence[MetadataEntry], epoch: LeaderEpoch, high_watermark: int) -> Steps:
        if self._has_failed:
            return
        if self._holds:
            self._held.append((entries, epoch, high_watermark))
        else:
            yield from self._taking(entries, epoch, high_watermark)

    def loading_snapshot(self, items: Iterable[Item], offset: int, epoch: LeaderEpoch) -> Steps:
        """Build the new state beside the old one, which stays visible until the new one is complete."""
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
        self.state = state
        self.end_offset, self.last_epoch = offset, epoch
        self._held.clear()
        yield from self.reloads.telling()
        self._wake()

    def lead(self, epoch: LeaderEpoch) -> None:
        log.info("node %d is the active controller of epoch %d", self.node_id, epoch)
        self.leaders.tell(self.node_id)
        self._wake()

    def follow(self, leader_id: int, epoch: LeaderEpoch) -> None:
        self.leaders.tell(leader_id)
        self._wake()

    # --- for the active controller

    @property
    def is_shared(self) -> bool:
        """Whether the active controller decides on this very state and applies its records to it."""
        return self._shared is not None

    def share(self, take_changes: Callable[[], list[Change]]) -> None:
        """Let the controller of a sole voter that starts apply its decisions to `state` itself; `take_changes` returns
        what that changed since the last call.
        """
        self._shared = take_changes

    def end_sharing(self) -> None:
        self._shared = None

    def hold(self) -> None:
        """Hold back records that are committed until `release`, so that the command under way is finished first."""
        self._holds += 1

    def release(self) -> None:
        self._holds -= 1
        while self._held and not self._holds:
            in_one_go(self._taking(*self._held.pop(0)))

    def fail(self) -> None:
        """Stop the node, because the state no longer agrees with the journal."""
        log.critical("the metadata of the cluster cannot be followed any further: this node stops", exc_info=True)
        self._has_failed = True
        self._held.clear()
        self.failures.tell()
        self._wake()

    # --- for snapshots

    @property
    def is_settled(self) -> bool:
        """Whether `state` is that of a complete commit: not in the middle of a slice or a transaction."""
        return not (self._held or self._has_failed or self.state.in_transaction or self._is_taking)

    # --- inside

    def _taking(self, entries: Sequence[MetadataEntry], epoch: LeaderEpoch, high_watermark: int) -> Steps:
        self._is_taking = True
        try:
            if self._shared is None:
                stages = in_stages(self.state, [entry.record for entry in entries])
            else:
                stages = iter([self._shared()])
            for number, changes in enumerate(stages):
                if number:
                    yield
                if changes:
                    yield from self.changes.telling(_merged(changes))
        except Exception:
            self.fail()
            raise
        finally:
            self._is_taking = False
        self.last_epoch, self.end_offset = epoch, high_watermark
        self.commits.tell(high_watermark)
        self._wake()

    def _wake(self) -> None:
        for future in tuple(self._waiting):
            if not future.done():
                future.set_result(None)


def _merged(changes: list[Change]) -> list[Change]:
    """Merge partitions that were added one by one into one change per topic."""
    merged: list[Change] = []
    for same, group in groupby(changes, key=lambda change: change.topic if type(change) is PartitionsAdded else None):
        if same is None:
            merged.extend(group)
        else:
            added = [partition for change in group for partition in cast(PartitionsAdded, change).partitions]
            merged.append(PartitionsAdded(same, tuple(added)))
    return merged
