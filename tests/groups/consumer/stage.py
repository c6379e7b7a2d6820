"""A stage for consumer groups: topics that come, grow and go, members of both kinds who know what they were told."""

import random
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.support.script import Stage, Verb

from ottla.groups.assign.spec import NO_PARTITIONS, Partitions
from ottla.groups.classic.arguments import Leaver
from ottla.groups.classic.group import MemberProtocol
from ottla.groups.classic.heartbeat import ClassicHeartbeat
from ottla.groups.classic.join import Join
from ottla.groups.classic.leave import ClassicLeave
from ottla.groups.classic.sync import Sync
from ottla.groups.classic.turn import JoinReply, SyncReply
from ottla.groups.consumer.describe import ConsumerGroupDescription, DescribeConsumerGroup
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.heartbeat import ConsumerHeartbeat, ConsumerHeartbeatReply
from ottla.groups.consumer.leave import ConsumerLeave
from ottla.groups.consumer.protocol import read_assignment
from ottla.groups.group import Group
from ottla.groups.machine import GroupsMachine
from ottla.groups.modern.group import MemberState
from ottla.groups.modern.topics_changed import TopicsChanged
from ottla.groups.state import GroupsState
from ottla.groups.view import GroupsView, GroupTopic
from ottla.machine.keyed import Entry, types_of
from ottla.machine.kit import Timer
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.wire import compile
from ottla.wire.journal import consumer_group as journal
from ottla.wire.journal import consumer_offsets, share_group, streams_group
from ottla.wire.journal.consumer_protocol import ConsumerProtocolSubscription

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "group.consumer.max.size": "4",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
GROUP = "shop"
NOW_MS = 1_000_000
TIMERS = ("revocation", "rejoin", "sync", "regexes")


# Whoever hears this is no longer a member: it abandons what it owns.
LOST = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNRELEASED_INSTANCE_ID,
)


