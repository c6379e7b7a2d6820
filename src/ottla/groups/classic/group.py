"""ClassicGroup: one group of the classic protocol, at one moment. Immutable: every change makes a new object.

    Empty ──join──▶ PreparingRebalance ──all (re)joined, or time is up──▶ CompletingRebalance ──leader synced──▶ Stable
      ▲                  │      ▲                                                │                                │
      └──nobody joined───┘      └──a member joins anew, leaves or expires────────┴────────────────────────────────┘

The group's record (`classic/journal.py`) survives a restart: generation, protocol, leader, and each member with its
assignment. The other fields are about a rebalance in progress; they are lost in a restart, and the group is again the
last generation that became Stable (or Empty).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from ottla.groups.classic.subscription import topics_of
from ottla.groups.group import SINCE_COMMIT, Committer, GroupKind
from ottla.machine.keyed import Entry
from ottla.model.errors import ApiError, ErrorCode
from ottla.wire.journal.consumer_offsets import GroupMetadataKey

CONSUMER_PROTOCOL_TYPE = "consumer"


class ClassicState(Enum):
    """Kafka's states, by the names its tools show. A deleted group has no object, so there is no Dead."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


# The transitions of the picture above; `ClassicGroup.to` checks them.
NEXT: dict[ClassicState, tuple[ClassicState, ...]] = {
    ClassicState.EMPTY: (ClassicState.PREPARING,),
    ClassicState.PREPARING: (ClassicState.COMPLETING, ClassicState.EMPTY),
    ClassicState.COMPLETING: (ClassicState.STABLE, ClassicState.PREPARING),
    ClassicState.STABLE: (ClassicState.PREPARING,),
}


class MemberProtocol(NamedTuple):
    """An assignment protocol that a member offers, with the member's metadata for the leader."""

    name: str
    metadata: bytes


