"""RaftNode: one replica of the metadata journal, as Kafka's KRaft has it. `step` takes an event and gives effects.

Rules:
- `epoch`, `leader_id` and `voted` are on disk before anybody hears of them.
- The high watermark never goes back, and nothing below it is ever cut off.
- An event that makes the disk fail raises what the disk raised; `JournalFailed` must be the next event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from ottla.model.errors import ErrorCode
from ottla.raft import effects, election, events, following, leading, membership, serving
from ottla.raft import lost_disk as doubt
from ottla.raft.config import NEVER_MS, RaftConfig
from ottla.raft.inflight_requests import Lines
from ottla.raft.port import Election, Journal, Place, QuorumRecord, ReplicaKey
from ottla.raft.roles import (
    NEXT,
    ROLE_OF,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    State,
    Unattached,
)
from ottla.raft.voters import Endpoint, VoterHistory, VoterSet
from ottla.wire.message import Request, Response
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from ottla.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.messages.quorum.update_raft_voter import UpdateRaftVoterRequest
from ottla.wire.messages.quorum.vote import VoteRequest
from ottla.wire.messages.records.fetch import FetchRequest

StateT = TypeVar("StateT", bound=State)
# A journal that failed is given some time before it is asked again.
JOURNAL_PAUSE_MS = 500


class Chance(Protocol):
    """What elections need of `random.Random`."""

    def randrange(self, start: int, stop: int, /) -> int: ...


class RaftNode:
    def __init__(
        self,
        me: ReplicaKey,
        cluster_id: str,
        journal: Journal,
        static: VoterSet,
        *,
        config: RaftConfig,
        rng: Chance,
        bootstrap: Sequence[Endpoint] = (),
        endpoints: tuple[Endpoint, ...] = (),
    ) -> None:
        """`static` are the voters of the configuration; they count while the journal names none. `endpoints` are this
        node's own, `bootstrap` where others may be found."""
        self.me = me
        self.cluster_id = cluster_id
        self.journal = journal
        self.config = config
        self.rng = rng
        self.bootstrap = tuple(bootstrap)
        self.endpoints = endpoints
        self.history = VoterHistory(static)
        self.history.load(journal.quorum_records())
        snapshot = journal.latest_snapshot
        self.high_watermark = snapshot.offset if snapshot is not None else 0
        self.lines = Lines(config)
        self.now_ms = 0
        self.deadline_ms: int | None = None
        self.elections_lost = 0
        self._leader_endpoint: Endpoint | None = None
        self._effects: list[effects.Effect] = []
        self._flush_asked = -1
        self.journal_pause_ms = 0  # until then a disk that failed is left alone
        self._remembered = found = journal.read_election()
        self.epoch = max(found.epoch, journal.last_epoch)
        known = found.epoch == self.epoch
        self.leader_id = found.leader_id if known else -1
        self.voted = found.voted if known else None
        self.state: State = Unattached(0)
        some_are_not_needed = len(self.voters) > self.voters.majority
        self.doubt = doubt.Doubt() if journal.in_doubt and some_are_not_needed else None

    # --- events

    def step(self, event: events.Event, now_ms: int) -> list[effects.Effect]:
        """What an event leads to."""
        self.now_ms = now_ms
        if isinstance(self.state, Leader) and now_ms >= self.state.lost_ms:
            leading.resign(self, self.state)  # before it believes what it hears now: it may have slept
        _EVENTS[type(event)](self, event)
        self._poll()
        self._ask_for_flush()
        found, self._effects = self._effects, []
        return found

    def _poll(self) -> None:
        """Let the role do what is due, until it stays what it is."""
        for number in self.lines.overdue(self.now_ms):
            self._unanswered(events.Unanswered(number))
        while True:
            state = self.state
            wake_ms = _POLLS[type(state)](self, state)
            if self.state is state:
                self.deadline_ms = wake_ms if wake_ms is not None and wake_ms < NEVER_MS else None
                return

    def _ask_for_flush(self) -> None:
        end = self.journal.end_offset
        if self.may_tell or self._flush_asked == end:
            return
        if self.now_ms < self.journal_pause_ms:
            self.deadline_ms = min(self.deadline_ms or self.journal_pause_ms, self.journal_pause_ms)
            return
        self._flush_asked = end
        self.emit(effects.Flush())

    def _start(self, _: events.Event) -> None:
        doubt.begin(self)
        following.settle(self)

    def _asked(self, event: events.Asked) -> None:
        _REQUESTS[type(event.request)](self, event.token, event.request)

    def _upgrade(self, event: events.Upgrade) -> None:
        from ottla.raft import upgrade  # seldom, and a start should be quick

        upgrade.asked(self, event)

    def _abandoned(self, event: events.Abandoned) -> None:
        if isinstance(self.state, Leader):
            self.state.waiting = [each for each in self.state.waiting if each.token is not event.token]
            membership.abandoned(self.state, event.token)

    def _answered(self, event: events.Answered) -> None:
        found = self.lines.answered(event.number)
        if found is not None:
            _ANSWERS[type(found.request)](self, found.destination, found.request, event.response)
        else:
            doubt.answered_late(self, event.number, event.response)

    def _unanswered(self, event: events.Unanswered) -> None:
        found = self.lines.failed(event.number, self.now_ms)
        if found is not None and isinstance(found.request, ApiVersionsRequest):
            membership.no_versions(self)

    def _appended(self, _: events.Appended) -> None:
        if isinstance(self.state, Leader):
            leading.grown(self, self.state)

    def _flushed(self, _: events.Flushed) -> None:
        self._flush_asked = -1
        if isinstance(self.state, Leader):
            leading.advance(self, self.state)

    def _journal_failed(self, _: events.JournalFailed) -> None:
        self._flush_asked = -1
        self.journal_pause_ms = self.now_ms + JOURNAL_PAUSE_MS
        if isinstance(self.state, Leader):
            leading.resign(self, self.state)

    def _stop(self, _: events.Stop) -> None:
        if isinstance(self.state, Leader):
            leading.resign(self, self.state)

    def _tick(self, _: events.Tick) -> None:
        """Everything that time brings is done by `_poll`."""

    # --- what the parts share

    @property
    def role(self) -> Role:
        return ROLE_OF[type(self.state)]

    @property
    def is_leader(self) -> bool:
        return isinstance(self.state, Leader)

    @property
    def voters(self) -> VoterSet:
        return self.history.latest

    @property
    def is_voter(self) -> bool:
        return self.voters.has(self.me)

    @property
    def stands(self) -> bool:
        """Whether this node may stand for election. One whose own removal may not be committed yet must: it may be the
        only one whose log has that removal, and then nobody else can be elected. Its own vote does not count."""
        is_elector = self.is_voter or self.history.may_hold(self.me, self.high_watermark)
        return is_elector and doubt.may_take_part(self, self.epoch + 1)

    @property
    def own_votes(self) -> set[int]:
        """What an election begins with."""
        return {self.me.id} if self.is_voter else set()

    @property
    def may_tell(self) -> bool:
        """Whether what is in the log may be told of: where it counts, or will once this controller is a voter, it has
        to be on disk."""
        return self.journal.flushed_offset >= self.journal.end_offset or not (self.is_voter or self.endpoints)

    @property
    def end(self) -> Place:
        return Place(self.journal.end_offset, self.journal.last_epoch)

    @property
    def told_high_watermark(self) -> int:
        """A leader does not know how far its predecessors were before its own epoch has begun."""
        return -1 if isinstance(self.state, Leader) and not self.state.is_ready else self.high_watermark

    def leader_endpoint(self) -> Endpoint | None:
        """Where the leader is reached, if one is known."""
        if self.leader_id < 0:
            return None
        if self.leader_id == self.me.id and self.endpoints:
            return self.endpoints[0]
        voter = self.voters.get(self.leader_id)
        return self._leader_endpoint or (voter.address if voter is not None else None)

    def emit(self, effect: effects.Effect) -> None:
        self._effects.append(effect)

    def reply(self, token: Any, response: Response) -> None:
        self.emit(effects.Reply(token, response))

    def send(self, destination: int, address: Endpoint, request: Request) -> int:
        """To a node, or (below -1) to a bootstrap server. Who calls looked at `lines` before. The request's number."""
        number = self.lines.sent(destination, request, self.now_ms)
        self.emit(effects.Send(number, max(destination, -1), address, request, self.config.request_timeout_ms))
        return number

    def become(
        self,
        state: State,
        *,
        epoch: int | None = None,
        leader_id: int = -1,
        voted: ReplicaKey | None = None,
        endpoint: Endpoint | None = None,
        remembered: bool = True,
    ) -> None:
        """Change the role; what must be remembered is on disk first. `remembered` False: the next change follows at
        once, and nobody hears of this one."""
        epoch = self.epoch if epoch is None else epoch
        assert epoch > self.epoch or ROLE_OF[type(state)] in NEXT[self.role], f"{self.role} → {state}"
        before = Election(self.epoch, self.leader_id, self.voted)
        if remembered:
            self._remember(state, epoch, leader_id, voted)
        if isinstance(self.state, Leader):
            leading.step_down(self, self.state, epoch)
        self.epoch, self.leader_id, self.voted = epoch, leader_id, voted
        self._leader_endpoint = endpoint
        self.state = state
        self.lines.forget()
        if (epoch, leader_id) != before[:2] and leader_id != self.me.id:
            self.emit(effects.Follow(leader_id, epoch))

    def _remember(self, state: State, epoch: int, leader_id: int, voted: ReplicaKey | None) -> None:
        if isinstance(state, Leader | Resigned):
            leader_id, voted = self.me.id, None  # whoever leads has voted for itself
        election = Election(epoch, leader_id, voted)
        if election != self._remembered:
            self.journal.write_election(election, list(self.voters), self.history.kraft_version)
            self._remembered = election

    def commit(self, offset: int) -> None:
        """The high watermark is at least this."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            self.emit(effects.Committed(offset))

    def learn(self, record: QuorumRecord) -> None:
        """A record about the voters was appended: it holds at once."""
        self.history.add(record)

    def election_timeout(self) -> int:
        """When a node that hears of nobody stands for election: random, so that they do not all do it together."""
        base = self.config.election_timeout_ms
        return self.now_ms + base + self.rng.randrange(0, max(base, 1))

    def heard_of(self, error: int, leader_id: int, epoch: int, endpoint: Endpoint | None) -> bool:
        """What an answer says about the leader; True if there is nothing else to it (another epoch, another leader)."""
        if epoch < self.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:
            return True
        if epoch > self.epoch or error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            following.attach(self, leader_id, epoch, endpoint)
            return True
        if leader_id >= 0 and self.leader_endpoint() is None:  # or its id is remembered, and nothing else
            following.attach(self, leader_id, epoch, endpoint)
        return error == ErrorCode.BROKER_NOT_AVAILABLE


_EVENTS: dict[type, Callable[[RaftNode, Any], None]] = {
    events.Start: RaftNode._start,
    events.Tick: RaftNode._tick,
    events.Asked: RaftNode._asked,
    events.Upgrade: RaftNode._upgrade,
    events.Abandoned: RaftNode._abandoned,
    events.Answered: RaftNode._answered,
    events.Unanswered: RaftNode._unanswered,
    events.Unreachable: following.unreachable,
    events.Appended: RaftNode._appended,
    events.Flushed: RaftNode._flushed,
    events.JournalFailed: RaftNode._journal_failed,
    events.Stop: RaftNode._stop,
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
