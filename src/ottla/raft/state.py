"""The state of one replica of the metadata journal, and the operations that all of its parts share.

The parts (`election`, `following`, `leading` …) are functions of a `RaftState`; `RaftNode` puts them together.

Rules:
- `epoch`, `leader_id` and `voted` are on disk before another node hears of them (`transitions.become`).
- The high watermark never goes back, and nothing below it is ever truncated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ottla.model.ids import LeaderEpoch
from ottla.raft import effects
from ottla.raft.config import RaftConfig
from ottla.raft.inflight_requests import InflightRequests
from ottla.raft.journal import Journal, OffsetAndEpoch, QuorumRecord, ReplicaKey
from ottla.raft.roles import ROLE_OF, Doubt, Leader, Role, RoleState, Unattached
from ottla.raft.voters import QuorumEndpoint, VoterHistory, VoterSet
from ottla.wire.message import Request, Response


class Chance(Protocol):
    """The part of `random.Random` that elections need."""

    def randrange(self, start: int, stop: int, /) -> int: ...


class RaftState:
    def __init__(
        self,
        me: ReplicaKey,
        cluster_id: str,
        journal: Journal,
        static: VoterSet,
        *,
        config: RaftConfig,
        rng: Chance,
        bootstrap: Sequence[QuorumEndpoint] = (),
        endpoints: tuple[QuorumEndpoint, ...] = (),
    ) -> None:
        """`static` are the voters of the configuration; they hold while the journal names none.

        `endpoints` are this node's own; `bootstrap` are the addresses of bootstrap servers.
        """
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
        self.inflight = InflightRequests(config)
        self.now_ms = 0
        self.deadline_ms: int | None = None
        self.elections_lost = 0
        self.known_leader_endpoint: QuorumEndpoint | None = None
        self.effects: list[effects.Effect] = []
        self._flush_asked = -1
        self.journal_pause_ms = 0  # a journal that failed is not used before this time
        self.remembered = found = journal.read_election()
        self.epoch = max(found.epoch, journal.last_epoch)
        known = found.epoch == self.epoch
        self.leader_id = found.leader_id if known else -1
        self.voted = found.voted if known else None
        self.state: RoleState = Unattached(0)
        some_are_not_needed = len(self.voters) > self.voters.majority
        self.doubt = Doubt() if journal.in_doubt and some_are_not_needed else None

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
    def own_votes(self) -> set[int]:
        """The votes that an election begins with: this node's own, if it is a voter."""
        return {self.me.id} if self.is_voter else set()

    @property
    def may_fetch(self) -> bool:
        """Whether this node may fetch: a fetch tells the leader its end offset.

        A voter, or a controller that may become one, must have its log on disk first.
        """
        return self.journal.flushed_offset >= self.journal.end_offset or not (self.is_voter or self.endpoints)

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.journal.end_offset, self.journal.last_epoch)

    @property
    def reported_high_watermark(self) -> int:
        """The high watermark to report.

        It is -1 until the first record of a leader's epoch is committed, because the leader does not know how far its
        predecessors were.
        """
        return -1 if isinstance(self.state, Leader) and not self.state.is_ready else self.high_watermark

    def leader_endpoint(self) -> QuorumEndpoint | None:
        """Return the endpoint of the leader, if one is known."""
        if self.leader_id < 0:
            return None
        if self.leader_id == self.me.id and self.endpoints:
            return self.endpoints[0]
        voter = self.voters.get(self.leader_id)
        return self.known_leader_endpoint or (voter.address if voter is not None else None)

    # --- effects

    def emit(self, effect: effects.Effect) -> None:
        self.effects.append(effect)

    def reply(self, token: object, response: Response) -> None:
        self.emit(effects.Reply(token, response))

    def send(self, destination: int, address: QuorumEndpoint, request: Request[Response]) -> int:
        """Send a request to a node, or (below -1) to a bootstrap server, that `inflight` says is ready.

        Return the request's number.
        """
        number = self.inflight.sent(destination, request, self.now_ms)
        self.emit(effects.Send(number, max(destination, -1), address, request, self.config.request_timeout_ms))
        return number

    # --- the log

    def commit(self, offset: int) -> None:
        """Advance the high watermark to `offset`, unless it is there already."""
        if offset > self.high_watermark:
            assert offset <= self.journal.end_offset, f"{offset} is committed, but the log ends before it"
            self.high_watermark = offset
            self.emit(effects.Committed(offset))

    def learn(self, record: QuorumRecord) -> None:
        """Adopt a record about the voters that was appended: it holds at once."""
        self.history.add(record)

    def election_timeout(self) -> int:
        """Return when a node without a leader stands for election: at random, so that voters do not stand together."""
        base = self.config.election_timeout_ms
        return self.now_ms + base + self.rng.randrange(0, max(base, 1))

    def epoch_end(self, epoch: LeaderEpoch) -> OffsetAndEpoch:
        """Return where the log up to and including `epoch` ends, with the largest epoch at or below `epoch`."""
        found_epoch, offset = self.journal.epoch_end(epoch)
        if found_epoch < 0:
            return self.end
        earliest = self.journal.earliest_snapshot
        if earliest is not None and offset == earliest.offset and found_epoch == epoch:
            return earliest
        return OffsetAndEpoch(offset, found_epoch)