class ClassicMember(NamedTuple):
    """One member. `is_awaiting_join` and `is_awaiting_sync`: its JoinGroup or SyncGroup is parked until it can be
    answered.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]  # the preferred one first
    assignment: bytes = b""
    is_new: bool = False  # in no generation yet, so it cannot have sent heartbeats
    is_awaiting_join: bool = False
    is_awaiting_sync: bool = False

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for this protocol."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""


@dataclass(frozen=True, slots=True)
class ClassicGroup:
    """One group; members are in the order in which they joined."""

    group_id: str
    state: ClassicState = ClassicState.EMPTY
    generation: int = 0
    protocol_type: str = ""  # "" until the first member joins; it stays when the group becomes empty
    protocol: str | None = None
    leader: str | None = None
    members: Mapping[str, ClassicMember] = field(default_factory=lambda: MappingProxyType({}))
    state_since_ms: int = -1
    subscribed_topics: frozenset[str] | None = None  # None: not known, or not a group of consumers
    pending: tuple[str, ...] = ()  # member ids given out with MEMBER_ID_REQUIRED whose clients have not joined yet
    pending_sync: frozenset[str] = frozenset()  # members of the generation that have not synced
    is_initial: bool = False  # while preparing: the first rebalance, which waits for more members
    has_newcomers: bool = False  # a member joined since the initial rebalance was last extended
    # Names of the protocols that every member offers, kept so that a join need not look at all members. None: not
    # known.
    common: frozenset[str] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def empty(cls, group_id: str, now_ms: int) -> ClassicGroup:
        """Return a group without members."""
        return cls(group_id, state_since_ms=now_ms)

    def to(self, state: ClassicState) -> ClassicGroup:
        """Return the group in its next state."""
        assert state in NEXT[self.state], f"{self.group_id}: {self.state.value} → {state.value}"
        return replace(self, state=state)

    # --- what any kind of group is asked (`groups/group.py`)

    @property
    def kind(self) -> GroupKind:
        return GroupKind.CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def check_commit(self, by: Committer) -> None:
        if by.epoch < 0 and self.is_empty:
            return  # an admin client, or a consumer that assigns its own partitions
        if by.epoch >= 0 or by.member_id or by.instance_id is not None:
            self.check_member(by.member_id, by.instance_id)
            if by.epoch != self.generation:
                raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        elif not by.transactional and not self.is_empty:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        # The member's partitions may already be assigned to others. Transactional commits are fenced by the producer's
        # epoch.
        if not by.transactional and self.state is ClassicState.COMPLETING:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anyone may read the committed offsets."""

    def check_delete(self) -> None:
        if not self.is_empty:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        """Raises NON_EMPTY_GROUP for other protocols with members: which topics these read is unknown."""
        if not self.is_empty and not self.uses_consumer_protocol:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member may read the topic; consumers with unreadable subscriptions count as subscribed to all
        topics.
        """
        return self.uses_consumer_protocol if self.subscribed_topics is None else topic in self.subscribed_topics

    def offsets_expire_since(self) -> int | None:
        if not self.protocol_type:
            return SINCE_COMMIT
        if self.is_empty:
            return self.state_since_ms
        if self.state is ClassicState.STABLE and self.uses_consumer_protocol and self.subscribed_topics is not None:
            return SINCE_COMMIT
        return None

    def tombstones(self) -> Sequence[Entry]:
        return (Entry(GroupMetadataKey(group=self.group_id), None),)

    # --- members

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raise unless it is a member now; FENCED_INSTANCE_ID if another member has taken over its instance id."""
        if instance_id is not None:
            owner = self.static_member_id(instance_id)
            if owner is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            if owner != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)

    def static_member_id(self, instance_id: str) -> str | None:
        return next((each.member_id for each in self.members.values() if each.instance_id == instance_id), None)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    @property
    def awaiting_join(self) -> int:
        return sum(each.is_awaiting_join for each in self.members.values())

    @property
    def has_all_joined(self) -> bool:
        return not self.pending and all(each.is_awaiting_join for each in self.members.values())

    def with_member(self, member: ClassicMember) -> ClassicGroup:
        """Add or replace a member."""
        former = self.members.get(member.member_id)
        names = _names(member.protocols)
        common = self.common
        if former is None:
            common = self._offered_by_all(names)
        elif _names(former.protocols) != names:
            common = None
        return replace(
            self,
            members=MappingProxyType({**self.members, member.member_id: member}),
            leader=member.member_id if self.leader is None else self.leader,
            common=common,
        )

    def with_successor(self, former_id: str, member: ClassicMember) -> ClassicGroup:
        """Replace a member by one with another id, which takes over its position, and its leadership if it led."""
        members = [member if each.member_id == former_id else each for each in self.members.values()]
        pending_sync = self.pending_sync
        if former_id in pending_sync:
            pending_sync = pending_sync - {former_id} | {member.member_id}
        leader = member.member_id if self.leader == former_id else self.leader
        return replace(self.with_members(members), leader=leader, pending_sync=pending_sync, common=None)

    def without(self, gone: Iterable[str]) -> ClassicGroup:
        """Remove members or pending members; if the leader is among them, the member that joined first becomes
        leader.
        """
        absent = frozenset(gone)
        members = {key: value for key, value in self.members.items() if key not in absent}
        return replace(
            self,
            members=MappingProxyType(members),
            leader=next(iter(members), None) if self.leader in absent else self.leader,
            pending=tuple(each for each in self.pending if each not in absent),
            pending_sync=self.pending_sync - absent,
            common=self.common if len(members) == len(self.members) else None,
        )

    def with_members(self, members: Iterable[ClassicMember]) -> ClassicGroup:
        """Replace all members by changed versions of themselves, whose protocols are unchanged."""
        return replace(self, members=MappingProxyType({each.member_id: each for each in members}))

    # --- protocols

    def supports(self, protocol_type: str, protocols: Sequence[MemberProtocol]) -> bool:
        """Whether a member that offers these protocols could join: all members must have one protocol in common."""
        if self.is_empty:
            return bool(protocol_type and protocols)
        if self.protocol_type != protocol_type:
            return False
        return bool(self._offered_by_all(_names(protocols)))

    def _offered_by_all(self, names: frozenset[str]) -> frozenset[str]:
        """Return those of the protocols that every member offers."""
        if self.common is not None:
            return names & self.common
        for member in self.members.values():
            if not names:
                break
            names = names.intersection(each.name for each in member.protocols)
        return names

    def elected_protocol(self) -> str:
        """Each member votes for the common protocol it prefers; of those with most votes, the one voted for first
        wins.
        """
        votes: dict[str, int] = {}
        first = next(iter(self.members.values()))
        common = self._offered_by_all(_names(first.protocols))
        for vote in self._votes(common):
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: votes[name])

    def _votes(self, common: frozenset[str]) -> Iterator[str]:
        for member in self.members.values():
            yield next(each.name for each in member.protocols if each.name in common)

    def with_subscriptions(self) -> ClassicGroup:
        """Update the topics that the members subscribe to, if they are consumers and their metadata can be read."""
        return replace(self, subscribed_topics=self._subscriptions())

    def _subscriptions(self) -> frozenset[str] | None:
        if not self.uses_consumer_protocol:
            return None
        topics: set[str] = set()
        for metadata in {member.metadata(self.protocol) for member in self.members.values()}:
            found = topics_of(metadata)
            if found is None:
                return None
            topics.update(found)
        return frozenset(topics)


def _names(protocols: Iterable[MemberProtocol]) -> frozenset[str]:
    return frozenset(each.name for each in protocols)
