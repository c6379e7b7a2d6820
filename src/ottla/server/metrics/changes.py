"""What happens to partitions and to the quorum, counted from changes of the metadata as they are applied."""

from __future__ import annotations

from ottla.cluster.entities import NO_LEADER, Change, PartitionChanged
from ottla.observe.metrics.catalogue import partitions as told
from ottla.observe.metrics.catalogue import quorum as of_quorum
from ottla.observe.metrics.exposition import Exposition
from ottla.server.loop.slices import Steps
from ottla.server.quorum.metadata_host import MetadataHost


class ChangeCounts:
    def __init__(self, metadata: MetadataHost) -> None:
        self._node_id = metadata.node_id
        self._shrinks = self._expands = self._leaders = self._unclean = self._controllers = 0
        self._controller = -1
        self._ends = (metadata.changes.add(self._changed), metadata.leaders.add(self._another_controller))

    def close(self) -> None:
        for end in self._ends:
            end()

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, PartitionChanged):
                old, new = change.old, change.new
                self._leaders += old.leader != new.leader
                self._unclean += new.leader not in (NO_LEADER, old.leader, *old.isr, *old.elr)
                if new.leader == self._node_id:
                    self._shrinks += not set(old.isr) <= set(new.isr)
                    self._expands += not set(new.isr) <= set(old.isr)

    def _another_controller(self, leader_id: int) -> None:
        self._controllers += leader_id != self._controller
        self._controller = leader_id

    def collect(self, exposition: Exposition) -> Steps:
        exposition.add(told.ISR_SHRINKS, self._shrinks)
        exposition.add(told.ISR_EXPANDS, self._expands)
        exposition.add(told.LEADER_CHANGES, self._leaders)
        exposition.add(of_quorum.UNCLEAN, self._unclean)
        exposition.add(of_quorum.QUORUM_CHANGES, self._controllers)
        yield
