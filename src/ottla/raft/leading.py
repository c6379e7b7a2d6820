"""Leading: beginning an epoch, announcing it, and resigning.

Rules:
- The high watermark is what a majority of the voters has on disk (see `committing`).
- A leader resigns if a majority has not fetched from it for a while: it may be cut off, and another node may lead.
- A leader counts itself by what it has on disk. It may have been removed from the voters, while the removal is not
  committed yet.
- A leader whose disk fails resigns; a sole voter stands again after the disk had a pause.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.raft import membership, waiting
from ottla.raft.committing import advance, append_controls
from ottla.raft.config import NEVER_MS
from ottla.raft.named_leader import heard_of, named_leader
from ottla.raft.replica_progress import voter_progress
from ottla.raft.roles import Leader, Resigned
from ottla.raft.state import RaftState
from ottla.raft.transitions import become, become_unattached, resign
from ottla.raft.voters import encode_kraft_version
from ottla.records.control import ControlType
from ottla.wire import compile
from ottla.wire.journal.control import LeaderChangeMessage
from ottla.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse

EpochRequest = TypeVar("EpochRequest", BeginQuorumEpochRequest, EndQuorumEpochRequest)


def become_leader(node: RaftState, granting: tuple[int, ...]) -> None:
    state = Leader(node.now_ms, node.journal.end_offset, granting)
    become(node, state, leader_id=node.me.id, voted=node.voted)
    controls = [(ControlType.LEADER_CHANGE, _leader_change(node, granting))]
    if node.history.from_bootstrap:
        # The voters of the bootstrap file become part of the log, for replicas that have only the log.
        controls.append((ControlType.KRAFT_VERSION, encode_kraft_version(node.history.kraft_version)))
        controls.append((ControlType.KRAFT_VOTERS, node.voters.encode()))
    append_controls(node, controls)
    advance(node, state)


def _leader_change(node: RaftState, granting: tuple[int, ...]) -> bytes:
    """The first record of every epoch: the leader and the voters that elected it.

    Kafka writes and reads only version 0 of it.
    """
    voter = LeaderChangeMessage.Voter
    message = LeaderChangeMessage(
        version=0,
        leader_id=node.me.id,
        voters=[voter(voter_id=voter_id) for voter_id in node.voters],
        granting_voters=[voter(voter_id=voter_id) for voter_id in granting],
    )
    return bytes(compile.encode(message, 0))


# --- acting when time has passed


def poll(node: RaftState, state: Leader) -> int | None:
    state.lost_ms = _lost_at(node, state)
    if node.now_ms >= state.lost_ms:
        resign(node, state)
        return None
    wake_ms = min(state.lost_ms, _announce(node, state), waiting.expire_waiting(node, state))
    change_ms = membership.poll(node, state)
    return min(wake_ms, change_ms)


def _lost_at(node: RaftState, state: Leader) -> int:
    """Return when the leader must resign if no voter fetches until then."""
    needed = node.voters.majority - node.is_voter
    if needed == 0:
        return NEVER_MS
    times = sorted((each.fetched_ms for each in voter_progress(node, state)), reverse=True)
    heard_ms = times[needed - 1] if len(times) >= needed else -1
    return max(heard_ms, state.since_ms) + node.config.check_quorum_ms


def _announce(node: RaftState, state: Leader) -> int:
    """Send BeginQuorumEpoch to voters that do not fetch; return when to go on."""
    wake_ms = NEVER_MS
    interval_ms = node.config.begin_epoch_interval_ms
    for voter, known in zip(node.voters.others(node.me.id), voter_progress(node, state), strict=True):
        if known.fetched_ms >= 0:
            known.announce_ms = max(known.announce_ms, known.fetched_ms + interval_ms)
        if node.now_ms >= known.announce_ms and voter.address is not None:
            if node.inflight.is_ready(voter.id, node.now_ms):
                node.send(voter.id, voter.address, _begin(node, voter.id, voter.directory))
                known.announce_ms = node.now_ms + interval_ms
            else:
                wake_ms = min(wake_ms, node.inflight.wake_ms(voter.id, node.now_ms))
                continue
        wake_ms = min(wake_ms, max(known.announce_ms, node.now_ms + 1))
    return wake_ms


def _begin(node: RaftState, voter_id: int, directory: bytes) -> BeginQuorumEpochRequest:
    request = _of_epoch(BeginQuorumEpochRequest, node, voter_directory_id=directory)
    request.voter_id = voter_id
    return request


def _of_epoch(made: type[EpochRequest], node: RaftState, **content: Any) -> EpochRequest:
    """Return a request about this leader's epoch; `content` are more fields of its partition."""
    partition = made.TopicData.PartitionData(
        partition_index=0, leader_id=node.me.id, leader_epoch=node.epoch, **content
    )
    return made(
        cluster_id=node.cluster_id,
        topics=[made.TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[made.LeaderEndpoint(name=e.name, host=e.host, port=e.port) for e in node.endpoints],
    )


def begin_answered(
    node: RaftState, voter_id: int, request: BeginQuorumEpochRequest, response: BeginQuorumEpochResponse
) -> None:
    if response.error_code or not response.topics:
        return
    told = response.topics[0].partitions[0]
    heard_of(node, named_leader(told, response.node_endpoints), told.error_code)


# --- resigning


def poll_resigned(node: RaftState, state: Resigned) -> int | None:
    if node.voters.is_only(node.me):
        # No other node can lead. Standing at once would begin an epoch whose first record the failing disk cannot
        # store.
        state.deadline_ms = node.journal_pause_ms
    if node.now_ms >= state.deadline_ms:
        become_unattached(node, node.epoch, voted=node.me)
        return None
    wake_ms = state.deadline_ms
    for voter in node.voters.others(node.me.id):
        if voter.id not in state.uninformed or voter.address is None:
            continue
        if node.inflight.is_ready(voter.id, node.now_ms):
            node.send(voter.id, voter.address, _end(node, state))
        wake_ms = min(wake_ms, node.inflight.wake_ms(voter.id, node.now_ms))
    return wake_ms


def _end(node: RaftState, state: Resigned) -> EndQuorumEpochRequest:
    info = EndQuorumEpochRequest.TopicData.PartitionData.ReplicaInfo
    return _of_epoch(
        EndQuorumEpochRequest,
        node,
        preferred_successors=[key.id for key in state.successors],
        preferred_candidates=[
            info(candidate_id=key.id, candidate_directory_id=key.directory) for key in state.successors
        ],
    )


def end_answered(
    node: RaftState, voter_id: int, request: EndQuorumEpochRequest, response: EndQuorumEpochResponse
) -> None:
    if response.error_code or not response.topics:
        return
    told = response.topics[0].partitions[0]
    if not heard_of(node, named_leader(told), told.error_code) and isinstance(node.state, Resigned):
        node.state.uninformed.discard(voter_id)
