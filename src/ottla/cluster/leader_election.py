"""Every change of a partition's leader, in-sync replicas or assignment is decided here.

A command states what it wants (another ISR, other replicas, an election of some kind), and gets the record of that
change and all its consequences:

- A reassignment whose new replicas are in sync ends: the old replicas are removed.
- ELR (KIP-966): a replica that leaves an ISR smaller than min.insync.replicas still has every committed record, because
  nothing is committed while the ISR is that small. Such replicas stay eligible to lead until the ISR is large enough
  again, or until they may have lost data in a crash. With ELR the ISR may become empty; without ELR its last member
  stays.
- A leader is elected when the present one may not lead: from the ISR, or from the ELR if the ISR is empty, in the order
  of the replicas. If both are empty, the last known leader may take over, as it lost the least. Any other replica is
  elected only if the topic allows unclean elections. After an election that may have lost data, the new leader is the
  only member of the ISR and the partition is marked as recovering.
- The leader epoch grows when the leader changes, and when a replica leaves the assignment (that replica must be
  fenced).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple, TypedDict

from ottla.cluster import features
from ottla.cluster.entities import NO_LEADER, Broker, PartitionState, Topic
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.view import MetadataView
from ottla.model.topic_settings import MIN_INSYNC_REPLICAS, UNCLEAN_LEADER_ELECTION_ENABLE
from ottla.wire.journal import cluster_metadata as journal

NO_BROKER = -1
_RECOVERING = 1
_NO_DIRECTORIES: Mapping[int, bytes] = {}


class ElectionType(Enum):
    """The kind of leader to elect if one is needed."""

    ONLINE = auto()  # a replica that has the data
    PREFERRED = auto()  # the same, but the first replica even if another one leads
    UNCLEAN = auto()  # any replica, if none has the data


class Wish(NamedTuple):
    """What a command wants to change in a partition; None: unchanged."""

    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovering: int | None = None
    directories: Mapping[int, bytes] = _NO_DIRECTORIES  # by broker


_AS_IT_IS = Wish()


class ChangedFields(TypedDict, total=False):
    """The fields of a PartitionChangeRecord that a decision sets."""

    leader: int
    isr: list[int]
    replicas: list[int]
    removing_replicas: list[int]
    adding_replicas: list[int]
    directories: list[bytes]
    leader_recovery_state: int
    eligible_leader_replicas: list[int]
    last_known_elr: list[int]


class _TopicRules(NamedTuple):
    min_isr: int
    election: ElectionType


class _Elected(NamedTuple):
    leader: int
    unclean: bool


class Elections:
    """Elections for one command: decides partition by partition, as if `entering` could lead already, and `leaving` and
    `lossy` could not any more; `lossy` may also have lost committed data. `brokers` are the registrations after the
    command.
    """

    def __init__(
        self,
        view: MetadataView,
        *,
        entering: int = NO_BROKER,
        leaving: int = NO_BROKER,
        lossy: int = NO_BROKER,
        brokers: Mapping[int, Broker] | None = None,
    ) -> None:
        self._view = view
        self._brokers = brokers if brokers is not None else view.state.brokers
        self._entering = entering
        self._gone = (leaving, lossy)
        self._lossy = lossy
        self._elr_enabled = view.state.features.get(features.ELR_VERSION, 0) > 0
        self._level = view.state.metadata_version
        self._version = features.partition_record_version(self._level)
        self._rules: dict[str, _TopicRules] = {}

    def sweep(self, partitions: Iterable[tuple[bytes, int]]) -> Iterator[MetadataEntry]:
        """Take the leaving and lossy brokers out of these partitions' ISRs, and elect where it is needed."""
        gone = self._gone
        topics = self._view.state.topic_by_id
        # Most of very many partitions differ only in index and epochs, which do not influence the decision.
        decided: dict[tuple[object, ...], ChangedFields] = {}
        for topic_id, index in partitions:
            topic = topics[topic_id]
            partition = topic.partitions[index]
            rules = self._rules_of(topic)
            alike = (rules, partition[1:4], partition[6:])
            fields = decided.get(alike)
            if fields is None:
                wish = Wish(isr=tuple(id for id in partition.isr if id not in gone))
                fields = decided[alike] = self._decide(partition, wish, rules.min_isr, rules.election)
            if fields:
                yield self._entry(topic_id, index, fields)

    def change(
        self, topic: Topic, partition: PartitionState, wish: Wish = _AS_IT_IS, election: ElectionType | None = None
    ) -> MetadataEntry | None:
        """Return the record of the change; None if nothing changes. Without `election`, the topic decides whether
        unclean elections are allowed.
        """
        rules = self._rules_of(topic)
        fields = self._decide(partition, wish, rules.min_isr, election or rules.election)
        return self._entry(topic.id, partition.index, fields) if fields else None

    def _entry(self, topic_id: bytes, index: int, fields: ChangedFields) -> MetadataEntry:
        return MetadataEntry(
            journal.PartitionChangeRecord(partition_id=index, topic_id=topic_id, **fields), self._version
        )

    def _decide(self, partition: PartitionState, wish: Wish, min_isr: int, election: ElectionType) -> ChangedFields:
        """Return the fields of the PartitionChangeRecord."""
        draft = _Draft(partition, wish)
        draft.finish_move()
        if self._elr_enabled:
            draft.keep_eligible(min_isr, self._lossy)
        fields = draft.fields(self._elect(draft, election), elr_enabled=self._elr_enabled)
        shrinks = "isr" in fields and not set(partition.isr) <= set(fields["isr"])
        if shrinks and self._level < features.NO_BUMP_ON_SHRINK:
            fields.setdefault("leader", partition.leader)
        stays = draft.replicas is partition.replicas and not wish.directories and partition.directories
        if self._level >= features.DIRECTORIES and not stays:
            directories = tuple(self._directory(partition, wish, id) for id in draft.replicas)
            if directories != partition.directories:
                fields["directories"] = list(directories)
        _check(partition, fields)
        return fields

    def _rules_of(self, topic: Topic) -> _TopicRules:
        rules = self._rules.get(topic.name)
        if rules is None:
            config = self._view.topic_config(topic.name)
            unclean = config[UNCLEAN_LEADER_ELECTION_ENABLE]
            min_isr = min(config[MIN_INSYNC_REPLICAS], len(topic.partitions[0].replicas))
            rules = _TopicRules(min_isr, ElectionType.UNCLEAN if unclean else ElectionType.ONLINE)
            self._rules[topic.name] = rules
        return rules

    def _elect(self, draft: _Draft, election: ElectionType) -> _Elected:
        current = draft.partition.leader
        candidates = draft.isr or draft.elr
        if election is ElectionType.PREFERRED:
            preferred = draft.replicas[0]
            if preferred in candidates and self._may_lead(draft.partition, preferred):
                return _Elected(preferred, False)
        if current in candidates and self._may_lead(draft.partition, current):
            return _Elected(current, False)
        for id in draft.replicas:
            if id in candidates and self._may_lead(draft.partition, id):
                return _Elected(id, False)
        last_known = draft.partition.last_known_elr
        if self._elr_enabled and not candidates and len(last_known) == 1:
            (id,) = last_known
            if id in draft.replicas and self._may_lead(draft.partition, id):
                return _Elected(id, True)
        if election is ElectionType.UNCLEAN:
            for id in draft.replicas:
                if self._may_lead(draft.partition, id):
                    return _Elected(id, True)
        return _Elected(NO_LEADER, False)

    def _may_lead(self, partition: PartitionState, id: int) -> bool:
        broker = self._brokers.get(id)
        if broker is None or id in self._gone or not (broker.active or id == self._entering):
            return False
        return id not in partition.replicas or broker.has_online(partition.directory(id))

    def _directory(self, partition: PartitionState, wish: Wish, id: int) -> bytes:
        if id in wish.directories:
            return wish.directories[id]
        if id in partition.replicas:
            return partition.directory(id)
        return self._brokers[id].default_directory


