"""Following: finding the leader, reading its journal, and noticing that it is gone.

Rules:
- A voter fetches again only when its log is on disk: its fetch offset tells the leader so. A controller that is not a
  voter yet does the same, because its fetch offset counts from the moment it becomes a voter.
- Where the leader reports a diverging epoch, our log is truncated; never below the high watermark.
- A voter that has no good answer for `fetch_timeout_ms` stands for election. A voter whose leader's process is gone
  stands at once: the pre-vote makes that harmless. Voters stand one after the other, lest they split the votes.
- An observer, or a voter without a leader, asks any voter: every answer names the leader.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.model.errors import ErrorCode
from ottla.model.ids import METADATA_TOPIC_ID, NO_BROKER_EPOCH, NO_ID
from ottla.model.limits import RAFT_STAGGER_MS
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.raft import answers, effects, events, lost_disk, membership
from ottla.raft.journal import OffsetAndEpoch, QuorumRecord
from ottla.raft.named_leader import NamedLeader, attach, heard_of, named_leader
from ottla.raft.request_checks import is_absurd, refusal
from ottla.raft.roles import Candidate, Follower, Prospective, Resigned, SnapshotDownload, Unattached
from ottla.raft.state import RaftState
from ottla.raft.transitions import become_prospective, new_follower
from ottla.raft.voters import QuorumEndpoint
from ottla.records.batch import headers
from ottla.records.control import ControlType, control_type
from ottla.records.record import records as records_of
from ottla.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from ottla.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from ottla.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

# The announcement of a leader when its epoch begins or ends.
_Announced = BeginQuorumEpochRequest.TopicData.PartitionData | EndQuorumEpochRequest.TopicData.PartitionData
_LeaderEndpoint = BeginQuorumEpochRequest.LeaderEndpoint | EndQuorumEpochRequest.LeaderEndpoint
_FIRST_BOOTSTRAP = -2  # destinations from here down are bootstrap servers, whose ids are unknown


# --- the leader


def settle(node: RaftState) -> None:
    """Take the first role after a start, from the remembered election state."""
    endpoint = node.leader_endpoint()
    if node.leader_id == node.me.id:
        # It led this epoch. Records that it had not yet sent may be lost, so it must not lead this epoch again.
        node.leader_id, node.voted = -1, node.me
        keys = tuple(voter.key for voter in node.voters.others(node.me.id))
        node.state = Resigned(node.election_timeout(), {key.id for key in keys}, keys)
    elif node.leader_id >= 0 and endpoint is not None:
        node.state = new_follower(node)
    else:
        node.state = Unattached(node.election_timeout())
    node.emit(effects.Follow(node.leader_id, node.epoch))


def epoch_begun(node: RaftState, token: object, request: BeginQuorumEpochRequest) -> None:
    """BeginQuorumEpoch: a leader announces itself."""
    error = refusal(node.cluster_id, request.cluster_id, request.topics)
    if error:
        node.reply(token, BeginQuorumEpochResponse(error_code=error, topics=[]))
        return
    told = request.topics[0].partitions[0]
    error = _mistake(node, told)
    if not error and (
        request.voter_id not in (-1, node.me.id)
        or (NO_ID not in (told.voter_directory_id, node.me.directory) and told.voter_directory_id != node.me.directory)
    ):
        error = ErrorCode.INVALID_VOTER_KEY
    if not error:
        _attach_to_sender(node, told, request.leader_endpoints)
    node.reply(token, answers.begin_quorum_epoch(node, error))


def epoch_ended(node: RaftState, token: object, request: EndQuorumEpochRequest) -> None:
    """EndQuorumEpoch: the leader resigns; its preferred successors stand for election first."""
    error = refusal(node.cluster_id, request.cluster_id, request.topics)
    if error:
        node.reply(token, EndQuorumEpochResponse(error_code=error, topics=[]))
        return
    told = request.topics[0].partitions[0]
    error = _mistake(node, told)
    if not error:
        _attach_to_sender(node, told, request.leader_endpoints)
        wanted = [each.candidate_id for each in told.preferred_candidates] or list(told.preferred_successors)
        if isinstance(node.state, Follower) and node.leader_id == told.leader_id:
            rank = wanted.index(node.me.id) if node.me.id in wanted else len(wanted)
            _leader_left(node, node.state, rank)
    node.reply(token, answers.end_quorum_epoch(node, error))


def _mistake(node: RaftState, told: _Announced) -> ErrorCode:
    """Return the error of a leader's announcement: its epoch is old, or its values are absurd."""
    if told.leader_epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    absurd = told.leader_id < 0 or is_absurd(told.leader_epoch, node.epoch)
    return ErrorCode.INVALID_REQUEST if absurd else ErrorCode.NONE


