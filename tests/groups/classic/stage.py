"""A stage for classic groups: members are called by their client id (or instance id), whatever ids they were given."""

import random
import re
from collections.abc import Iterable
from typing import Any

from tests.support.script import Stage, Verb

from ottla.groups.classic.arguments import Leaver
from ottla.groups.classic.group import ClassicGroup, MemberProtocol
from ottla.groups.classic.heartbeat import ClassicHeartbeat
from ottla.groups.classic.join import Join
from ottla.groups.classic.leave import ClassicLeave
from ottla.groups.classic.sync import Sync
from ottla.groups.classic.turn import JoinReply, SyncReply
from ottla.groups.group import Committer
from ottla.groups.machine import GroupsMachine
from ottla.groups.state import GroupsState
from ottla.groups.view import GroupsView, GroupTopic
from ottla.machine.keyed import Entry, types_of
from ottla.machine.kit import Timer
from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.wire.journal import consumer_group, consumer_offsets, share_group, streams_group

SETTINGS = {"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER"}
TYPES = types_of(consumer_offsets, consumer_group, share_group, streams_group)
GROUP = "g"
UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class NoTopics:
    """Classic groups do not ask which topics there are."""

    def by_name(self, name: str) -> GroupTopic | None:
        return None

    def by_id(self, topic_id: bytes) -> GroupTopic | None:
        return None

    def names(self) -> Iterable[str]:
        return ()