def _check(old: PartitionState, fields: ChangedFields) -> None:
    """Assert that a change lets only replicas lead, be in sync or be eligible to lead, and that none is both in sync
    and eligible. Where the journal of another implementation has such a state already, it may stay.
    """
    leader, isr = fields.get("leader", old.leader), fields.get("isr", old.isr)
    elr, replicas = fields.get("eligible_leader_replicas", old.elr), fields.get("replicas", old.replicas)
    strangers = _strangers(leader, isr, elr, replicas) - _strangers(old.leader, old.isr, old.elr, old.replicas)
    assert not strangers, f"{strangers} would lead or be in sync without a replica: {old}, {fields}"
    assert set(elr).isdisjoint(isr) or not set(old.elr).isdisjoint(old.isr), f"both in sync and eligible: {fields}"


def _strangers(leader: int, isr: Sequence[int], elr: Sequence[int], replicas: Sequence[int]) -> set[int]:
    return {leader, *isr, *elr} - {NO_LEADER, *replicas}


class _Draft:
    """The next state of a partition while it is decided."""

    __slots__ = ("adding", "elr", "isr", "partition", "recovering", "removing", "replicas")

    def __init__(self, partition: PartitionState, wish: Wish) -> None:
        self.partition = partition
        self.isr = partition.isr if wish.isr is None else wish.isr
        self.replicas = partition.replicas if wish.replicas is None else wish.replicas
        self.adding = partition.adding if wish.adding is None else wish.adding
        self.removing = partition.removing if wish.removing is None else wish.removing
        self.recovering = partition.recovering if wish.recovering is None else wish.recovering
        self.elr = partition.elr

    def finish_move(self) -> None:
        """End a reassignment when the added replicas are in sync. If it adds fewer replicas than it removes, all
        remaining replicas must be in sync, because they replace the removed ones.
        """
        if not self.adding and not self.removing:
            return
        isr = tuple(id for id in self.isr if id not in self.removing)
        replicas = tuple(id for id in self.replicas if id not in self.removing)
        adding = [id for id in self.adding if id not in self.removing]
        awaited = replicas if len(adding) < len(self.removing) else adding
        if isr and set(awaited) <= set(isr):
            self.isr, self.replicas, self.adding, self.removing = isr, replicas, (), ()

    def keep_eligible(self, min_isr: int, lossy: int) -> None:
        """Keep former members of the ISR eligible to lead while the ISR is smaller than `min_isr`, so that nothing can
        be committed without them.
        """
        if len(self.isr) >= min_isr:
            self.elr = ()
            return
        held = {*self.partition.elr, *self.partition.isr}
        self.elr = tuple(id for id in sorted(held) if id not in self.isr and id != lossy and id in self.replicas)

    def fields(self, elected: _Elected, *, elr_enabled: bool) -> ChangedFields:
        """Return the changed fields of a PartitionChangeRecord."""
        old = self.partition
        fields: ChangedFields = {}
        if elected.leader != old.leader:
            fields["leader"] = elected.leader
            if elected.leader in self.elr:
                self.isr = (elected.leader,)
                self.elr = tuple(id for id in self.elr if id != elected.leader)
            if elected.unclean:
                self.isr = (elected.leader,)
                self.elr = ()
                if old.recovering != _RECOVERING:
                    fields["leader_recovery_state"] = _RECOVERING
        elif not set(old.replicas) <= set(self.replicas):
            fields["leader"] = old.leader
        if not elr_enabled:
            self.elr = ()
        if self.isr != old.isr and (self.isr or elr_enabled):
            fields["isr"] = list(self.isr)
        if self.recovering != old.recovering:
            fields["leader_recovery_state"] = self.recovering
        if elr_enabled:
            self._last_known_leader(fields)
        if self.elr != old.elr:
            fields["eligible_leader_replicas"] = list(self.elr)
        if self.replicas != old.replicas:
            fields["replicas"] = list(self.replicas)
        if self.removing != old.removing:
            fields["removing_replicas"] = list(self.removing)
        if self.adding != old.adding:
            fields["adding_replicas"] = list(self.adding)
        return fields

    def _last_known_leader(self, fields: ChangedFields) -> None:
        """Remember the last leader when the partition loses its leader; forget it once there is a leader again."""
        old = self.partition
        leader = fields.get("leader", old.leader)
        if leader == NO_LEADER and old.leader != NO_LEADER and not old.last_known_elr:
            fields["last_known_elr"] = [old.leader]
        elif leader != NO_LEADER and old.last_known_elr:
            fields["last_known_elr"] = []
