"""From voters of the configuration to voters of the log: kraft.version 0 → 1, while the quorum runs (KIP-853).

Rules:
- With kraft.version 0 the log does not say which directory a voter has, so every voter introduces itself to each new
  leader; the leader keeps that in memory, beside the voter set that holds.
- The version rises only when every voter has introduced itself: from then on a voter is a node *with its directory*,
  and a voter whose directory is unknown or different could neither vote nor count.
- Version and voters are written together and hold from the moment they are appended, like every change of the voters.
- The version never goes back.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.raft import events, waiting
from ottla.raft.committing import advance, append_controls
from ottla.raft.config import NEVER_MS
from ottla.raft.roles import Leader, VoterChange
from ottla.raft.state import RaftState
from ottla.raft.voters import Voter, VoterSet, encode_kraft_version
from ottla.records.control import ControlType
from ottla.wire.messages.cluster.update_features import UpdateFeaturesResponse


def refusal(node: RaftState, level: int) -> str | None:
    """Return why the version cannot rise to that level now, or None."""
    state, current = node.state, node.history.kraft_version
    if level == current:
        return None
    if level < current:
        return (
            f"Invalid upgrade of kraft.version from version {_name(current)} to {_name(level)} because the new version "
            "is a downgrade"
        )
    if not isinstance(state, Leader):
        return "This node does not lead the quorum."
    if state.change is not None or not state.is_ready:
        return f"Unable to upgrade version for kraft.version to {_name(level)} due to changing voters"
    voters = _known(node, state)
    if any(not voter.version_min <= level <= voter.version_max or not voter.endpoints for voter in voters.values()):
        return f"Invalid upgrade of kraft.version to {_name(level)} because not all of the voters support it"
    return None


def asked(node: RaftState, event: events.UpgradeAsked) -> None:
    state, problem = node.state, refusal(node, event.level)
    if not isinstance(state, Leader):
        answer = UpdateFeaturesResponse(error_code=ErrorCode.NOT_CONTROLLER, error_message=problem)
    elif problem is not None:
        answer = UpdateFeaturesResponse(error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message=problem)
    elif event.level == node.history.kraft_version:
        answer = UpdateFeaturesResponse(error_code=ErrorCode.NONE, error_message=None)
    else:
        voters = _known(node, state)
        version = (ControlType.KRAFT_VERSION, encode_kraft_version(event.level))
        append_controls(node, [version, (ControlType.KRAFT_VOTERS, voters.encode())])
        state.change = change = VoterChange(event.token, UpdateFeaturesResponse, NEVER_MS, voters[node.me.id])
        change.end_offset = node.journal.end_offset
        waiting.answer_waiting(node, state)
        advance(node, state)
        return
    node.reply(event.token, answer)


def _known(node: RaftState, state: Leader) -> VoterSet:
    """Return the voters as they introduced themselves; a voter that did not supports nothing but version 0."""
    me = Voter(node.me.id, node.me.directory, node.endpoints)
    others = node.voters.others(me.id)
    return VoterSet([me, *(state.introduced.get(voter.id) or voter._replace(version_max=0) for voter in others)])


def _name(level: int) -> str:
    return f"KRAFT_VERSION_{level}"
