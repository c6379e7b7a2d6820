"""A stage for streams groups: topics that come, grow and go, members who know which tasks they were told to have."""

import random
from collections.abc import Callable, Iterable
from typing import Any

from tests.groups.consumer.stage import LOST, NOW_MS, SETTINGS, SomeTopics
from tests.support.script import Stage, Verb

from ottla.groups.group import Committer
from ottla.groups.machine import GroupsMachine
from ottla.groups.modern.topics_changed import TopicsChanged
from ottla.groups.offsets.commit import CommitOffsets, NewOffset
from ottla.groups.offsets.remove import DeleteGroup
from ottla.groups.state import GroupsState
from ottla.groups.streams.describe import DescribeStreamsGroup, StreamsMemberDescription
from ottla.groups.streams.describe import StreamsGroupDescription as StreamsDescribed
from ottla.groups.streams.entries import assigned_of, pending_of, state_of, target_of
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from ottla.groups.streams.internal_topics import CreateInternalTopics, InternalTopicsFailed
from ottla.groups.streams.leave import StreamsLeave
from ottla.groups.streams.member import UserEndpoint
from ottla.groups.streams.tasks import NOTHING, Tasks, TaskSet, without_epochs
from ottla.groups.streams.topology import InternalTopic, Subtopology, Topology
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry, types_of
from ottla.machine.kit import Timer
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.node_config import NodeConfig
from ottla.wire.journal import consumer_group, consumer_offsets, share_group
from ottla.wire.journal import streams_group as journal

GROUP = "app"
TIMERS = ("streams revocation", "streams members")
# Lines are counted by word: one subtopology cuts them, the other counts. Plain: only the first.
CHANGELOG, REPARTITION = "app-counts", "app-words"
TOPOLOGIES = {
    "plain": Topology(0, (Subtopology("cut", ("orders",)),)),
    "state": Topology(0, (Subtopology("count", ("orders",), changelogs=(InternalTopic(CHANGELOG),)),)),
    "words": Topology(
        0,
        (
            Subtopology("cut", ("orders",), repartition_sinks=(REPARTITION,)),
            Subtopology(
                "count",
                ("bills",),
                changelogs=(InternalTopic(CHANGELOG, configs=(("cleanup.policy", "compact"),)),),
                repartition_sources=(InternalTopic(REPARTITION),),
            ),
        ),
    ),
}


def shown(tasks: TaskSet) -> str:
    """`cut:0,1 count:2 (standby cut:2)`"""
    copies = f" (standby {_listed(tasks.standby)})" if tasks.standby else ""
    return (_listed(tasks.active) or "nothing") + copies


def _listed(tasks: Tasks) -> str:
    return " ".join(f"{name}:{','.join(map(str, sorted(tasks[name])))}" for name in sorted(tasks))