def _attach_to_sender(node: RaftState, told: _Announced, endpoints: Sequence[_LeaderEndpoint]) -> None:
    ends = [QuorumEndpoint(each.name, each.host, each.port) for each in endpoints]
    attach(node, NamedLeader(told.leader_id, told.leader_epoch, ends[0] if ends else None))


def unreachable(node: RaftState, event: events.Unreachable) -> None:
    state = node.state
    if isinstance(state, Prospective | Candidate):
        if event.node_id in node.voters and event.node_id not in state.granted:
            state.rejected.add(event.node_id)  # this voter will send no vote: do not wait for it
    elif isinstance(state, Follower) and event.node_id == node.leader_id:
        others = [voter.id for voter in node.voters.others(node.leader_id)]
        # The order rotates with the epoch, so that a voter that cannot win does not always stand first.
        rank = (others.index(node.me.id) + node.epoch) % len(others) if node.me.id in others else 0
        _leader_left(node, state, rank)


def _leader_left(node: RaftState, state: Follower, rank: int) -> None:
    if state.leader_gone:
        return
    state.leader_gone = True
    state.deadline_ms = min(state.deadline_ms, node.now_ms + _delay_ms(node, rank))


def _delay_ms(node: RaftState, rank: int) -> int:
    """Return how long to wait before standing for election: voters take turns, lest they split the votes."""
    return rank * RAFT_STAGGER_MS + node.rng.randrange(0, RAFT_STAGGER_MS // 2)


def _leaderless(node: RaftState, voter_id: int) -> None:
    """Note that a voter knows no leader. If a majority knows none, stand for election before the timeout."""
    state = node.state
    if not isinstance(state, Unattached) or voter_id not in node.voters or node.voted is not None:
        return
    state.leaderless.add(voter_id)
    if len(state.leaderless) + 1 >= node.voters.majority:
        stand_in_turn(node, state)


def stand_in_turn(node: RaftState, state: Unattached, turns_before: int = 0) -> None:
    """Stand for election soon, when it is this node's turn: there is no leader to wait for."""
    rank = (list(node.voters).index(node.me.id) + node.epoch) % len(node.voters) if node.is_voter else 0
    state.deadline_ms = min(state.deadline_ms, node.now_ms + _delay_ms(node, rank + turns_before))


# --- fetching


def poll(node: RaftState, state: Follower) -> int | None:
    receiving = state.receiving
    if receiving is not None and receiving.install_ms is not None:
        if node.now_ms < receiving.install_ms:
            return receiving.install_ms
        _install(node, state, receiving.snapshot)
    if lost_disk.may_stand(node) and node.now_ms >= state.deadline_ms:
        become_prospective(node)
        return None
    wake_ms = state.deadline_ms if lost_disk.may_stand(node) else node.now_ms + node.config.fetch_timeout_ms
    if node.now_ms < node.journal_pause_ms:
        return min(wake_ms, node.journal_pause_ms)
    if not node.may_fetch:
        return wake_ms
    is_late = node.now_ms >= state.deadline_ms or node.inflight.is_failing(node.leader_id)
    lost = is_late and not lost_disk.may_stand(node)
    if lost or state.leader_gone:
        wake_ms = min(wake_ms, fetch_from_anyone(node))
    if not state.leader_gone:
        wake_ms = min(wake_ms, _ask_leader(node, state))
    return wake_ms


def _ask_leader(node: RaftState, state: Follower) -> int:
    endpoint = node.leader_endpoint()
    if endpoint is None:
        return node.now_ms + node.config.retry_backoff_ms
    if node.inflight.is_ready(node.leader_id, node.now_ms):
        reading = _fetch(node) if state.receiving is None else _fetch_snapshot(node, state.receiving)
        node.send(node.leader_id, endpoint, membership.wanted(node, state) or reading)
    return node.inflight.wake_ms(node.leader_id, node.now_ms)


def fetch_from_anyone(node: RaftState) -> int:
    """Fetch from one voter or bootstrap server, a random one each time, because its answer names the leader.

    Return when to go on.
    """
    places: list[tuple[int, QuorumEndpoint]] = [
        (voter.id, voter.address) for voter in node.voters.others(node.me.id) if voter.address is not None
    ]
    if not node.voters:
        places = [(_FIRST_BOOTSTRAP - at, address) for at, address in enumerate(node.bootstrap)]
    if not places or not node.may_fetch:
        return node.now_ms + node.config.fetch_timeout_ms
    inflight = node.inflight
    busy = [destination for destination, _ in places if inflight.is_busy(destination) and destination != node.leader_id]
    if not busy:
        ready = [place for place in places if inflight.is_ready(place[0], node.now_ms)]
        fresh = [place for place in ready if not inflight.is_failing(place[0])] or ready
        if fresh:
            destination, address = fresh[node.rng.randrange(0, len(fresh))]
            node.send(destination, address, _fetch(node))
            busy = [destination]
    return min(inflight.wake_ms(destination, node.now_ms) for destination in busy or [place[0] for place in places])


def _fetch(node: RaftState) -> FetchRequest:
    replica_id = _counts_as(node)
    topic = FetchRequest.Topic
    partition = topic.Partition(
        partition=0,
        current_leader_epoch=node.epoch,
        fetch_offset=node.end.offset,
        last_fetched_epoch=node.end.epoch,
        log_start_offset=node.journal.start_offset,
        partition_max_bytes=node.config.fetch_max_bytes,
        replica_directory_id=node.me.directory,
        high_watermark=node.high_watermark,
    )
    return FetchRequest(
        cluster_id=node.cluster_id,
        replica_id=replica_id,
        replica_state=FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=NO_BROKER_EPOCH),
        max_wait_ms=node.config.fetch_wait_ms,
        min_bytes=0,
        max_bytes=node.config.fetch_max_bytes,
        session_id=0,
        session_epoch=-1,
        topics=[topic(topic=CLUSTER_METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        forgotten_topics_data=[],
    )


def fetch_answered(node: RaftState, destination: int, request: FetchRequest, response: FetchResponse) -> None:
    if response.error_code or not response.responses:
        node.inflight.pause(destination, node.now_ms)
        return
    data = response.responses[0].partitions[0]
    leader = named_leader(data.current_leader, response.node_endpoints)
    node.inflight.pause(destination, node.now_ms)  # until the answer proves to be useful
    if heard_of(node, leader, data.error_code):
        if leader.id < 0 and leader.epoch == node.epoch:
            _leaderless(node, destination)
        return
    state = node.state
    current = request.topics[0].partitions[0]
    if (
        data.error_code
        or not isinstance(state, Follower)
        or (destination >= 0 and destination != node.leader_id)
        or (current.fetch_offset, current.last_fetched_epoch) != node.end
        or state.receiving is not None
    ):
        return
    node.inflight.unpause(destination)
    _heard(node, state)
    if data.diverging_epoch.end_offset >= 0:
        _truncate(node, OffsetAndEpoch(data.diverging_epoch.end_offset, data.diverging_epoch.epoch))
        return
    if data.snapshot_id.end_offset >= 0:
        state.receiving = SnapshotDownload(OffsetAndEpoch(data.snapshot_id.end_offset, data.snapshot_id.epoch))
        return
    if data.records:
        _append(node, bytes(data.records))
    lost_disk.fetched(node, request.replica_state.replica_id, current.fetch_offset, data.high_watermark)
    # Only now may the high watermark move: all records that this node has are also in the leader's log.
    node.commit(min(data.high_watermark, node.journal.end_offset))


def _counts_as(node: RaftState) -> int:
    """Return the replica id for a fetch.

    In quarantine it is -1: such a fetch neither counts for the high watermark nor shows the leader a live voter.
    """
    return -1 if lost_disk.is_quarantined(node) else node.me.id


def _heard(node: RaftState, state: Follower) -> None:
    state.deadline_ms = node.now_ms + node.config.fetch_timeout_ms
    state.has_fetched = True
    state.leader_gone = False


def _append(node: RaftState, data: bytes) -> None:
    start = node.journal.end_offset
    node.journal.append_fetched(data)
    view = memoryview(data)
    for position, header in headers(view):
        if not header.is_control or header.base_offset < start:
            continue
        for record in records_of(view, position):
            kind = control_type(record.key)
            if kind in (ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS):
                node.learn(QuorumRecord(record.offset, kind, record.value or b""))


def _truncate(node: RaftState, theirs: OffsetAndEpoch) -> None:
    """Truncate our log to where it agrees with the leader's."""
    ours = node.epoch_end(theirs.epoch)
    offset = min(ours.offset, theirs.offset) if ours.epoch == theirs.epoch or theirs.epoch == 0 else ours.offset
    assert offset >= node.high_watermark, f"the leader lacks committed records from {offset} on"
    node.journal.truncate(offset)
    node.history.truncate(offset)


# --- snapshots


def _fetch_snapshot(node: RaftState, receiving: SnapshotDownload) -> FetchSnapshotRequest:
    topic = FetchSnapshotRequest.TopicSnapshot
    made = topic.PartitionSnapshot
    partition = made(
        partition=0,
        current_leader_epoch=node.epoch,
        snapshot_id=made.SnapshotId(end_offset=receiving.snapshot.offset, epoch=receiving.snapshot.epoch),
        position=receiving.position,
        replica_directory_id=node.me.directory,
    )
    return FetchSnapshotRequest(
        cluster_id=node.cluster_id,
        replica_id=_counts_as(node),
        max_bytes=node.config.fetch_snapshot_max_bytes,
        topics=[topic(name=CLUSTER_METADATA_TOPIC, partitions=[partition])],
    )


def snapshot_answered(
    node: RaftState, destination: int, request: FetchSnapshotRequest, response: FetchSnapshotResponse
) -> None:
    if response.error_code or not response.topics:
        node.inflight.pause(destination, node.now_ms)
        return
    data = response.topics[0].partitions[0]
    if heard_of(node, named_leader(data.current_leader), data.error_code):
        return
    state = node.state
    if not isinstance(state, Follower) or state.receiving is None or state.receiving.install_ms is not None:
        return
    receiving = state.receiving
    if data.error_code:
        # The snapshot is gone, or the received part does not match it: the next fetch names the snapshot to load now.
        state.receiving = None
        node.inflight.pause(destination, node.now_ms)
        return
    if (data.snapshot_id.end_offset, data.snapshot_id.epoch) != receiving.snapshot:
        return
    if data.position != receiving.position:
        return
    piece = bytes(data.unaligned_records)
    node.journal.receive_snapshot(receiving.snapshot, receiving.position, piece)
    receiving.position += len(piece)
    _heard(node, state)
    if receiving.position >= data.size:
        node.journal.seal_snapshot(receiving.snapshot)
        receiving.install_ms = node.now_ms + 1


def _install(node: RaftState, state: Follower, snapshot: OffsetAndEpoch) -> None:
    """Install a snapshot that was sealed, and so made durable, in an earlier step."""
    state.receiving = None
    state.deadline_ms = node.now_ms + node.config.fetch_timeout_ms
    try:
        node.journal.install_snapshot(snapshot)
    except ValueError:
        node.inflight.pause(node.leader_id, node.now_ms)
        return
    node.history.load(node.journal.quorum_records())
    node.high_watermark = max(node.high_watermark, snapshot.offset)
    node.emit(effects.LoadSnapshot(snapshot))
