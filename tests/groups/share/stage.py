"""A stage for share groups: topics that come, grow and go, and a share coordinator that answers when told to."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.script import Stage, Verb

from ottla.groups.assign.spec import Partitions
from ottla.groups.machine import GroupsMachine
from ottla.groups.modern.topics_changed import TopicsChanged
from ottla.groups.offsets.remove import DeleteGroup
from ottla.groups.share.describe import DescribeShareGroup, ShareGroupDescription
from ottla.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from ottla.groups.share.offsets import (
    AlterOffsets,
    DeleteShareOffsets,
    OffsetsDeleted,
    ShareOffsetsAlteration,
    ShareOffsetsDeletion,
)
from ottla.groups.share.state_partitions import (
    BeginDeletingGroup,
    ForgetShares,
    InitializeShares,
    ReadInitializedPartitions,
    SharesInitialized,
    SharesNotInitialized,
)
from ottla.groups.state import GroupsState
from ottla.groups.view import GroupsView, GroupTopic
from ottla.machine.keyed import Entry, types_of
from ottla.machine.kit import Timer
from ottla.model.node_config import NodeConfig
from ottla.wire.journal import consumer_group, consumer_offsets, share_group, streams_group

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "group.share.max.size": "3",
    "group.share.initialize.retry.interval.ms": "30000",
}
GROUP = "shop"
NOW_MS = 1_000_000


class SomeTopics:
    """What the cluster has at the moment."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {"orders": 2, "bills": 1}

    def by_name(self, name: str) -> GroupTopic | None:
        return GroupTopic(name, id_of(name), self.sizes[name]) if name in self.sizes else None

    def by_id(self, topic_id: bytes) -> GroupTopic | None:
        return self.by_name(name_of(topic_id))

    def names(self) -> Iterable[str]:
        return self.sizes


def id_of(name: str) -> bytes:
    return name.encode().ljust(16, b"\0")


def name_of(topic_id: bytes) -> str:
    return topic_id.rstrip(b"\0").decode()


def shown(partitions: Partitions | Mapping[bytes, Any]) -> str:
    """`orders:0,1 bills:0`"""
    named = {name_of(topic_id): each for topic_id, each in partitions.items()}
    return " ".join(f"{name}:{','.join(map(str, sorted(named[name])))}" for name in sorted(named)) or "nothing"


def _listed(topics: Iterable[Any]) -> str:
    return shown({each.topic_id: each.partitions for each in topics})


def _entry(entry: Entry) -> str | None:
    key, value = entry.key, entry.value
    match key:
        case share_group.ShareGroupMetadataKey():
            return f"group at epoch {value.epoch}" if value else "deleted group"
        case share_group.ShareGroupMemberMetadataKey():
            if not value:
                return f"deleted member {key.member_id}"
            return f"member {key.member_id} reads {', '.join(value.subscribed_topic_names)}"
        case share_group.ShareGroupTargetAssignmentMetadataKey():
            return f"targets for epoch {value.assignment_epoch}" if value else "deleted targets"
        case share_group.ShareGroupTargetAssignmentMemberKey():
            return f"target of {key.member_id}: {_listed(value.topic_partitions) if value else 'deleted'}"
        case share_group.ShareGroupCurrentMemberAssignmentKey():
            if not value:
                return f"{key.member_id} has: deleted"
            epochs = f"epoch {value.member_epoch} after {value.previous_member_epoch}"
            return f"{key.member_id} has: {_listed(value.assigned_partitions)} ({epochs})"
        case share_group.ShareGroupStatePartitionMetadataKey():
            if not value:
                return "deleted state partitions"
            deleting = ", ".join(each.topic_name for each in value.deleting_topics) or "nothing"
            begins, begun = _listed(value.initializing_topics), _listed(value.initialized_topics)
            return f"state partitions: initializing {begins}; initialized {begun}; deleting {deleting}"
    return None