class SomeTopics:
    """What the cluster has at the moment."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {"orders": 4, "bills": 2}

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


def shown(partitions: Mapping[bytes, Iterable[int]]) -> str:
    """`orders:0,1 bills:0`"""
    named = {name_of(topic_id): each for topic_id, each in partitions.items()}
    return " ".join(f"{name}:{','.join(map(str, sorted(named[name])))}" for name in sorted(named)) or "nothing"


def listed(topics: Iterable[Any]) -> str:
    return shown({each.topic_id: each.partitions for each in topics})


def subscription(topics: Iterable[str], owned: Partitions) -> bytes:
    held = [
        ConsumerProtocolSubscription.TopicPartition(topic=name_of(topic_id), partitions=sorted(each))
        for topic_id, each in owned.items()
    ]
    data = bytearray(b"\0\1")
    message = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=held)
    compile.encoder(ConsumerProtocolSubscription, 1)(message, data, [])
    return bytes(data)


class Actor:
    """A member as it sees itself. `owned` is what it was told to own; it gives back what it is told at once."""

    def __init__(self, name: str) -> None:
        self.member_id = name
        self.instance_id: str | None = None
        self.topics: frozenset[str] | None = None
        self.epoch = 0
        self.owned: Partitions = NO_PARTITIONS

    def learn(self, reply: Any) -> None:
        match reply:
            case ConsumerHeartbeatReply():
                self.member_id, self.epoch = reply.member_id, reply.epoch
                self.owned = self.owned if reply.assignment is None else reply.assignment
            case JoinReply() if reply.error in LOST:
                self.owned, self.epoch = NO_PARTITIONS, 0
            case JoinReply():
                self.member_id = reply.member_id or self.member_id
                self.epoch = reply.generation if reply.error is ErrorCode.NONE else self.epoch
            case SyncReply(error=ErrorCode.NONE):
                told = read_assignment(reply.assignment).assigned_partitions
                self.owned = {id_of(each.topic): frozenset(each.partitions) for each in told if each.partitions}
            case ApiError(code=ErrorCode.ILLEGAL_GENERATION):
                self.owned = NO_PARTITIONS  # it stays a member, and joins anew
            case ApiError() if reply.code in LOST:
                self.owned, self.epoch = NO_PARTITIONS, 0


class Consumers(Stage[GroupsMachine]):
    def __init__(self, tell_timers: Iterable[str] = TIMERS, **settings: str) -> None:
        self.topics = SomeTopics()
        self.actors: dict[str, Actor] = {}
        self.deaf: set[str] = set()  # whose replies get lost
        self._told_timers = frozenset(tell_timers)
        config = NodeConfig({**SETTINGS, **settings})
        rng = random.Random(0)

        def machine() -> GroupsMachine:
            view = GroupsView(GroupsState(), self.topics, lambda: config.broker, lambda _: config.group(), rng)
            return GroupsMachine(view)

        types = types_of(consumer_offsets, journal, share_group, streams_group)
        super().__init__(machine, types, self.show, now_ms=NOW_MS)

    @property
    def group(self) -> Group | None:
        return self.machine.view.state.groups.get(GROUP)

    @property
    def consumer_group(self) -> ConsumerGroup:
        assert isinstance(self.group, ConsumerGroup)
        return self.group

    def actor(self, name: str) -> Actor:
        return self.actors.setdefault(name, Actor(name))

    def act(self, name: str, command: Any, heard: Callable[[Any], None] | None = None) -> None:
        """Submits for an actor, who learns from the reply."""

        def reply(value: Any) -> None:
            if name not in self.deaf:
                self.actor(name).learn(value)
            if heard is not None:
                heard(value)
            self._reply(name, value)

        self._runner.submit(command, self.moment(), reply)
        self._commit()

    def told(self) -> list[str]:
        """With names instead of ids that nobody chose."""
        lines = super().told()
        for name, actor in self.actors.items():
            lines = [re.sub(f"{re.escape(actor.member_id)}(?!-)", name, line) for line in lines]
        return lines

    # --- what members of the new kind do

    def join(self, name: str, *topics: str, instance: str = "", member: str = "", regex: str = "", **said: Any) -> None:
        actor = self.actor(name)
        actor.member_id, actor.owned, actor.epoch = member or name, NO_PARTITIONS, 0
        actor.instance_id, actor.topics = instance or None, frozenset(topics)
        self.act(
            name,
            ConsumerHeartbeat(
                GROUP,
                actor.member_id,
                0,
                instance_id=actor.instance_id,
                rebalance_timeout_ms=20_000,
                subscribed_topics=actor.topics,
                subscribed_regex=regex or None,
                server_assignor=said.get("assignor"),
                owned=NO_PARTITIONS,
                client_id="client",
                client_host="/host",
            ),
        )

    def beat(self, name: str, *topics: str, confirm: bool = False, **said: str) -> None:
        """Topics: a new subscription; `none` for an empty one."""
        actor = self.actor(name)
        if topics:
            actor.topics = frozenset(topics) - {"none"}
        self.act(
            name,
            ConsumerHeartbeat(
                GROUP,
                actor.member_id,
                int(said.get("epoch", actor.epoch)),
                instance_id=actor.instance_id,
                subscribed_topics=actor.topics if topics else None,
                subscribed_regex=said.get("regex"),
                owned=actor.owned if confirm else None,
                client_id="client",
                client_host="/host",
            ),
        )

    def leave(self, name: str, epoch: str = "-1") -> None:
        actor = self.actor(name)
        self.act(name, ConsumerLeave(GROUP, actor.member_id, int(epoch), actor.instance_id))

    # --- what members of the classic kind do

    def old_join(self, name: str, *topics: str, instance: str = "") -> None:
        actor = self.actor(name)
        actor.topics = frozenset(topics) if topics else actor.topics or frozenset()
        actor.instance_id = instance or actor.instance_id
        known = actor.epoch != 0 and not instance
        protocols = (MemberProtocol("range", subscription(sorted(actor.topics), actor.owned)),)
        self.act(
            name,
            Join(
                GROUP,
                actor.member_id if known else "",
                actor.instance_id,
                "client",
                "/host",
                10_000,
                30_000,
                "consumer",
                protocols,
                needs_known_id=False,
            ),
        )

    def old_sync(self, name: str) -> None:
        """The leader of a classic group gives itself everything."""
        actor = self.actor(name)
        command = Sync(GROUP, actor.member_id, actor.instance_id, actor.epoch, None, None, {actor.member_id: b""})
        self.act(name, command)

    def old_beat(self, name: str) -> None:
        actor = self.actor(name)
        self.act(name, ClassicHeartbeat(GROUP, actor.member_id, actor.instance_id, actor.epoch))

    def old_leave(self, name: str) -> None:
        actor = self.actor(name)
        self.act(name, ClassicLeave(GROUP, (Leaver(actor.member_id, actor.instance_id),)))

    # --- the world

    def topic(self, name: str, size: str) -> None:
        """Makes, grows or (0) deletes a topic."""
        if size == "0":
            del self.topics.sizes[name]
        else:
            self.topics.sizes[name] = int(size)
        self.submit("", TopicsChanged(frozenset({name})))

    def verbs(self) -> dict[str, Verb]:
        return {
            "join": self.join,
            "beat": self.beat,
            "confirm": lambda name, *topics, **said: self.beat(name, *topics, confirm=True, **said),
            "leave": self.leave,
            "old-join": self.old_join,
            "old-sync": self.old_sync,
            "old-beat": self.old_beat,
            "old-leave": self.old_leave,
            "topic": self.topic,
            "describe": lambda: self.submit("group", DescribeConsumerGroup(GROUP)),
        }

    def show(self, thing: Any) -> str | None:
        match thing:
            case Entry():
                return entry_shown(thing)
            case ConsumerHeartbeatReply():
                told = "" if thing.assignment is None else f", owns {shown(thing.assignment)}"
                return f"epoch {thing.epoch}{told}"
            case JoinReply():
                return f"{thing.error.name}" if thing.error else f"generation {thing.generation}"
            case SyncReply():
                if thing.error:
                    return thing.error.name
                told = read_assignment(thing.assignment).assigned_partitions
                return f"owns {shown({id_of(each.topic): each.partitions for each in told})}"
            case ConsumerGroupDescription():
                members = ", ".join(
                    f"{each.member.member_id} at {each.member.epoch} owns {shown(each.owned)}"
                    + (f" shall own {shown(each.target)}" if each.owned != each.target else "")
                    for each in thing.members
                )
                return f"{thing.state}, epoch {thing.epoch}, assigned {thing.assignment_epoch}; {members or 'nobody'}"
            case Timer() if thing.key[0] in self._told_timers:
                what = " ".join((thing.key[0], *thing.key[2:]))
                return f"timer: {what}, {thing.deadline_ms} ms" if thing.deadline_ms is not None else None
            case ErrorCode():
                return thing.name
            case ApiError():
                return thing.code.name
            case tuple() if thing and all(isinstance(each, ErrorCode) for each in thing):
                return " ".join(each.name for each in thing)
            case str():
                return "left"
            case _:
                return None


def entry_shown(entry: Entry) -> str | None:
    key, value = entry.key, entry.value
    match key:
        case journal.ConsumerGroupMetadataKey():
            return f"+ group at epoch {value.epoch}" if value else "+ group deleted"
        case journal.ConsumerGroupMemberMetadataKey():
            if not value:
                return f"+ {key.member_id} deleted"
            names = ", ".join(value.subscribed_topic_names) or "nothing"
            kind = "old " if value.classic_member_metadata is not None else ""
            static = f" ({value.instance_id})" if value.instance_id else ""
            regex = f" and {value.subscribed_topic_regex}" if value.subscribed_topic_regex else ""
            return f"+ {kind}{key.member_id}{static} reads {names}{regex}"
        case journal.ConsumerGroupTargetAssignmentMetadataKey():
            return f"+ targets for epoch {value.assignment_epoch}" if value else "+ targets deleted"
        case journal.ConsumerGroupTargetAssignmentMemberKey():
            return f"+ {key.member_id} shall own {listed(value.topic_partitions)}" if value else None
        case journal.ConsumerGroupCurrentMemberAssignmentKey():
            if not value:
                return None
            state = MemberState(value.state).name.replace("_PARTITIONS", "").lower()
            gives = listed(value.partitions_pending_revocation)
            back = f", gives back {gives}" if value.partitions_pending_revocation else ""
            return f"+ {key.member_id} {state} at {value.member_epoch}: {listed(value.assigned_partitions)}{back}"
        case journal.ConsumerGroupRegularExpressionKey():
            topics = ", ".join(value.topics) if value else "deleted"
            return f"+ {key.regular_expression} means {topics or 'nothing'}"
        case consumer_offsets.GroupMetadataKey():
            return f"+ classic group, generation {value.generation}" if value else "+ classic group deleted"
    return None
