"""A stage for the group coordinator with nothing but offsets on it."""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.support.script import Stage, Verb

from ottla.groups.group import Committer
from ottla.groups.machine import GroupsMachine
from ottla.groups.offsets.commit import CommitOffsets, NewOffset
from ottla.groups.offsets.fetch import FetchedOffset, FetchOffsets
from ottla.groups.offsets.remove import DeleteGroup, DeleteOffsets, ForgetTopics
from ottla.groups.state import GroupsState
from ottla.groups.view import GroupsView, GroupTopic
from ottla.machine.keyed import Entry, Marker, types_of
from ottla.machine.kit import Result
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.node_config import NodeConfig
from ottla.wire.journal import consumer_group, consumer_offsets, share_group, streams_group

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.retention.minutes": "60",
    "offset.metadata.max.bytes": "10",
}


class NoTopics:
    """Offsets do not ask which topics there are."""

    def by_name(self, name: str) -> GroupTopic | None:
        return None

    def by_id(self, topic_id: bytes) -> GroupTopic | None:
        return None

    def names(self) -> Iterable[str]:
        return ()


def machine() -> GroupsMachine:
    config = NodeConfig(SETTINGS)
    view = GroupsView(GroupsState(), NoTopics(), lambda: config.broker, lambda _: config.group(), random.Random(0))
    return GroupsMachine(view)


def partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))


@dataclass(frozen=True)
class Fetch:
    """What is told of each partition."""

    command: FetchOffsets

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, Any]:
        found = self.command.decide(view, now_ms).reply
        return Result(reply=[found.of(each) for each in self.command.partitions or found.kept])


def show(thing: Any) -> str | None:
    match thing:
        case Entry(key=consumer_offsets.OffsetCommitKey(), value=None):
            return f"deleted {thing.key.group} {thing.key.topic}-{thing.key.partition}"
        case Entry(key=consumer_offsets.OffsetCommitKey()):
            of = f" by producer {thing.producer_id}" if thing.producer_id >= 0 else ""
            key, value = thing.key, thing.value
            return f"wrote {key.group} {key.topic}-{key.partition} at {value.offset} (v{thing.version}){of}"
        case Entry(key=consumer_offsets.GroupMetadataKey(), value=None):
            return f"deleted group {thing.key.group}"
        case Marker():
            return f"producer {thing.producer_id} {'commits' if thing.commit else 'aborts'}"
        case list() if thing and isinstance(thing[0], FetchedOffset):
            return ", ".join(_fetched(each) for each in thing)
        case list() if thing and isinstance(thing[0], ErrorCode):
            return ", ".join(code.name for code in thing)
        case []:
            return "nothing"
        case _:
            return None


def _fetched(each: FetchedOffset) -> str:
    text = f"{each.partition.topic}-{each.partition.partition}"
    if each.error:
        return f"{text} {each.error.name}"
    return f"{text} at {each.offset}" + (f" '{each.metadata}'" if each.metadata else "")


def make_stage() -> tuple[Stage[GroupsMachine], dict[str, Verb]]:
    stage = Stage(machine, types_of(consumer_offsets, consumer_group, share_group, streams_group), show)

    def commit(group: str, *offsets: str, producer: str = "-1", retention: str = "-1", **by: str) -> None:
        """`commit shop a-0:5:metadata b-1:7`"""
        new = []
        for text in offsets:
            where, offset, *metadata = text.split(":")
            new.append(NewOffset(partition(where), int(offset), -1, metadata[0] if metadata else None))
        committer = Committer(
            by.get("member", ""),
            by.get("instance"),
            int(by.get("epoch", "-1")),
            int(by.get("version", "9")),
            transactional=producer != "-1",
        )
        stage.submit(group, CommitOffsets(group, committer, tuple(new), int(retention), int(producer), 0))

    def fetch(group: str, *partitions: str, stable: str = "no") -> None:
        wanted = tuple(partition(each) for each in partitions) or None
        stage.submit(group, Fetch(FetchOffsets(group, wanted, require_stable=stable == "yes")))

    def delete(group: str, *partitions: str) -> None:
        command = DeleteOffsets(group, tuple(partition(each) for each in partitions))
        stage.submit(group, command if partitions else DeleteGroup(group))

    def forget(*topics: str) -> None:
        stage.submit("forget", ForgetTopics(frozenset(topics)))

    def end(producer: str, how: str) -> None:
        stage.mark(Marker(int(producer), 0, how == "commit"))

    verbs: dict[str, Verb] = {"offsets": commit, "fetch": fetch, "delete": delete, "forget": forget, "end": end}
    return stage, verbs
