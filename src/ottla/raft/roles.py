"""The roles of a replica, the transitions between them, and the state that exists only while a role lasts.

Epoch, leader and vote belong to the node, whatever its role: it must remember them. `end` below is the time after which
a role acts on its own (`deadline_ms`); `majority` is that of the voters.

| role | event | what happens |
|---|---|---|
| any | a message of a higher epoch that names its leader | follower of that leader, in that epoch |
| any | a message of a higher epoch without a leader, a request for a vote in it | unattached, in that epoch |
| any | a message of a lower epoch | refused with FENCED_LEADER_EPOCH; the answer names the leader |
| unattached | an answer names the leader of this epoch | follower |
| unattached | a request for its vote, from a log at least as up-to-date as its own | it votes, once per epoch |
| unattached | `end`; a majority knows no leader; it is the only voter | prospective (observers ask on) |
| prospective | a majority would elect it | candidate, in the next epoch, with its own vote |
| prospective | a majority would not, or `end` | follower of the leader it still knows; else unattached |
| candidate | a majority votes for it | leader: appends LeaderChange, and the voters if only a file names them |
| candidate | a majority does not, or `end` | pauses for a random time, then prospective again |
| leader | a majority has the first record of its epoch on disk | ready: `Lead`; the high watermark moves on |
| leader | a majority did not fetch for `check_quorum_ms`; its journal fails; it is told to stop | resigned |
| leader | its own removal from the voters is committed | resigned |
| follower | an answer of its leader | appends, or truncates a diverging log, or loads a snapshot; `end` moves |
| follower | `end`; its leader's process is gone; the leader says that it leaves | prospective (observers ask on) |
| resigned | `end` (until then it tells the other voters that the epoch is over) | unattached, having voted for itself |

A node that is no voter (an observer) is only ever unattached or a follower. A voter whose disk was empty when it
started neither votes nor stands until `lost_disk` allows it. The classes below are mutable and compare by identity.
Each has a docstring because `dataclass` otherwise makes one from the signature, which takes longer than all the rest of
its work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ottla.model.ids import LeaderEpoch
from ottla.raft.config import NEVER_MS
from ottla.raft.journal import OffsetAndEpoch, ReplicaKey
from ottla.raft.voters import Voter

if TYPE_CHECKING:
    from ottla.wire.messages.cluster.update_features import UpdateFeaturesResponse
    from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterResponse
    from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterResponse
    from ottla.wire.messages.records.fetch import FetchRequest


class Role(Enum):
    UNATTACHED = "unattached"  # knows no leader that it could follow
    PROSPECTIVE = "prospective"  # asks by pre-votes whether it would be elected, without disturbing a leader (KIP-996)
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"  # led this epoch, and no longer does


# The transitions within one epoch; a higher epoch makes a node unattached or a follower, whatever it was.
NEXT: dict[Role, tuple[Role, ...]] = {
    Role.UNATTACHED: (Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER),
    Role.PROSPECTIVE: (Role.UNATTACHED, Role.CANDIDATE, Role.FOLLOWER),
    Role.CANDIDATE: (Role.PROSPECTIVE, Role.LEADER, Role.FOLLOWER),
    Role.LEADER: (Role.RESIGNED,),
    Role.FOLLOWER: (Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER),
    Role.RESIGNED: (Role.UNATTACHED,),
}


@dataclass(eq=False)
class Unattached:
    """The role of a node that knows no leader that it could follow."""

    deadline_ms: int  # a voter stands for election then
    leaderless: set[int] = field(default_factory=set)  # voters that know no leader of this epoch either


@dataclass(eq=False)
class Prospective:
    """The role of a node that asks the other voters by pre-votes whether they would elect it."""

    deadline_ms: int
    granted: set[int]
    rejected: set[int] = field(default_factory=set)


@dataclass(eq=False)
class Candidate:
    """The role of a node that asks the other voters for their votes."""

    deadline_ms: int
    granted: set[int]
    rejected: set[int] = field(default_factory=set)
    pause_until_ms: int | None = None  # the election is lost; stand again then


@dataclass(eq=False)
class ReplicaProgress:
    """How far another replica is, as far as the leader knows."""

    key: ReplicaKey
    end_offset: int = -1  # -1: unknown
    fetched_ms: int = -1
    caught_up_ms: int = -1
    end_at_fetch: int = -1  # the leader's own end offset when the replica last fetched
    announce_ms: int = 0  # when the replica is next sent BeginQuorumEpoch


@dataclass(eq=False)
class WaitingFetch:
    """A fetch that waits for records, for the high watermark, or for the end of its maximum wait."""

    token: object
    request: FetchRequest
    deadline_ms: int


@dataclass(eq=False)
class VoterChange:
    """A change of the voters that is under way."""

    token: object
    answer: type[AddRaftVoterResponse] | type[RemoveRaftVoterResponse] | type[UpdateFeaturesResponse]
    deadline_ms: int
    voter: Voter
    ack_when_committed: bool = True
    end_offset: int | None = None  # the offset after the record, once it is written


@dataclass(eq=False)
class Leader:
    """The role of the leader: the progress of the other replicas, and the requests that wait."""

    since_ms: int
    epoch_start: int
    granting: tuple[int, ...]
    replicas: dict[ReplicaKey, ReplicaProgress] = field(default_factory=dict)
    superseded: set[ReplicaKey] = field(default_factory=set)  # lost disks of voters: see `replica_progress.counts`
    waiting: list[WaitingFetch] = field(default_factory=list)
    lost_ms: int = NEVER_MS  # the leader resigns then, if no voter fetches until then
    is_ready: bool = False  # the first record of the epoch is committed
    change: VoterChange | None = None  # the one change of the voters that is under way
    introduced: dict[int, Voter] = field(default_factory=dict)  # kraft.version 0: voters as they introduced themselves


@dataclass(eq=False)
class SnapshotDownload:
    """A snapshot that is being fetched."""

    snapshot: OffsetAndEpoch
    position: int = 0
    install_ms: int | None = None  # the download is complete; from this time on, in another step, it can be installed


@dataclass(eq=False)
class Follower:
    """The role of a node that fetches from the leader."""

    deadline_ms: int  # without a good answer until then the leader counts as lost
    update_voter_ms: int
    has_fetched: bool = False
    is_introduced: bool = False  # kraft.version 0: the leader knows this voter's directory
    introduce_ms: int = 0  # when this voter introduces itself to the leader (again)
    leader_gone: bool = False  # the leader's process ended, or the leader announced that it resigns
    receiving: SnapshotDownload | None = None


@dataclass(eq=False)
class Resigned:
    """The role of a node that led this epoch and tells the other voters that it resigned."""

    deadline_ms: int
    uninformed: set[int]  # voters that have not answered yet
    successors: tuple[ReplicaKey, ...]


# --- state besides the role


class EmptyLogSeen(NamedTuple):
    """A voter's word that its log is empty: when it came, and the voter's epoch then."""

    at_ms: int
    epoch: LeaderEpoch


class Doubt:
    """What a voter in doubt about its own past knows (see `lost_disk`); only the doubt itself is on disk."""

    def __init__(self) -> None:
        self.empty: dict[int, EmptyLogSeen] = {}
        self.asked: dict[int, int] = {}  # voter → the number of the last request to it
        self.quarantine_until_ms = 0
        self.report_ms: int | None = None  # when the operator is told (again) that this node waits
        self._goal: OffsetAndEpoch | None = None  # the first high watermark that the leader of an epoch reported

    def has_reached(self, high_watermark: int, epoch: LeaderEpoch, offset: int) -> bool:
        """Whether `offset`, which is on disk, covers the first high watermark that the leader of `epoch` reported."""
        if self._goal is None or self._goal.epoch != epoch:
            self._goal = OffsetAndEpoch(high_watermark, epoch)
        return offset >= self._goal.offset


RoleState: TypeAlias = Unattached | Prospective | Candidate | Leader | Follower | Resigned
ROLE_OF: dict[type, Role] = {
    Unattached: Role.UNATTACHED,
    Prospective: Role.PROSPECTIVE,
    Candidate: Role.CANDIDATE,
    Leader: Role.LEADER,
    Follower: Role.FOLLOWER,
    Resigned: Role.RESIGNED,
}