class Actor:
    """A member as it sees itself; it gives back at once what it is told to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 0
        self.tasks = NOTHING
        self.endpoint_epoch = 0
        self.said: dict[str, Any] = {}

    def learn(self, reply: Any) -> None:
        if isinstance(reply, StreamsHeartbeatReply):
            self.epoch, self.endpoint_epoch = reply.epoch, reply.endpoint_epoch
            self.tasks = self.tasks if reply.tasks is None else reply.tasks
        elif isinstance(reply, ApiError) and reply.code in (*LOST, ErrorCode.INVALID_REQUEST):
            self.epoch, self.tasks = 0, NOTHING


class Streamers(Stage[GroupsMachine]):
    """`own` makes internal topics as soon as they are asked for; otherwise the script does, or fails to."""

    def __init__(self, tell_timers: Iterable[str] = TIMERS, *, own: bool = True, **settings: str) -> None:
        self.topics = SomeTopics()
        self.actors: dict[str, Actor] = {}
        self.deaf: set[str] = set()  # whose replies get lost
        self._told_timers = frozenset(tell_timers)
        self._creates = own
        quick = {"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"}
        self._said = {**SETTINGS, **quick, **settings}
        self._config = NodeConfig(self._said)
        rng = random.Random(0)

        def machine() -> GroupsMachine:
            view = GroupsView(
                GroupsState(), self.topics, lambda: self._config.broker, lambda _: self._config.group(), rng
            )
            return GroupsMachine(view)

        types = types_of(consumer_offsets, consumer_group, share_group, journal)
        super().__init__(machine, types, self.show, now_ms=NOW_MS)

    @property
    def group(self) -> StreamsGroup | None:
        found = self.machine.view.state.groups.get(GROUP)
        return found if isinstance(found, StreamsGroup) else None

    def actor(self, name: str) -> Actor:
        return self.actors.setdefault(name, Actor(name))

    def act(self, name: str, command: Any) -> None:
        def reply(value: Any) -> None:
            if name not in self.deaf:
                self.actor(name).learn(value)
            self._reply(name, value)

        self._runner.submit(command, self.moment(), reply)
        self._commit()

    # --- what members do

    def join(self, name: str, play: str = "plain", process: str = "", epoch: str = "0", endpoint: str = "") -> None:
        actor = self.actor(name)
        actor.tasks, actor.epoch = NOTHING, 0
        topology = TOPOLOGIES[play]
        self.beat(
            name,
            topology=Topology(int(epoch), topology.subtopologies),
            process_id=process or f"process-{name}",
            rebalance_timeout_ms=20_000,
            endpoint=UserEndpoint(endpoint, 80) if endpoint else None,
            client_tags=(),
            owned=NOTHING,
        )

    def beat(self, name: str, **said: Any) -> None:
        actor = self.actor(name)
        beat = {"epoch": actor.epoch, "endpoint_epoch": actor.endpoint_epoch, "client_id": "client", **said}
        self.act(name, StreamsHeartbeat(GROUP, name, **beat))

    def confirm(self, name: str) -> None:
        self.beat(name, owned=self.actor(name).tasks)

    def leave(self, name: str, shutdown: str = "") -> None:
        self.act(name, StreamsLeave(GROUP, name, bool(shutdown)))
        actor = self.actor(name)
        actor.epoch, actor.tasks = 0, NOTHING

    def commit_offset(self, name: str, topic: str, partition: str, epoch: str) -> None:
        by = Committer(name, None, int(epoch), 9)
        new = NewOffset(TopicPartition(topic, int(partition)), 5, -1, None)
        self.act(name, CommitOffsets(GROUP, by, (new,)))

    # --- the world

    def topic(self, name: str, size: str) -> None:
        """Makes, grows or (0) deletes a topic."""
        if size == "0":
            del self.topics.sizes[name]
        else:
            self.topics.sizes[name] = int(size)
        self.submit("", TopicsChanged(frozenset({name})))

    def setting(self, name: str, value: str) -> None:
        self._said[name] = value
        self._config = NodeConfig(self._said)

    def fail(self, name: str, why: str) -> None:
        """A topic could not be created."""
        self.submit("", InternalTopicsFailed(GROUP, ((name, why),)))

    def tell(self, thing: Any) -> None:
        super().tell(thing)
        if isinstance(thing, CreateInternalTopics) and self._creates:
            for topic in thing.topics:
                self.topics.sizes[topic.name] = topic.partitions
            self._soon(TopicsChanged(frozenset(topic.name for topic in thing.topics)))

    def _soon(self, command: Any) -> None:
        """Effects are carried out while a command is; what comes of them is another one."""
        self._runner.submit(command, self.moment(), lambda _: None)

    def verbs(self) -> dict[str, Verb]:
        plain: dict[str, Callable[..., None]] = {
            "join": self.join,
            "beat": self.beat,
            "confirm": self.confirm,
            "leave": self.leave,
            "topic": self.topic,
            "set": self.setting,
            "fail": self.fail,
            "commit-offset": self.commit_offset,
            "shutdown": lambda name: self.beat(name, wants_shutdown=True),
            "delete": lambda: self.submit("group", DeleteGroup(GROUP)),
            "describe": lambda: self.submit("group", DescribeStreamsGroup(GROUP)),
            "nobody": lambda epoch: self.act("nobody", StreamsHeartbeat(GROUP, "nobody", int(epoch))),
            "at": lambda name, epoch: self.beat(name, epoch=int(epoch), owned=self.actor(name).tasks),
        }
        return plain

    def show(self, thing: Any) -> str | None:
        match thing:
            case Entry():
                return entry_shown(thing)
            case StreamsHeartbeatReply():
                told = "" if thing.tasks is None else f", has {shown(thing.tasks)}"
                news = "".join(f"\n  {each.status.name}: {each.detail}" for each in thing.statuses)
                where = "".join(
                    f"\n  {each.endpoint.host} has {_shares(each.active)}" for each in thing.endpoints or ()
                )
                return f"epoch {thing.epoch}{told}{news}{where}"
            case StreamsDescribed():
                members = "; ".join(_member(each) for each in thing.members)
                return f"{thing.state}, epoch {thing.epoch}, assigned {thing.assignment_epoch}: {members or 'nobody'}"
            case CreateInternalTopics():
                return "create " + ", ".join(f"{each.name} with {each.partitions}" for each in thing.topics)
            case Timer() if thing.key[0] in self._told_timers and thing.deadline_ms is not None:
                return f"timer: {' '.join((thing.key[0], *thing.key[2:]))}, {thing.deadline_ms} ms"
            case str():
                return "left"
            case list() if thing and all(isinstance(each, ErrorCode) for each in thing):
                return " ".join(each.name for each in thing)
            case _:
                return None


def _shares(shares: Iterable[Any]) -> str:
    return " ".join(f"{each.topic}:{','.join(map(str, each.partitions))}" for each in shares) or "nothing"


def _member(described: StreamsMemberDescription) -> str:
    owned = without_epochs(described.member.assigned)
    shall = "" if owned == described.target else f" shall have {shown(described.target)}"
    return f"{described.member.member_id} at {described.member.epoch} has {shown(owned)}{shall}"


def entry_shown(entry: Entry) -> str | None:
    key, value = entry.key, entry.value
    match key:
        case journal.StreamsGroupMetadataKey():
            if value is None:
                return "+ group deleted"
            ready = "" if value.validated_topology_epoch >= 0 else ", not ready"
            return f"+ group at epoch {value.epoch}{ready}"
        case journal.StreamsGroupTopologyKey():
            return f"+ topology {value.epoch}" if value else None
        case journal.StreamsGroupMemberMetadataKey():
            return f"+ {key.member_id} of {value.process_id}" if value else f"+ {key.member_id} deleted"
        case journal.StreamsGroupTargetAssignmentMetadataKey():
            return f"+ targets for epoch {value.assignment_epoch}" if value else None
        case journal.StreamsGroupTargetAssignmentMemberKey():
            return f"+ {key.member_id} shall have {shown(target_of(value))}" if value else None
        case journal.StreamsGroupCurrentMemberAssignmentKey():
            if value is None:
                return None
            state = state_of(value).name.replace("_PARTITIONS", "").lower()
            gone = pending_of(value)
            back = "" if gone.is_empty else f", gives back {shown(without_epochs(gone))}"
            return (
                f"+ {key.member_id} {state} at {value.member_epoch}: {shown(without_epochs(assigned_of(value)))}{back}"
            )
    return None
