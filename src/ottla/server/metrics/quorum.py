"""The metadata quorum as this node sees it."""

from __future__ import annotations

from ottla.observe.metrics.catalogue import quorum as told
from ottla.observe.metrics.exposition import Exposition
from ottla.raft.roles import Role
from ottla.server.loop.slices import Steps
from ottla.server.quorum.quorum import Quorum
from ottla.server.quorum.quorum_member import QuorumMember


class QuorumCollector:
    def __init__(self, member: QuorumMember) -> None:
        self._member = member

    def collect(self, exposition: Exposition) -> Steps:
        quorum, metadata = self._member.quorum, self._member.metadata
        exposition.add(told.ACTIVE_CONTROLLER, int(self._member.controller.active))
        exposition.add(told.RAFT_STATE, 1, _state(quorum))
        exposition.add(told.RAFT_LEADER, quorum.leader_id)
        exposition.add(told.RAFT_EPOCH, quorum.epoch)
        exposition.add(told.RAFT_HIGH_WATERMARK, quorum.high_watermark)
        exposition.add(told.RAFT_END, quorum.end_offset)
        exposition.add(told.RAFT_VOTERS, len(quorum.voters))
        exposition.add(told.APPLIED_OFFSET, metadata.end_offset - 1)
        exposition.add(told.QUORUM_LEADER, quorum.leader_id)
        exposition.add(told.QUORUM_EPOCH, quorum.epoch)
        exposition.add(told.QUORUM_VOTERS, len(quorum.voters))
        exposition.add(told.QUORUM_HIGH_WATERMARK, quorum.high_watermark)
        exposition.add(told.METADATA_END, quorum.end_offset)
        exposition.add(told.METADATA_LAG, max(0, quorum.high_watermark - metadata.end_offset))
        yield


def _state(quorum: Quorum) -> str:
    """What this node is in the quorum, in Kafka's words."""
    role = quorum.node.role
    return "observer" if role is Role.FOLLOWER and not quorum.is_voter else role.value
