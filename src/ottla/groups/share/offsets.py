"""Alter and delete the start offsets of a share group without members, for an admin client.

The share coordinator stores the offsets; these commands decide whether the change is allowed and record that it is in
progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ottla.groups.share.group import ShareGroup, find, find_or_begin
from ottla.groups.share.member import SharedTopic, StatePartitions
from ottla.groups.share.state_partitions import PartitionsById, entry, initializing
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode


class ShareOffsetsAlteration(NamedTuple):
    """The reply to AlterOffsets: the changes to request from the share coordinator."""

    state_epoch: int
    offsets: Mapping[bytes, Mapping[int, int]]  # start offsets by topic id and partition


class ShareOffsetsDeletion(NamedTuple):
    """The reply to DeleteShareOffsets: the partitions whose state to delete, and errors of topics with nothing to
    delete.
    """

    partitions: PartitionsById
    errors: Mapping[str, ApiError]


@dataclass(frozen=True, slots=True)
class AlterOffsets:
    """Alter start offsets, given by topic name and partition. Partitions that do not exist are left out of the
    reply.
    """

    group_id: str
    topics: Mapping[str, Mapping[int, int]]

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, ShareOffsetsAlteration]:
        group = find_or_begin(view, self.group_id)
        group.check_delete()
        offsets: dict[bytes, Mapping[int, int]] = {}
        begun: dict[bytes, SharedTopic] = {}
        for name, starts in self.topics.items():
            topic = view.topics.by_name(name)
            if topic is not None:
                there = {index: start for index, start in starts.items() if index < topic.partitions}
                begun[topic.id] = SharedTopic(name, frozenset(there))
                if there:
                    offsets[topic.id] = there
        known = group.state_partitions or StatePartitions()
        records = [entry(view, self.group_id, initializing(known, begun))] if begun else []
        return Result(records, ShareOffsetsAlteration(group.epoch, offsets))


@dataclass(frozen=True, slots=True)
class DeleteShareOffsets:
    """Start the deletion of topics' offsets; `OffsetsDeleted` ends it. Replies with a ShareOffsetsDeletion."""

    group_id: str
    topics: tuple[str, ...]

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, ShareOffsetsDeletion]:
        group = find(view, self.group_id)
        group.check_delete()
        known = group.state_partitions
        if known is None:
            return Result(reply=ShareOffsetsDeletion({}, {}))
        initialized = dict(known.initialized)
        deleting = set(known.deleting)
        partitions: dict[bytes, frozenset[int]] = {}
        errors: dict[str, ApiError] = {}
        for name in self.topics:
            topic = view.topics.by_name(name)
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                errors[name] = ApiError(code, code.message)
            elif topic.id in initialized:
                partitions[topic.id] = initialized.pop(topic.id).partitions
                deleting.add(topic.id)
            elif topic.id in deleting:
                partitions[topic.id] = frozenset(range(topic.partitions))
            else:
                errors[name] = ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."
                )
        changed = replace(known, initialized=initialized, deleting=frozenset(deleting))
        return Result([entry(view, self.group_id, changed)], ShareOffsetsDeletion(partitions, errors))


@dataclass(frozen=True, slots=True)
class OffsetsDeleted:
    """The share coordinator has deleted the state of these topics."""

    group_id: str
    topic_ids: frozenset[bytes]

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, None]:
        group = view.state.groups.get(self.group_id)
        if not isinstance(group, ShareGroup) or group.state_partitions is None:
            return Result()
        known = group.state_partitions
        return Result([entry(view, self.group_id, replace(known, deleting=known.deleting - self.topic_ids))])
