"""OutsideCommits: offset commits by the node itself for a group, as a client that is no member may do.

The group may be coordinated here or by another node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.client.errors import error_code
from ottla.cluster.state import ClusterState
from ottla.model.errors import ApiError
from ottla.model.ids import NO_LEADER_EPOCH, TopicPartition
from ottla.server.loop.later import Later
from ottla.server.peers.peer_requests import PeerRequests

if TYPE_CHECKING:
    from ottla.server.groups.groups import Groups
    from ottla.wire.messages.groups.offset_commit import OffsetCommitResponse

Positions = Mapping[TopicPartition, int]


class OutsideCommits:
    def __init__(
        self, groups: Callable[[], Groups], peer_requests: PeerRequests, state: Callable[[], ClusterState]
    ) -> None:
        self._groups = groups
        self._peer_requests = peer_requests
        self._state = state

    def commit(self, group_id: str, positions: Positions, metadata: str) -> Later[ApiError | None]:
        """Commit the offsets of all existing topics; set to None when they are stored, else to the error."""
        outcome: Later[ApiError | None] = Later()

        def ready(error: ApiError | None) -> None:
            topics = self._state().topics
            known = {partition: offset for partition, offset in positions.items() if partition.topic in topics}
            if error is not None or not known:
                outcome.set(error)
                return
            node_id = self._groups().coordinators.elsewhere(group_id)
            if node_id is None:
                self._commit_here(group_id, known, metadata).then(outcome.set, outcome.fail)
            else:
                self._commit_elsewhere(node_id, group_id, known, metadata).then(outcome.set, outcome.fail)

        self._groups().coordinators.ensure_topic().then(ready, outcome.fail)
        return outcome

    def _commit_here(self, group_id: str, positions: Positions, metadata: str) -> Later[ApiError | None]:
        # Imported here because a node that never commits in this way needs none of the coordinator's code (ADR 0012).
        from ottla.groups.group import Committer
        from ottla.groups.offsets.commit import CommitOffsets, NewOffset

        topics = self._state().topics
        offsets = tuple(
            NewOffset(partition, offset, NO_LEADER_EPOCH, metadata, topics[partition.topic].id)
            for partition, offset in positions.items()
        )
        outsider = Committer(member_id="", instance_id=None, epoch=-1, request_version=0)
        return (
            self._groups()
            .submit(group_id, CommitOffsets(group_id, outsider, offsets))
            .map(lambda reply: reply if isinstance(reply, ApiError) else None)
        )

    def _commit_elsewhere(
        self, node_id: int, group_id: str, positions: Positions, metadata: str
    ) -> Later[ApiError | None]:
        from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest

        topics = self._state().topics
        by_topic: dict[str, OffsetCommitRequest.Topic] = {}
        for (name, index), offset in positions.items():
            topic = by_topic.setdefault(
                name, OffsetCommitRequest.Topic(name=name, topic_id=topics[name].id, partitions=[])
            )
            topic.partitions.append(
                OffsetCommitRequest.Topic.Partition(
                    partition_index=index, committed_offset=offset, committed_metadata=metadata
                )
            )
        request = OffsetCommitRequest(group_id=group_id, member_id="", topics=list(by_topic.values()))
        return self._peer_requests.ask(node_id, request, "offsets").map(_outcome)


def _outcome(answer: OffsetCommitResponse | ApiError) -> ApiError | None:
    if isinstance(answer, ApiError):
        return answer
    codes = [each.error_code for topic in answer.topics for each in topic.partitions if each.error_code]
    return ApiError(error_code(codes[0])) if codes else None
