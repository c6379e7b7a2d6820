"""ConsumerGroup: members, their present and target assignments; only `apply` and `note` change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field

from ottla.groups.assign.spec import NO_PARTITIONS, Partitions
from ottla.groups.consumer.entries import (
    RECORDS,
    ResolvedRegex,
    group_tombstone,
    partition_metadata_tombstone,
    regex_tombstone,
)
from ottla.groups.consumer.member import ConsumerMember, Owned
from ottla.groups.group import Committer, GroupKind
from ottla.groups.modern.group import ModernGroup
from ottla.groups.modern.reconciled import ReconciledGroup
from ottla.machine.keyed import Entry

PROTOCOL_TYPE = "consumer"


@dataclass(slots=True)
class ConsumerGroup(ReconciledGroup[ConsumerMember, Partitions]):
    """One group. In `owners` a partition stays owned until its owner has confirmed the revocation."""

    instances: dict[str, str] = field(default_factory=dict)  # instance id → member id
    owners: dict[bytes, dict[int, str]] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    has_partition_metadata: bool = False  # whether it has a record that older coordinators wrote; it is to be removed
    # Soft state: topics that a regular expression may match were created or deleted.
    regexes_stale: bool = True
    regexes_matching: bool = False  # whether they are being matched against the topics
    # Soft state: members of the classic protocol that were told to rejoin and have a timer running.
    rejoining: frozenset[str] = frozenset()

    # --- what any kind of group is asked (`groups/group.py`)

    @property
    def kind(self) -> GroupKind:
        return GroupKind.CONSUMER

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    def owned_since(self, member: ConsumerMember, by: Committer) -> Iterator[int | None]:
        for topic_id, partition in by.partitions():
            since = member.assigned.get(topic_id, {}).get(partition)
            yield member.pending_revocation.get(topic_id, {}).get(partition) if since is None else since

    def tombstones(self) -> Sequence[Entry]:
        return [
            *RECORDS.tombstones(self.group_id, self.members),
            *(regex_tombstone(self.group_id, regex) for regex in self.regexes),
            partition_metadata_tombstone(self.group_id),
            group_tombstone(self.group_id),
        ]

    # --- members

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = self.instances.get(instance_id) if instance_id is not None else None
        return self.members[member_id] if member_id is not None else None

    def target_of(self, member_id: str) -> Partitions:
        return self.targets.get(member_id, NO_PARTITIONS)

    def names_with(self, members: Mapping[str, ConsumerMember]) -> frozenset[str]:
        names = {member.subscribed_topics for member in members.values()}
        names |= {self.regexes[regex].topics for regex in _regexes(members) if regex in self.regexes}
        return frozenset().union(*names)

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the names of all topics it reads; an unresolved regular expression counts as none."""
        resolved = self.regexes.get(member.subscribed_regex)
        return member.subscribed_topics if resolved is None else member.subscribed_topics | resolved.topics

    def subscribed_regexes(self) -> dict[str, int]:
        """Return the regular expressions with the number of their members, in a stable order."""
        return dict(Counter(_regexes(self.members)))

    def is_free_for(self, member_id: str, topic_id: bytes, partition: int) -> bool:
        """Whether no other member owns the partition."""
        return self.owners.get(topic_id, {}).get(partition, member_id) == member_id

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether another member still owns a partition of its target."""
        return any(
            not self.is_free_for(member.member_id, topic_id, partition)
            for topic_id, partitions in self.target_of(member.member_id).items()
            for partition in partitions
        )

    def preferred_assignor(self, members: Mapping[str, ConsumerMember]) -> str | None:
        """Return the assignor that most of these members name."""
        votes = Counter(each.server_assignor for each in members.values() if each.server_assignor is not None)
        return max(sorted(votes), key=lambda name: votes[name], default=None)

    def heeds(self, names: frozenset[str]) -> bool:
        return _has_regex(self.members) or ModernGroup.heeds(self, names)

    # --- for `apply` and `note`

    def mark_stale(self) -> None:
        self.metadata_stale = True
        self.regexes_stale = True

    def put_member(self, member: ConsumerMember) -> None:
        old = self.members.get(member.member_id)
        if (
            old is None
            or old.assigned is not member.assigned
            or old.pending_revocation is not member.pending_revocation
        ):
            if old is not None:
                self._release(old)
            for owned in (member.assigned, member.pending_revocation):
                for topic_id, partitions in owned.items():
                    self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member.member_id))
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        ModernGroup.put_member(self, member)

    def drop_member(self, member_id: str) -> None:
        old = self.members.get(member_id)
        if old is not None:
            self._release(old)
            if old.instance_id is not None and self.instances.get(old.instance_id) == member_id:
                del self.instances[old.instance_id]
        self.rejoining -= {member_id}
        ModernGroup.drop_member(self, member_id)

    def put_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        if resolved is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = resolved
        self._names = None

    def scratch(self) -> ConsumerGroup:
        """Return a copy to which entries can be applied."""
        other = copy(self)
        other.members = dict(self.members)
        other.targets = dict(self.targets)
        other.instances = dict(self.instances)
        other.owners = {topic_id: dict(partitions) for topic_id, partitions in self.owners.items()}
        other.regexes = dict(self.regexes)
        return other

    def _release(self, member: ConsumerMember) -> None:
        for topic_id, partition in _each(member.assigned, member.pending_revocation):
            owners = self.owners.get(topic_id, {})
            if owners.get(partition) == member.member_id:
                del owners[partition]
                if not owners:
                    del self.owners[topic_id]


def _regexes(members: Mapping[str, ConsumerMember]) -> Iterator[str]:
    return (member.subscribed_regex for member in members.values() if member.subscribed_regex)


def _has_regex(members: Mapping[str, ConsumerMember]) -> bool:
    return any(member.subscribed_regex for member in members.values())


def _each(*owned: Owned) -> Iterator[tuple[bytes, int]]:
    for each in owned:
        for topic_id, partitions in each.items():
            for partition in partitions:
                yield topic_id, partition
