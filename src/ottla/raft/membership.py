"""Changing the voters (KIP-853): AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter.

Rules:
- One change at a time, by one voter, and only when the leader's own epoch has begun: any majority before the change and
  any majority after it then have a voter in common.
- A new voter must have caught up first, or the quorum could stop until it has.
- A voter set holds from the moment it is appended; the answer waits until it is committed. A leader that removed itself
  leads until then.
- With kraft.version 0 the voters come from the configuration and cannot be changed (but see `upgrade`).
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.model.version import VERSION
from ottla.raft import answers, waiting
from ottla.raft.committing import advance, append_controls
from ottla.raft.config import NEVER_MS
from ottla.raft.journal import ReplicaKey
from ottla.raft.named_leader import NamedLeader, heard_of
from ottla.raft.request_checks import leader_refusal
from ottla.raft.roles import Follower, Leader, VoterChange
from ottla.raft.state import RaftState
from ottla.raft.voters import KRAFT_VERSION_MAX, QuorumEndpoint, Voter, VoterSet
from ottla.records.control import ControlType
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.wire.messages.quorum.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse

KRAFT_VERSION = "kraft.version"
# A replica that fetched everything within this time counts as one that keeps up.
CAUGHT_UP_MS = 3_600_000


def _refusal(node: RaftState, cluster_id: str | None) -> tuple[ErrorCode, str]:
    """Return why the voters cannot be changed now; NONE if they can."""
    state = node.state
    if cluster_id is not None and cluster_id != node.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID, "The request is for another cluster."
    if not isinstance(state, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node does not lead the quorum."
    if state.change is not None or (state.is_ready and node.history.latest_offset >= node.high_watermark):
        return ErrorCode.REQUEST_TIMED_OUT, "Another change of the voters is not finished."
    if not state.is_ready:
        return ErrorCode.REQUEST_TIMED_OUT, "The epoch of the leader is not established yet."
    if node.history.kraft_version < 1:
        return ErrorCode.UNSUPPORTED_VERSION, "The voters are fixed: kraft.version is 0."
    return ErrorCode.NONE, ""


# --- adding


def add_asked(node: RaftState, token: object, request: AddRaftVoterRequest) -> None:
    error, message = _refusal(node, request.cluster_id)
    endpoints = tuple(QuorumEndpoint(each.name, each.host, each.port) for each in request.listeners)
    if not error and (request.voter_id < 0 or request.voter_directory_id == NO_ID or not endpoints):
        error, message = ErrorCode.INVALID_REQUEST, "A voter has an id, a directory and a listener."
    if not error and request.voter_id in node.voters:
        error, message = ErrorCode.DUPLICATE_VOTER, f"Node {request.voter_id} is a voter already."
    if error:
        node.reply(token, AddRaftVoterResponse(error_code=error, error_message=message))
        return
    assert isinstance(node.state, Leader)
    voter = Voter(request.voter_id, request.voter_directory_id, endpoints)
    timeout_ms = max(request.timeout_ms, 0)
    node.state.change = VoterChange(
        token, AddRaftVoterResponse, node.now_ms + timeout_ms, voter, request.ack_when_committed
    )
    question = ApiVersionsRequest(client_software_name="ottla", client_software_version=VERSION)
    node.send(voter.id, endpoints[0], question)


def versions_answered(
    node: RaftState, voter_id: int, request: ApiVersionsRequest, response: ApiVersionsResponse
) -> None:
    """Go on adding a voter that said which kraft.versions it supports."""
    state = node.state
    if not isinstance(state, Leader) or state.change is None or state.change.voter.id != voter_id:
        return
    change = state.change
    known = next((each for each in response.supported_features or [] if each.name == KRAFT_VERSION), None)
    level = node.history.kraft_version
    low, high = (known.min_version, known.max_version) if known is not None else (0, 0)
    if response.error_code or not low <= level <= high:
        waiting.end_change(node, state, ErrorCode.INVALID_REQUEST, f"The node does not support kraft.version {level}.")
        return
    found = state.replicas.get(change.voter.key)
    if found is None or found.caught_up_ms < 0 or node.now_ms - found.caught_up_ms > CAUGHT_UP_MS:
        waiting.end_change(node, state, ErrorCode.REQUEST_TIMED_OUT, "The node has not caught up with the leader.")
        return
    change.voter = change.voter._replace(version_min=low, version_max=high)
    _write(node, state, change, node.voters.with_voter(change.voter))
    if not change.ack_when_committed:
        waiting.answer_change(node, change, ErrorCode.NONE)


def no_versions(node: RaftState) -> None:
    if isinstance(node.state, Leader) and node.state.change is not None and node.state.change.end_offset is None:
        waiting.end_change(node, node.state, ErrorCode.REQUEST_TIMED_OUT, "The node does not answer at its listener.")


# --- removing


def remove_asked(node: RaftState, token: object, request: RemoveRaftVoterRequest) -> None:
    error, message = _refusal(node, request.cluster_id)
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not error and (key.id < 0 or key.directory == NO_ID):
        error, message = ErrorCode.INVALID_REQUEST, "A voter has an id and a directory."
    if not error and (not node.voters.has(key) or len(node.voters) == 1):
        error, message = ErrorCode.VOTER_NOT_FOUND, f"Node {key.id} with that directory is no voter, or the only one."
    if error:
        node.reply(token, RemoveRaftVoterResponse(error_code=error, error_message=message))
        return
    assert isinstance(node.state, Leader)
    change = VoterChange(token, RemoveRaftVoterResponse, NEVER_MS, node.voters[key.id])
    node.state.change = change
    _write(node, node.state, change, node.voters.without(key.id))


# --- updating


def update_asked(node: RaftState, token: object, request: UpdateRaftVoterRequest) -> None:
    node.reply(token, answers.update_raft_voter(node, _update(node, request)))


def _update(node: RaftState, request: UpdateRaftVoterRequest) -> ErrorCode:
    if request.cluster_id is not None and request.cluster_id != node.cluster_id:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    error = leader_refusal(node, request.current_leader_epoch)
    if error:
        return error
    state = node.state
    assert isinstance(state, Leader)
    level = node.history.kraft_version
    pending = level > 0 and node.history.latest_offset >= node.high_watermark
    if state.change is not None or not state.is_ready or pending:
        return ErrorCode.REQUEST_TIMED_OUT
    feature = request.kraft_version_feature
    endpoints = tuple(QuorumEndpoint(each.name, each.host, each.port) for each in request.listeners)
    if not feature.min_supported_version <= level <= feature.max_supported_version or not endpoints:
        return ErrorCode.INVALID_REQUEST
    key = ReplicaKey(request.voter_id, request.voter_directory_id)
    if key.directory == NO_ID:
        return ErrorCode.INVALID_REQUEST
    if not node.voters.has(key):
        return ErrorCode.VOTER_NOT_FOUND
    voter = Voter(key.id, key.directory, endpoints, feature.min_supported_version, feature.max_supported_version)
    if level == 0:
        state.introduced[voter.id] = voter
        return ErrorCode.NONE
    append_controls(node, [(ControlType.KRAFT_VOTERS, node.voters.with_voter(voter).encode())])
    waiting.answer_waiting(node, state)
    advance(node, state)
    return ErrorCode.NONE


# --- waiting for the commit


def _write(node: RaftState, state: Leader, change: VoterChange, voters: VoterSet) -> None:
    append_controls(node, [(ControlType.KRAFT_VOTERS, voters.encode())])
    change.end_offset = node.journal.end_offset
    waiting.answer_waiting(node, state)
    advance(node, state)


def poll(node: RaftState, state: Leader) -> int:
    change = state.change
    if change is None or change.token is None or change.end_offset is not None:
        return NEVER_MS
    if node.now_ms >= change.deadline_ms:
        waiting.end_change(node, state, ErrorCode.REQUEST_TIMED_OUT, "The change took too long.")
        return NEVER_MS
    return change.deadline_ms


def abandoned(state: Leader, token: object) -> None:
    if state.change is not None and state.change.token is token:
        state.change.token = None


# --- requests of a follower


def wanted(node: RaftState, state: Follower) -> Request[Response] | None:
    """Return a request that corrects the entry of this follower among the voters; None if none is due."""
    if not node.endpoints:
        return None
    if node.history.kraft_version < 1:
        return _introduction(node, state)
    if node.now_ms < state.update_voter_ms:
        return None
    state.update_voter_ms = node.now_ms + node.config.update_voter_interval_ms
    if node.is_voter:
        return _own_update(node) if node.voters[node.me.id].endpoints != node.endpoints else None
    if not node.config.auto_join:
        return None
    old = node.voters.get(node.me.id)
    if old is not None:
        # This node has a new disk. The votes and records of its old one are lost and must not count any more.
        return RemoveRaftVoterRequest(cluster_id=node.cluster_id, voter_id=old.id, voter_directory_id=old.directory)
    listener = AddRaftVoterRequest.Listener
    return AddRaftVoterRequest(
        cluster_id=node.cluster_id,
        timeout_ms=node.config.request_timeout_ms,
        voter_id=node.me.id,
        voter_directory_id=node.me.directory,
        listeners=[listener(name=each.name, host=each.host, port=each.port) for each in node.endpoints],
        ack_when_committed=False,
    )


def _introduction(node: RaftState, state: Follower) -> UpdateRaftVoterRequest | None:
    """With kraft.version 0, name this voter's directory and endpoints to each new leader, once: see `upgrade`."""
    if state.is_introduced or not (state.has_fetched and node.is_voter) or node.now_ms < state.introduce_ms:
        return None
    state.introduce_ms = node.now_ms + node.config.begin_epoch_interval_ms
    return _own_update(node)


def _own_update(node: RaftState) -> UpdateRaftVoterRequest:
    made = UpdateRaftVoterRequest
    return made(
        cluster_id=node.cluster_id,
        current_leader_epoch=node.epoch,
        voter_id=node.me.id,
        voter_directory_id=node.me.directory,
        listeners=[made.Listener(name=each.name, host=each.host, port=each.port) for each in node.endpoints],
        kraft_version_feature=made.KRaftVersionFeature(
            min_supported_version=0, max_supported_version=KRAFT_VERSION_MAX
        ),
    )


def update_answered(
    node: RaftState, leader_id: int, request: UpdateRaftVoterRequest, response: UpdateRaftVoterResponse
) -> None:
    if isinstance(node.state, Follower) and request.current_leader_epoch == node.epoch:
        # A leader of an older release does not support this request: do not repeat it.
        node.state.is_introduced = response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    told = response.current_leader
    if told.leader_epoch >= 0:
        endpoint = QuorumEndpoint("", told.host, told.port) if told.host else None
        heard_of(node, NamedLeader(told.leader_id, told.leader_epoch, endpoint), response.error_code)


def join_answered(node: RaftState, leader_id: int, request: object, response: object) -> None:
    """Ignore the answer: the voter set in the log shows whether the change was made."""