class Classics(Stage[GroupsMachine]):
    """Also knows each actor's member id and generation, as the actor does."""

    def __init__(self, **settings: str) -> None:
        self.settings = dict(settings)
        self.member_ids: dict[str, str] = {}  # by actor
        self.generations: dict[str, int] = {}
        self._called: dict[str, str] = {}  # member id → what it is called
        self._rng = random.Random(0)
        super().__init__(self._machine, TYPES, self.word)

    def _machine(self) -> GroupsMachine:
        # Read each time: a script may change a setting.
        def broker() -> Config:
            return NodeConfig(SETTINGS | self.settings).broker

        return GroupsMachine(GroupsView(GroupsState(), NoTopics(), broker, lambda _: broker(), self._rng))

    @property
    def group(self) -> ClassicGroup | None:
        found = self.machine.view.state.groups.get(GROUP)
        assert found is None or isinstance(found, ClassicGroup)
        return found

    # --- wording

    def called(self, member_id: str) -> str:
        if member_id not in self._called:
            name = UUID.sub("", member_id)
            earlier = sum(UUID.sub("", other) == name for other in self._called)
            self._called[member_id] = name if not earlier else f"{name}#{earlier + 1}"
        return self._called[member_id]

    def word(self, thing: Any) -> str | None:
        match thing:
            case JoinReply():
                return self._joined(thing)
            case SyncReply():
                return thing.error.name if thing.error else f"assigned {thing.assignment.decode()!r}"
            case ErrorCode():
                return thing.name
            case tuple() if thing and all(isinstance(each, ErrorCode) for each in thing):
                return ", ".join(each.name for each in thing)
            case Timer(key=("session" | "join phase" | "sync phase", *_), deadline_ms=int()):
                return f"timer: {' of '.join((thing.key[0], *map(self.called, thing.key[2:])))}, {thing.deadline_ms} ms"
            case Entry():
                return self._wrote(thing)
            case _:
                return None

    def _joined(self, reply: JoinReply) -> str:
        who = f" as {self.called(reply.member_id)}" if reply.member_id else ""
        if reply.error:
            return reply.error.name + who
        leads = ", leads " + " ".join(sorted(self.called(each[0]) for each in reply.members)) if reply.members else ""
        skips = " without assigning" if reply.skip_assignment else ""
        led = f", led by {self.called(reply.leader)}" if not reply.members else ""
        return f"generation {reply.generation}{who}, {reply.protocol_type} {reply.protocol_name}{led}{leads}{skips}"

    def _wrote(self, entry: Entry) -> str:
        value = entry.value
        if value is None:
            return f"deleted {entry.key.group}"
        members = [f"{self.called(each.member_id)}={each.assignment.decode()}" for each in value.members]
        what = f"{value.protocol_type} {value.protocol}" if value.protocol else value.protocol_type or "nothing"
        leader = f", led by {self.called(value.leader)}" if value.leader is not None else ""
        return f"wrote generation {value.generation}, {what}{leader}, members: {' '.join(members) or 'none'}"

    # --- what actors do

    def act(self, who: str, command: Any) -> None:
        def learn(value: Any) -> None:
            if isinstance(value, JoinReply) and value.error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.member_ids[who] = value.member_id
                if not value.error:
                    self.generations[who] = value.generation
            self._reply(who, value)

        self._runner.submit(command, self.moment(), learn)
        self._commit()

    def join(
        self,
        who: str,
        *,
        protocols: str = "range",
        type: str = "consumer",
        instance: str | None = None,
        member: str | None = None,
        session: str = "10000",
        rebalance: str = "60000",
        version: str = "9",
    ) -> None:
        """One JoinGroup. `protocols=range:metadata,sticky`"""
        offered = [each.partition(":") for each in protocols.split(",") if each]
        self.act(
            who,
            Join(
                group_id=GROUP,
                member_id=self.member_ids.get(who, "") if member is None else self.member_ids.get(member, member),
                instance_id=instance,
                client_id=who,
                client_host="/127.0.0.1",
                session_timeout_ms=int(session),
                rebalance_timeout_ms=int(rebalance),
                protocol_type=type,
                protocols=tuple(MemberProtocol(name, metadata.encode()) for name, _, metadata in offered),
                needs_known_id=int(version) >= 4,
                can_skip_assignment=int(version) >= 9,
            ),
        )

    def sync(
        self,
        who: str,
        *assignments: str,
        generation: str | None = None,
        instance: str | None = None,
        type: str | None = None,
        protocol: str | None = None,
    ) -> None:
        """`sync anna anna:A bert:B`"""
        given = [each.partition(":") for each in assignments]
        self.act(
            who,
            Sync(
                group_id=GROUP,
                member_id=self.member_ids.get(who, who),
                instance_id=instance,
                generation=self.generations.get(who, 0) if generation is None else int(generation),
                protocol_type=type,
                protocol_name=protocol,
                assignments={self.member_ids.get(name, name): value.encode() for name, _, value in given},
            ),
        )

    def heartbeat(self, who: str, *, generation: str | None = None, instance: str | None = None) -> None:
        now = self.generations.get(who, 0) if generation is None else int(generation)
        self.act(who, ClassicHeartbeat(GROUP, self.member_ids.get(who, who), instance, now))

    def leave(self, *leavers: str, by: str = "admin") -> None:
        """`leave anna @instance bert@instance`"""
        parts = [each.partition("@") for each in leavers]
        self.act(
            by,
            ClassicLeave(
                GROUP, tuple(Leaver(self.member_ids.get(who, who), instance or None) for who, _, instance in parts)
            ),
        )

    def may_commit(
        self, who: str = "", *, generation: str = "-1", instance: str | None = None, transactional: str = "no"
    ) -> None:
        group = self.group or ClassicGroup.empty(GROUP, self.now_ms)
        by = Committer(self.member_ids.get(who, who), instance, int(generation), 9, transactional == "yes")
        try:
            group.check_commit(by)
            self.tell(f"{who or 'somebody'}: may commit")
        except ApiError as error:
            self.tell(f"{who or 'somebody'}: {error.code.name}")

    def look(self) -> None:
        """How the group stands."""
        group = self.group
        if group is None:
            self.tell("no group")
            return
        members = " ".join(self.called(each) for each in group.members) or "none"
        waits = f", expected: {' '.join(map(self.called, group.pending))}" if group.pending else ""
        self.tell(f"{group.state_name}, generation {group.generation}, members: {members}{waits}")

    def set(self, **settings: str) -> None:
        """`set group.max.size=2`"""
        self.settings.update(settings)

    def verbs(self) -> dict[str, Verb]:
        return {
            "join": self.join,
            "sync": self.sync,
            "heartbeat": self.heartbeat,
            "leave": self.leave,
            "may-commit": self.may_commit,
            "look": self.look,
            "set": self.set,
        }
