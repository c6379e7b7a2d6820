"""RaftNode: one replica of the metadata journal, as in Kafka's KRaft. `step` takes an event and returns effects.

Rules:
- `epoch`, `leader_id` and `voted` are on disk before another node hears of them.
- The high watermark never goes back, and nothing below it is ever truncated.
- If an event makes the disk fail, the disk's exception is raised; `JournalFailed` must be the next event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.raft import (
    committing,
    effects,
    election,
    events,
    following,
    leading,
    lost_disk,
    membership,
    roll_call,
    serving,
)
from ottla.raft.config import NEVER_MS
from ottla.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from ottla.raft.state import RaftState
from ottla.raft.transitions import resign
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.messages.quorum.update_raft_voter import UpdateRaftVoterRequest
from ottla.wire.messages.quorum.vote import VoteRequest
from ottla.wire.messages.records.fetch import FetchRequest

# The node waits this long before it uses a journal again that failed.
JOURNAL_PAUSE_MS = 500


class RaftNode(RaftState):
    """The state of a replica (`RaftState`) with the handling of every event."""

    def step(self, event: events.Event, now_ms: int) -> list[effects.Effect]:
        """Handle an event; return its effects."""
        self.now_ms = now_ms
        if isinstance(self.state, Leader) and now_ms >= self.state.lost_ms:
            resign(self, self.state)  # before it believes the event: the process may have been suspended
        _EVENTS[type(event)](self, event)
        self._poll()
        self._ask_for_flush()
        found, self.effects = self.effects, []
        return found

    def _poll(self) -> None:
        """Do what is due in the present role, until the role does not change any more."""
        for number in self.inflight.overdue(self.now_ms):
            self._unanswered(events.Unanswered(number))
        while True:
            state = self.state
            wake_ms = _POLLS[type(state)](self, state)
            if self.state is state:
                self.deadline_ms = wake_ms if wake_ms is not None and wake_ms < NEVER_MS else None
                return

    def _ask_for_flush(self) -> None:
        end = self.journal.end_offset
        if self.may_fetch or self._flush_asked == end:
            return
        if self.now_ms < self.journal_pause_ms:
            self.deadline_ms = min(self.deadline_ms or self.journal_pause_ms, self.journal_pause_ms)
            return
        self._flush_asked = end
        self.emit(effects.Flush())

    def _start(self, _: events.Event) -> None:
        lost_disk.begin(self)
        following.settle(self)

    def _asked(self, event: events.RequestReceived) -> None:
        _REQUESTS[type(event.request)](self, event.token, event.request)

    def _upgrade(self, event: events.UpgradeAsked) -> None:
        from ottla.raft import upgrade  # imported here because it is rarely needed and a start should be quick

        upgrade.asked(self, event)

    def _abandoned(self, event: events.Abandoned) -> None:
        if isinstance(self.state, Leader):
            self.state.waiting = [each for each in self.state.waiting if each.token is not event.token]
            membership.abandoned(self.state, event.token)

    def _answered(self, event: events.Answered) -> None:
        found = self.inflight.answered(event.number)
        if found is not None:
            _ANSWERS[type(found.request)](self, found.destination, found.request, event.response)
        else:
            roll_call.answered_late(self, event.number, event.response)

    def _unanswered(self, event: events.Unanswered) -> None:
        found = self.inflight.failed(event.number, self.now_ms)
        if found is not None and isinstance(found.request, ApiVersionsRequest):
            membership.no_versions(self)

    def _appended(self, _: events.JournalGrew) -> None:
        if isinstance(self.state, Leader):
            committing.grown(self, self.state)

    def _flushed(self, _: events.Flushed) -> None:
        self._flush_asked = -1
        if isinstance(self.state, Leader):
            committing.advance(self, self.state)

    def _journal_failed(self, _: events.JournalFailed) -> None:
        self._flush_asked = -1
        self.journal_pause_ms = self.now_ms + JOURNAL_PAUSE_MS
        if isinstance(self.state, Leader):
            resign(self, self.state)

    def _stop(self, _: events.StopAsked) -> None:
        if isinstance(self.state, Leader):
            resign(self, self.state)

    def _tick(self, _: events.Tick) -> None:
        """Do nothing: `_poll` does everything that is due."""


_EVENTS: dict[type, Callable[[RaftNode, Any], None]] = {
    events.Start: RaftNode._start,
    events.Tick: RaftNode._tick,
    events.RequestReceived: RaftNode._asked,
    events.UpgradeAsked: RaftNode._upgrade,
    events.Abandoned: RaftNode._abandoned,
    events.Answered: RaftNode._answered,
    events.Unanswered: RaftNode._unanswered,
    events.Unreachable: following.unreachable,
    events.JournalGrew: RaftNode._appended,
    events.Flushed: RaftNode._flushed,
    events.JournalFailed: RaftNode._journal_failed,
    events.StopAsked: RaftNode._stop,
}
_POLLS: dict[type, Callable[[RaftNode, Any], int | None]] = {
    Unattached: election.poll_unattached,
    Prospective: election.poll_prospective,
    Candidate: election.poll_candidate,
    Leader: leading.poll,
    Follower: following.poll,
    Resigned: leading.poll_resigned,
}
_REQUESTS: dict[type, Callable[[RaftNode, Any, Any], None]] = {
    VoteRequest: election.vote_asked,
    BeginQuorumEpochRequest: following.epoch_begun,
    EndQuorumEpochRequest: following.epoch_ended,
    FetchRequest: serving.fetch_asked,
    FetchSnapshotRequest: serving.snapshot_asked,
    AddRaftVoterRequest: membership.add_asked,
    RemoveRaftVoterRequest: membership.remove_asked,
    UpdateRaftVoterRequest: membership.update_asked,
}
_ANSWERS: dict[type, Callable[[RaftNode, int, Any, Any], None]] = {
    VoteRequest: election.vote_answered,
    BeginQuorumEpochRequest: leading.begin_answered,
    EndQuorumEpochRequest: leading.end_answered,
    FetchRequest: following.fetch_answered,
    FetchSnapshotRequest: following.snapshot_answered,
    AddRaftVoterRequest: membership.join_answered,
    RemoveRaftVoterRequest: membership.join_answered,
    UpdateRaftVoterRequest: membership.update_answered,
    ApiVersionsRequest: membership.versions_answered,
}
