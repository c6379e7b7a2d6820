"""The metadata quorum as this node sees it."""

from __future__ import annotations

from ottla.observe.metrics.catalogue import quorum as told
from ottla.observe.metrics.exposition import Exposition
from ottla.server.loop.slices import Steps
from ottla.server.quorum.quorum_member import QuorumMember


class QuorumCollector:
    def __init__(self, member: QuorumMember) -> None:
        self._member = member

    def collect(self, exposition: Exposition) -> Steps:
        quorum, metadata = self._member.quorum, self._member.metadata
        exposition.add(told.ACTIVE_CONTROLLER, int(self._member.controller.active))
        exposition.add(told.QUORUM_LEADER, quorum.leader_id)
        exposition.add(told.QUORUM_EPOCH, quorum.epoch)
        exposition.add(told.QUORUM_VOTERS, len(quorum.voters))
        exposition.add(told.QUORUM_HIGH_WATERMARK, quorum.high_watermark)
        exposition.add(told.METADATA_END, quorum.end_offset)
        exposition.add(told.METADATA_LAG, max(0, quorum.high_watermark - metadata.end_offset))
        yield
