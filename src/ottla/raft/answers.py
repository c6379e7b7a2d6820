"""Builds the responses of a replica.

Each names the leader, its epoch and its endpoint: that is how other replicas find the leader.
"""

from __future__ import annotations

from typing import Any, TypedDict, TypeVar

from ottla.model.errors import ErrorCode
from ottla.model.ids import METADATA_TOPIC_ID
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.raft.journal import OffsetAndEpoch, ReadableBytes
from ottla.raft.state import RaftState
from ottla.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochResponse
from ottla.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochResponse
from ottla.wire.messages.quorum.fetch_snapshot import FetchSnapshotResponse
from ottla.wire.messages.quorum.update_raft_voter import UpdateRaftVoterResponse
from ottla.wire.messages.quorum.vote import VoteResponse
from ottla.wire.messages.records.fetch import FetchResponse

TOPIC = CLUSTER_METADATA_TOPIC
OfAnEpoch = TypeVar("OfAnEpoch", VoteResponse, BeginQuorumEpochResponse, EndQuorumEpochResponse)


def vote(node: RaftState, error: ErrorCode, granted: bool = False) -> VoteResponse:
    return _of_an_epoch(VoteResponse, node, error, vote_granted=granted)


def begin_quorum_epoch(node: RaftState, error: ErrorCode) -> BeginQuorumEpochResponse:
    return _of_an_epoch(BeginQuorumEpochResponse, node, error)


def end_quorum_epoch(node: RaftState, error: ErrorCode) -> EndQuorumEpochResponse:
    return _of_an_epoch(EndQuorumEpochResponse, node, error)


def _of_an_epoch(made: type[OfAnEpoch], node: RaftState, error: ErrorCode, **more: Any) -> OfAnEpoch:
    partition = made.TopicData.PartitionData(
        partition_index=0, error_code=error, leader_id=node.leader_id, leader_epoch=node.epoch, **more
    )
    return made(
        error_code=ErrorCode.NONE,
        topics=[made.TopicData(topic_name=TOPIC, partitions=[partition])],
        node_endpoints=[made.NodeEndpoint(**each) for each in _leader(node)],
    )


def fetch(
    node: RaftState,
    error: ErrorCode,
    *,
    records: ReadableBytes = b"",
    diverging: OffsetAndEpoch | None = None,
    snapshot: OffsetAndEpoch | None = None,
) -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse
    data = topic.PartitionData(
        partition_index=0,
        error_code=error,
        high_watermark=node.reported_high_watermark,
        log_start_offset=node.journal.start_offset,
        aborted_transactions=[],
        records=records,
    )
    data.current_leader.leader_id = node.leader_id
    data.current_leader.leader_epoch = node.epoch
    if diverging is not None:
        data.diverging_epoch.end_offset, data.diverging_epoch.epoch = diverging
    if snapshot is not None:
        data.snapshot_id.end_offset, data.snapshot_id.epoch = snapshot
    return FetchResponse(
        responses=[topic(topic=TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[data])],
        node_endpoints=[FetchResponse.NodeEndpoint(**each) for each in _leader(node)],
    )


def fetch_snapshot(
    node: RaftState,
    error: ErrorCode,
    snapshot: OffsetAndEpoch,
    *,
    size: int = 0,
    position: int = 0,
    data: ReadableBytes = b"",
) -> FetchSnapshotResponse:
    topic = FetchSnapshotResponse.TopicSnapshot
    made = topic.PartitionSnapshot
    partition = made(
        index=0,
        error_code=error,
        snapshot_id=made.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        current_leader=made.LeaderIdAndEpoch(leader_id=node.leader_id, leader_epoch=node.epoch),
        size=size,
        position=position,
        unaligned_records=data,
    )
    return FetchSnapshotResponse(
        error_code=ErrorCode.NONE,
        topics=[topic(name=TOPIC, partitions=[partition])],
        node_endpoints=[FetchSnapshotResponse.NodeEndpoint(**each) for each in _leader(node)],
    )


def update_raft_voter(node: RaftState, error: ErrorCode) -> UpdateRaftVoterResponse:
    leader = UpdateRaftVoterResponse.CurrentLeader(leader_id=node.leader_id, leader_epoch=node.epoch)
    for each in _leader(node):
        leader.host, leader.port = each["host"], each["port"]
    return UpdateRaftVoterResponse(error_code=error, current_leader=leader)


class _LeaderNode(TypedDict):
    node_id: int
    host: str
    port: int


def _leader(node: RaftState) -> list[_LeaderNode]:
    endpoint = node.leader_endpoint()
    if endpoint is None:
        return []
    return [{"node_id": node.leader_id, "host": endpoint.host, "port": endpoint.port}]
