"""A leader's appends of control records, and the high watermark, which follows what a majority has on disk.

Rules:
- The high watermark moves only once a majority has the first record of the leader's own epoch: records of earlier
  epochs are committed together with that record, never by counting replicas.
- A leader counts itself by what it has on disk, and only if it is a voter. A leader that was removed from the voters
  leads until its removal is committed.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.raft import effects, waiting
from ottla.raft.journal import QuorumRecord
from ottla.raft.replica_progress import voter_progress
from ottla.raft.roles import Leader
from ottla.raft.state import RaftState
from ottla.raft.transitions import resign
from ottla.records.control import ControlType


def append_controls(node: RaftState, controls: list[tuple[ControlType, bytes]]) -> None:
    offset = node.journal.end_offset
    node.journal.append_controls(controls, node.epoch)
    for at, (kind, value) in enumerate(controls):
        node.learn(QuorumRecord(offset + at, kind, value))


def advance(node: RaftState, state: Leader) -> None:
    """Advance the high watermark as far as a majority of the voters allows."""
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
    waiting.answer_waiting(node, state)
    _committed(node, state)


def grown(node: RaftState, state: Leader) -> None:
    """Advance the high watermark, and answer waiting fetches, after the log grew."""
    advance(node, state)
    waiting.answer_waiting(node, state)


def _committed(node: RaftState, state: Leader) -> None:
    """End a change of the voters that is now committed; resign if this leader was removed."""
    change = state.change
    if change is not None and change.end_offset is not None and node.high_watermark >= change.end_offset:
        waiting.end_change(node, state, ErrorCode.NONE, None)
    if not node.is_voter and node.history.latest_offset < node.high_watermark:
        resign(node, state)
