"""Leading: beginning an epoch, counting who has what, and giving it up.

Rules:
- The high watermark is what a majority of the voters has on disk, and moves only once that includes the first record
  of the leader's own epoch: what predecessors left is committed by that, never by counting.
- A leader that a majority did not fetch from for a while resigns: it may be cut off, and another may lead.
- A leader counts for itself what it has on disk, and may be no voter any more (its removal is not committed yet).
- A leader whose disk fails resigns; a sole voter stands again when the disk has had its pause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.limits import RAFT_REPLICAS_MAX
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.raft import effects, election, membership, serving
from ottla.raft.config import NEVER_MS
from ottla.raft.port import QuorumRecord, ReplicaKey
from ottla.raft.roles import Leader, Progress, Resigned
from ottla.raft.voters import Endpoint, encode_kraft_version
from ottla.records.control import ControlType
from ottla.wire import compile
from ottla.wire.journal.control import LeaderChangeMessage
from ottla.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse

if TYPE_CHECKING:
    from ottla.raft.node import RaftNode


def become_leader(node: RaftNode, granting: tuple[int, ...]) -> None:
    state = Leader(node.now_ms, node.journal.end_offset, granting)
    node.become(state, leader_id=node.me.id, voted=node.voted)
    controls = [(ControlType.LEADER_CHANGE, _leader_change(node, granting))]
    if node.history.from_bootstrap:
        # The formatter's voters become part of the log, for those who get nothing but the log.
        controls.append((ControlType.KRAFT_VERSION, encode_kraft_version(node.history.kraft_version)))
        controls.append((ControlType.KRAFT_VOTERS, node.voters.encode()))
    append_controls(node, controls)
    advance(node, state)


def _leader_change(node: RaftNode, granting: tuple[int, ...]) -> bytes:
    """The first record of every epoch: who leads, by whose votes. Kafka writes and reads version 0 of it only."""
    voter = LeaderChangeMessage.Voter
    message = LeaderChangeMessage(
        version=0,
        leader_id=node.me.id,
        voters=[voter(voter_id=voter_id) for voter_id in node.voters],
        granting_voters=[voter(voter_id=voter_id) for voter_id in granting],
    )
    return bytes(compile.encode(message, 0))


def append_controls(node: RaftNode, controls: list[tuple[ControlType, bytes]]) -> None:
    offset = node.journal.end_offset
    node.journal.append_controls(controls, node.epoch)
    for at, (kind, value) in enumerate(controls):
        node.learn(QuorumRecord(offset + at, kind, value))


# --- counting


def progress(node: RaftNode, state: Leader, key: ReplicaKey) -> Progress:
    found = state.replicas.get(key)
    if found is None:
        if len(state.replicas) >= RAFT_REPLICAS_MAX:
            _forget_one(node, state)
        found = state.replicas[key] = Progress(key)
    return found


def counts(node: RaftNode, state: Leader, key: ReplicaKey) -> bool:
    """Whether a disk is the one that a static voter has now. With another it is a voter that lost the first, and what
    that one still had on its way must not count for it."""
    voter = node.voters.get(key.id)
    if voter is None or voter.directory != NO_ID or key.directory == NO_ID:
        return True
    if key not in state.replicas and key not in state.superseded:
        state.superseded |= {each for each in state.replicas if each.id == key.id and each.directory != NO_ID}
    return key not in state.superseded


def _forget_one(node: RaftNode, state: Leader) -> None:
    """Anybody can call itself an observer: of too many, the one goes that was not heard of for longest."""
    observers = [each for each in state.replicas.values() if not node.voters.has(each.key)]
    if observers:
        del state.replicas[min(observers, key=lambda each: each.fetched_ms).key]


def voter_progress(node: RaftNode, state: Leader) -> list[Progress]:
    """Of every other voter. Static voters are counted by their id, whatever disk they say they have."""
    voters = node.voters
    known: dict[int, Progress] = {}
    for key, each in state.replicas.items():
        if key in state.superseded or not voters.has(key):
            continue
        if key.id not in known or known[key.id].fetched_ms < each.fetched_ms:
            known[key.id] = each
    return [known.get(voter.id) or progress(node, state, voter.key) for voter in voters.others(node.me.id)]


def advance(node: RaftNode, state: Leader) -> None:
    """See whether the high watermark moves."""
    ends = [each.end_offset for each in voter_progress(node, state)]
    if node.is_voter:
        ends.append(node.journal.flushed_offset)
    ends.sort(reverse=True)
    offset = ends[node.voters.majority - 1] if len(ends) >= node.voters.majority else -1
    if offset <= state.epoch_start:
        return
    before = node.high_watermark
    node.commit(offset)
    if not state.is_ready:
        state.is_ready = True
        node.emit(effects.Lead(node.epoch))
    elif node.high_watermark == before:
        return
    serving.answer_waiting(node, state)
    membership.committed(node, state)


def grown(node: RaftNode, state: Leader) -> None:
    """The log has more than before; a sole voter has put it on disk already."""
    advance(node, state)
    serving.answer_waiting(node, state)


# --- the clock


def poll(node: RaftNode, state: Leader) -> int | None:
    state.lost_ms = _lost_at(node, state)
    if node.now_ms >= state.lost_ms:
        resign(node, state)
        return None
    wake_ms = min(state.lost_ms, _announce(node, state), serving.expire_waiting(node, state))
    change_ms = membership.poll(node, state)
    return min(wake_ms, change_ms)


def _lost_at(node: RaftNode, state: Leader) -> int:
    """When the leader must stop to believe in itself, if nobody fetches until then."""
    needed = node.voters.majority - node.is_voter
    if needed == 0:
        return NEVER_MS
    times = sorted((each.fetched_ms for each in voter_progress(node, state)), reverse=True)
    heard_ms = times[needed - 1] if len(times) >= needed else -1
    return max(heard_ms, state.since_ms) + node.config.check_quorum_ms


def _announce(node: RaftNode, state: Leader) -> int:
    """Tell those voters who leads that do not fetch."""
    wake_ms = NEVER_MS
    interval_ms = node.config.begin_epoch_interval_ms
    for voter, known in zip(node.voters.others(node.me.id), voter_progress(node, state), strict=True):
        if known.fetched_ms >= 0:
            known.announce_ms = max(known.announce_ms, known.fetched_ms + interval_ms)
        if node.now_ms >= known.announce_ms and voter.address is not None:
            if node.lines.is_ready(voter.id, node.now_ms):
                node.send(voter.id, voter.address, _begin(node, voter.id, voter.directory))
                known.announce_ms = node.now_ms + interval_ms
            else:
                wake_ms = min(wake_ms, node.lines.wake_ms(voter.id, node.now_ms))
                continue
        wake_ms = min(wake_ms, max(known.announce_ms, node.now_ms + 1))
    return wake_ms


def _begin(node: RaftNode, voter_id: int, directory: bytes) -> BeginQuorumEpochRequest:
    made = BeginQuorumEpochRequest
    partition = made.TopicData.PartitionData(
        partition_index=0, voter_directory_id=directory, leader_id=node.me.id, leader_epoch=node.epoch
    )
    return made(
        cluster_id=node.cluster_id,
        voter_id=voter_id,
        topics=[made.TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[made.LeaderEndpoint(name=e.name, host=e.host, port=e.port) for e in node.endpoints],
    )


def begin_answered(
    node: RaftNode, voter_id: int, request: BeginQuorumEpochRequest, response: BeginQuorumEpochResponse
) -> None:
    if response.error_code or not response.topics:
        return
    told = response.topics[0].partitions[0]
    found = next((each for each in response.node_endpoints if each.node_id == told.leader_id), None)
    endpoint = Endpoint("", found.host, found.port) if found is not None else None
    node.heard_of(told.error_code, told.leader_id, told.leader_epoch, endpoint)


# --- giving it up


def resign(node: RaftNode, state: Leader) -> None:
    """The others are told, those first who have most: one of them is elected soonest."""
    known = sorted(voter_progress(node, state), key=lambda each: (-each.end_offset, each.key))
    keys = tuple(node.voters[each.key.id].key for each in known)
    told = {key.id for key in keys}
    node.become(Resigned(node.election_timeout(), told, keys), voted=node.me)


def step_down(node: RaftNode, state: Leader, epoch: int) -> None:
    """Whoever waited for this leader must ask another."""
    error = ErrorCode.FENCED_LEADER_EPOCH if epoch > node.epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
    serving.refuse_waiting(node, state, error)
    membership.refused(node, state, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def poll_resigned(node: RaftNode, state: Resigned) -> int | None:
    if node.voters.is_only(node.me):
        # Nobody else can lead. At once it would begin an epoch that a failing disk does not take the first record of.
        state.deadline_ms = node.journal_pause_ms
    if node.now_ms >= state.deadline_ms:
        election.become_unattached(node, node.epoch, voted=node.me)
        return None
    wake_ms = state.deadline_ms
    for voter in node.voters.others(node.me.id):
        if voter.id not in state.untold or voter.address is None:
            continue
        if node.lines.is_ready(voter.id, node.now_ms):
            node.send(voter.id, voter.address, _end(node, state))
        wake_ms = min(wake_ms, node.lines.wake_ms(voter.id, node.now_ms))
    return wake_ms


def _end(node: RaftNode, state: Resigned) -> EndQuorumEpochRequest:
    made = EndQuorumEpochRequest
    info = made.TopicData.PartitionData.ReplicaInfo
    partition = made.TopicData.PartitionData(
        partition_index=0,
        leader_id=node.me.id,
        leader_epoch=node.epoch,
        preferred_successors=[key.id for key in state.successors],
        preferred_candidates=[
            info(candidate_id=key.id, candidate_directory_id=key.directory) for key in state.successors
        ],
    )
    return made(
        cluster_id=node.cluster_id,
        topics=[made.TopicData(topic_name=CLUSTER_METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=[made.LeaderEndpoint(name=e.name, host=e.host, port=e.port) for e in node.endpoints],
    )


def end_answered(
    node: RaftNode, voter_id: int, request: EndQuorumEpochRequest, response: EndQuorumEpochResponse
) -> None:
    if response.error_code or not response.topics:
        return
    told = response.topics[0].partitions[0]
    if not node.heard_of(told.error_code, told.leader_id, told.leader_epoch, None) and isinstance(node.state, Resigned):
        node.state.untold.discard(voter_id)
