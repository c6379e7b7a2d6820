"""The group's record of its partitions' states at the share coordinator: initialising, initialised, or deleting.

Every change is written before the share coordinator is asked, and again when it has answered. So after a crash in
between, the group knows what to request again, and deleting a group finds all state that may exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.groups.group import Group
from ottla.groups.share import entries
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import NO_TOPICS, SharedTopic, SharedTopics, StatePartitions
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.settings.share import GROUP_SHARE_INITIALIZE_RETRY_INTERVAL_MS

PartitionsById = Mapping[bytes, frozenset[int]]  # partitions by the topic's id


@dataclass(frozen=True, slots=True)
class InitializeShares:
    """An effect: the share coordinator shall initialise the state of these partitions. Ends in SharesInitialized or
    SharesNotInitialized.
    """

    group_id: str
    state_epoch: int
    partitions: PartitionsById


class InitializationSent(NamedTuple):
    """A note: an InitializeShares was sent, so no other is needed for a while."""

    group_id: str
    topic_ids: tuple[bytes, ...]
    now_ms: int


@dataclass(frozen=True, slots=True)
class SharesInitialized:
    """The share coordinator has initialised the state of all these partitions; topics deleted meanwhile are ignored."""

    group_id: str
    partitions: PartitionsById

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        done = {
            topic_id: SharedTopic(topic.name, each)
            for topic_id, each in self.partitions.items()
            if (topic := view.topics.by_id(topic_id)) is not None
        }
        if not isinstance(group, ShareGroup) or not done:
            return Result()
        known = group.state_partitions or StatePartitions()
        changed = replace(
            known,
            initializing=without(known.initializing, self.partitions),
            initialized=joined(known.initialized, done),
        )
        return Result([entry(view, self.group_id, changed)])


@dataclass(frozen=True, slots=True)
class SharesNotInitialized:
    """The initialisation failed for these partitions: the next heartbeat requests it again."""

    group_id: str
    partitions: PartitionsById

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        known = group.state_partitions if isinstance(group, ShareGroup) else None
        if known is None or not known.initializing:
            return Result()
        changed = replace(known, initializing=without(known.initializing, self.partitions))
        return Result([entry(view, self.group_id, changed)])


@dataclass(frozen=True, slots=True)
class ForgetShares:
    """Topics were deleted: remove them from all groups' records."""

    topic_ids: frozenset[bytes]

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        return Result(forgetting(view, view.state.groups.values(), lambda topic_id: topic_id in self.topic_ids))


@dataclass(frozen=True, slots=True)
class ReadInitializedPartitions:
    """Replies with the initialised partitions of a group; with none if there is no such group."""

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, SharedTopics]:
        group = view.state.groups.get(self.group_id)
        known = group.state_partitions if isinstance(group, ShareGroup) else None
        return Result(reply=known.initialized if known is not None else NO_TOPICS)


@dataclass(frozen=True, slots=True)
class BeginDeletingGroup:
    """Replies with the partitions whose state has to be deleted before the group; with none for other kinds of
    groups.
    """

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, PartitionsById]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ShareGroup):
            return Result(reply={})
        group.check_delete()
        known = group.state_partitions
        if known is None:
            return Result(reply={})
        left_over = {
            topic_id: SharedTopic(topic.name, frozenset(range(topic.partitions)))
            for topic_id in sorted(known.deleting)
            if (topic := view.topics.by_id(topic_id)) is not None
        }
        all_ = joined(joined(known.initialized, known.initializing), left_over)
        record = entry(view, self.group_id, StatePartitions(deleting=frozenset(all_)))
        return Result([record], {topic_id: each.partitions for topic_id, each in all_.items()})


def forgetting(view: GroupsView, groups: Iterable[Group], is_gone: Callable[[bytes], bool]) -> list[Entry]:
    """Return the changed records of these groups after removing deleted topics."""
    records: list[Entry] = []
    for group in groups:
        if isinstance(group, ShareGroup) and group.state_partitions is not None:
            known = group.state_partitions
            left = StatePartitions(
                {topic_id: each for topic_id, each in known.initializing.items() if not is_gone(topic_id)},
                {topic_id: each for topic_id, each in known.initialized.items() if not is_gone(topic_id)},
                frozenset(topic_id for topic_id in known.deleting if not is_gone(topic_id)),
            )
            if left != known:
                records.append(entry(view, group.group_id, left))
    return records


def initialize_missing(
    view: GroupsView, group: ShareGroup, epoch: int, names: Iterable[str], now_ms: int
) -> Result[Entry, None] | None:
    """Request the state of all partitions of these topics that have none and were not requested recently."""
    retry_ms = view.setting(GROUP_SHARE_INITIALIZE_RETRY_INTERVAL_MS)
    known = group.state_partitions or StatePartitions()
    asked = {
        topic_id: each
        for topic_id, each in known.initializing.items()
        # Negative if the clock was set back since: then the time of the last request is unknown.
        if 0 <= now_ms - group.initializing_since.get(topic_id, now_ms - retry_ms) < retry_ms
    }
    there = joined(known.initialized, asked)
    missing: dict[bytes, SharedTopic] = {}
    for name in sorted(names):
        topic = view.topics.by_name(name)
        if topic is not None:
            have = there[topic.id].partitions if topic.id in there else frozenset()
            if len(have) < topic.partitions:
                missing[topic.id] = SharedTopic(name, frozenset(range(topic.partitions)) - have)
    if not missing:
        return None
    wanted = {topic_id: each.partitions for topic_id, each in missing.items()}
    return Result(
        [entry(view, group.group_id, initializing(known, missing))],
        notes=[InitializationSent(group.group_id, tuple(missing), now_ms)],
        effects=[InitializeShares(group.group_id, epoch, wanted)],
    )


def initializing(known: StatePartitions, more: SharedTopics) -> StatePartitions:
    """Return `known` with more partitions in `initializing`; this cancels a deletion of their topics."""
    topics = joined(known.initializing, more)
    return replace(known, initializing=topics, deleting=known.deleting - frozenset(topics))


def joined(one: SharedTopics, other: SharedTopics) -> SharedTopics:
    """Return the union of both; names are those of `other`, which is newer."""
    result = dict(one)
    for topic_id, each in other.items():
        before = one[topic_id].partitions if topic_id in one else frozenset()
        result[topic_id] = SharedTopic(each.name, before | each.partitions)
    return result


def without(topics: SharedTopics, gone: PartitionsById) -> SharedTopics:
    """Return what is left of `topics`; topics without partitions are dropped."""
    left = {
        topic_id: each._replace(partitions=each.partitions - gone.get(topic_id, frozenset()))
        for topic_id, each in topics.items()
    }
    return {topic_id: each for topic_id, each in left.items() if each.partitions}


def entry(view: GroupsView, group_id: str, partitions: StatePartitions) -> Entry:
    """Return the record of a group's state partitions."""

    def name_of(topic_id: bytes) -> str | None:
        topic = view.topics.by_id(topic_id)
        return topic.name if topic is not None else None

    return entries.state_partitions_entry(group_id, partitions, name_of)
