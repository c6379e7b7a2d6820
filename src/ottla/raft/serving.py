"""A leader's answers to replicas that read its journal: Fetch and FetchSnapshot.

Rules:
- A follower's fetch offset says what it has on disk, and its last fetched epoch whether its log agrees with ours: only
  then does the fetch count. If the logs disagree, the answer names the diverging epoch or the snapshot to load.
- An empty answer waits for records, or for the high watermark to pass the one that the follower knows (KIP-1166).
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.ids import METADATA_TOPIC_ID
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.raft import answers, replica_progress, waiting
from ottla.raft.committing import advance
from ottla.raft.journal import OffsetAndEpoch, ReplicaKey
from ottla.raft.request_checks import leader_refusal, refusal
from ottla.raft.roles import Leader, WaitingFetch
from ottla.raft.state import RaftState
from ottla.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse


def fetch_asked(node: RaftState, token: object, request: FetchRequest) -> None:
    error = _refusal(node, request)
    if error:
        node.reply(token, FetchResponse(error_code=error, responses=[]))
        return
    ask = request.topics[0].partitions[0]
    too_new = ask.last_fetched_epoch > ask.current_leader_epoch
    if too_new or min(ask.fetch_offset, ask.last_fetched_epoch, request.max_wait_ms) < 0:
        node.reply(token, answers.fetch(node, ErrorCode.INVALID_REQUEST))
        return
    error = leader_refusal(node, ask.current_leader_epoch)
    if error:
        node.reply(token, answers.fetch(node, error))
        return
    assert isinstance(node.state, Leader)
    found = check(node, OffsetAndEpoch(ask.fetch_offset, ask.last_fetched_epoch))
    if found is not None:
        diverging, snapshot = found
        node.reply(token, answers.fetch(node, ErrorCode.NONE, diverging=diverging, snapshot=snapshot))
        return
    state = node.state
    _note(node, state, request)
    state.waiting.append(WaitingFetch(token, request, node.now_ms + request.max_wait_ms))
    advance(node, state)
    waiting.answer_waiting(node, state)


def _refusal(node: RaftState, request: FetchRequest) -> ErrorCode:
    if request.cluster_id is not None and request.cluster_id != node.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    named = [topic.topic == CLUSTER_METADATA_TOPIC or topic.topic_id == METADATA_TOPIC_ID for topic in request.topics]
    alone = len(request.topics) == 1 and len(request.topics[0].partitions) == 1
    return ErrorCode.NONE if named == [True] and alone else ErrorCode.INVALID_REQUEST


def check(node: RaftState, place: OffsetAndEpoch) -> tuple[OffsetAndEpoch | None, OffsetAndEpoch | None] | None:
    """Compare the end of a follower's log with ours.

    None if they agree, else (diverging epoch, None) or (None, snapshot to load).
    """
    journal = node.journal
    if journal.start_offset == 0 and place.offset == 0:
        return None
    earliest = journal.earliest_snapshot
    if earliest is not None and (
        place.offset < journal.start_offset
        or (place.offset == journal.start_offset and place.epoch != earliest.epoch)
        or place.epoch < earliest.epoch
    ):
        return None, journal.latest_snapshot
    ours = node.epoch_end(place.epoch)
    if ours.epoch != place.epoch or ours.offset < place.offset:
        return ours, None
    return None


def _note(node: RaftState, state: Leader, request: FetchRequest) -> None:
    """Note the progress of the follower that sent a fetch."""
    replica_id = max(request.replica_id, request.replica_state.replica_id)
    if replica_id < 0 or replica_id == node.me.id:
        return
    ask = request.topics[0].partitions[0]
    key = ReplicaKey(replica_id, ask.replica_directory_id)
    if not replica_progress.counts(node, state, key):
        return
    known = replica_progress.progress(node, state, key)
    end = node.journal.end_offset
    if ask.fetch_offset >= end:
        known.caught_up_ms = node.now_ms
    elif ask.fetch_offset >= known.end_at_fetch >= 0:
        known.caught_up_ms = max(known.caught_up_ms, known.fetched_ms)
    known.end_at_fetch = end
    known.fetched_ms = node.now_ms
    known.end_offset = max(known.end_offset, ask.fetch_offset)


# --- snapshots


def snapshot_asked(node: RaftState, token: object, request: FetchSnapshotRequest) -> None:
    error = refusal(node.cluster_id, request.cluster_id, request.topics, "name")
    if error:
        node.reply(token, FetchSnapshotResponse(error_code=error, topics=[]))
        return
    ask = request.topics[0].partitions[0]
    snapshot = OffsetAndEpoch(ask.snapshot_id.end_offset, ask.snapshot_id.epoch)
    error = leader_refusal(node, ask.current_leader_epoch)
    if error:
        node.reply(token, answers.fetch_snapshot(node, error, snapshot))
        return
    assert isinstance(node.state, Leader)
    max_bytes = max(min(request.max_bytes, node.config.fetch_snapshot_max_bytes), 0)
    found = node.journal.read_snapshot(snapshot, ask.position, max_bytes)
    if found is None:
        node.reply(token, answers.fetch_snapshot(node, ErrorCode.SNAPSHOT_NOT_FOUND, snapshot))
        return
    size, data = found
    if not 0 <= ask.position < size:
        node.reply(token, answers.fetch_snapshot(node, ErrorCode.POSITION_OUT_OF_RANGE, snapshot))
        return
    if request.replica_id >= 0 and request.replica_id != node.me.id:
        # A replica that loads a snapshot is alive, although it does not fetch.
        key = ReplicaKey(request.replica_id, ask.replica_directory_id)
        if replica_progress.counts(node, node.state, key):
            replica_progress.progress(node, node.state, key).fetched_ms = node.now_ms
    answer = answers.fetch_snapshot(node, ErrorCode.NONE, snapshot, size=size, position=ask.position, data=data)
    node.reply(token, answer)