def show(thing: Any) -> str | None:
    match thing:
        case Entry():
            return _entry(thing)
        case ShareHeartbeatReply():
            told = "" if thing.assigned is None else f", has {shown(thing.assigned)}"
            return f"epoch {thing.epoch}{told}"
        case ShareGroupDescription():
            members = ", ".join(f"{each.member_id} at {each.epoch}" for each in thing.members) or "nobody"
            return f"{thing.state_name}, epoch {thing.epoch}, assigned {thing.assignment_epoch}, {members}"
        case InitializeShares():
            return f"ask to begin {shown(thing.partitions)} at state epoch {thing.state_epoch}"
        case ShareOffsetsAlteration():
            return f"to begin at state epoch {thing.state_epoch}: {shown(thing.offsets)}"
        case ShareOffsetsDeletion():
            errors = ", ".join(f"{name} {error.code.name}" for name, error in thing.errors.items())
            return f"to delete: {shown(thing.partitions)}" + (f"; {errors}" if errors else "")
        case dict():
            plain = {key: getattr(each, "partitions", each) for key, each in thing.items()}
            return shown(plain)
        case Timer(deadline_ms=None):
            return f"no more timer for {thing.key[2]}"
        case _:
            return None


def make_stage() -> tuple[Stage[GroupsMachine], dict[str, Verb], SomeTopics]:
    topics = SomeTopics()
    config = NodeConfig(SETTINGS)

    def machine() -> GroupsMachine:
        view = GroupsView(GroupsState(), topics, lambda: config.broker, lambda _: config.group(), random.Random(0))
        return GroupsMachine(view)

    stage = Stage(machine, types_of(consumer_offsets, consumer_group, share_group, streams_group), show, now_ms=NOW_MS)
    return stage, verbs(stage, topics), topics


def verbs(stage: Stage[GroupsMachine], topics: SomeTopics) -> dict[str, Verb]:
    def beat(member: str, *names: str, epoch: str = "0") -> None:
        read = frozenset(names) if names else None
        stage.submit(member, ShareHeartbeat(GROUP, member, int(epoch), None, read, "client", "/host"))

    def wanted(*words: str) -> dict[bytes, frozenset[int]]:
        """`orders:0,1`"""
        pairs = (word.split(":") for word in words)
        return {id_of(name): frozenset(map(int, numbers.split(","))) for name, numbers in pairs}

    def begun(*words: str) -> None:
        stage.submit("", SharesInitialized(GROUP, wanted(*words)))

    def failed(*words: str) -> None:
        stage.submit("", SharesNotInitialized(GROUP, wanted(*words)))

    def alter(*words: str) -> None:
        """`orders:0,1` start at 5"""
        starts = {name_of(topic_id): dict.fromkeys(each, 5) for topic_id, each in wanted(*words).items()}
        stage.submit("alter", AlterOffsets(GROUP, starts))

    def topic(name: str, size: str) -> None:
        """Makes, grows or (0) deletes a topic."""
        topics.sizes[name] = int(size)
        if size == "0":
            del topics.sizes[name]
            stage.submit("", ForgetShares(frozenset({id_of(name)})))
        stage.submit("", TopicsChanged(frozenset({name})))

    return {
        "beat": beat,
        "begun": begun,
        "failed": failed,
        "alter": alter,
        "topic": topic,
        "unnoticed": lambda name: topics.sizes.pop(name) and None,
        "forget": lambda *names: stage.submit("forget", DeleteShareOffsets(GROUP, names)),
        "forgotten": lambda *names: stage.submit("", OffsetsDeleted(GROUP, frozenset(map(id_of, names)))),
        "describe": lambda: stage.submit("group", DescribeShareGroup(GROUP)),
        "initialized": lambda: stage.submit("initialized", ReadInitializedPartitions(GROUP)),
        "delete": lambda: stage.submit("delete", DeleteGroup(GROUP)),
        "prepare": lambda: stage.submit("to delete", BeginDeletingGroup(GROUP)),
    }
