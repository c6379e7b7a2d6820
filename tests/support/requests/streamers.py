"""Members of a streams group (KIP-1071), heartbeat by heartbeat, on one side of a comparison."""

from collections.abc import Callable
from typing import Any

from tests.support.requests.beats import Flock
from tests.support.requests.classic import wait_for_coordinator
from tests.support.requests.same import Plain, Side
from tests.support.waiting import until

from ottla.wire.messages.groups import streams_group_heartbeat as messages
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.groups.streams_group_describe import StreamsGroupDescribeRequest
from ottla.wire.messages.groups.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

Topology = StreamsGroupHeartbeatRequest.Topology
Subtopology = Topology.Subtopology
TaskIds = StreamsGroupHeartbeatRequest.TaskIds
ROLES = ("active_tasks", "standby_tasks", "warmup_tasks")


def internal(name: str, partitions: int = 0, replicas: int = 0, **configs: str) -> messages.TopicInfo:
    listed = [messages.KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items()]
    return messages.TopicInfo(name=name, partitions=partitions, replication_factor=replicas, topic_configs=listed)


def subtopology(name: str, *sources: str, **fields: Any) -> Subtopology:
    """A subtopology. `copartitions`: lists of indexes of source topics, and of repartition source topics."""
    groups = [
        Subtopology.CopartitionGroup(source_topics=one, source_topic_regex=[], repartition_source_topics=other)
        for one, other in fields.pop("copartitions", ())
    ]
    said = {
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": groups,
        **fields,
    }
    return Subtopology(subtopology_id=name, source_topics=list(sources), **said)


def topology(*subtopologies: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch=epoch, subtopologies=list(subtopologies))


class Troupe(Flock):
    """One streams group on one side; delays are 0 unless given."""

    def __init__(self, side: Side, group: str, **configs: str) -> None:
        self.side = side
        self.group = group
        wait_for_coordinator(side, group)
        quick = {"streams.assignment.interval.ms": "0", "streams.initial.rebalance.delay.ms": "0"}
        self.configure(**{**quick, **configs})

    def player(self, member_id: str, topology: Topology | None = None, **joining: Any) -> "Player":
        return Player(self, member_id, {"topology": topology, "process_id": f"p-{member_id}", **joining})

    def described(self, version: int = 0) -> Plain:
        request = StreamsGroupDescribeRequest(group_ids=[self.group], include_authorized_operations=False)
        return self.side.call(request, version)

    def listed(self, **filters: list[str]) -> Plain:
        said = {"states_filter": [], "types_filter": [], **filters}
        answer = self.side.call(ListGroupsRequest(**said), 5)
        return [each for each in answer["groups"] if each["group_id"] == self.group]


class Player:
    """One member, with its epoch and its tasks."""

    def __init__(self, troupe: Troupe, member_id: str, joining: dict[str, Any]) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.tasks: dict[str, list[TaskIds]] = {role: [] for role in ROLES}
        self._endpoint_epoch = 0
        self._troupe = troupe
        self._joining = joining

    def join(self, **fields: Any) -> Plain:
        """Join with all fields that a new member sends."""
        self.tasks = {role: [] for role in ROLES}
        said = {"rebalance_timeout_ms": 60_000, "member_epoch": 0, "client_tags": [], **self.tasks, **self._joining}
        return self.beat(**{**said, **fields})

    def beat(self, **fields: Any) -> Plain:
        """Send a heartbeat with no other fields than `fields`."""
        said = {
            "group_id": self._troupe.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "endpoint_information_epoch": self._endpoint_epoch,
            **fields,
        }
        answer = self._troupe.side.answer(StreamsGroupHeartbeatRequest(**said), 0)
        assert isinstance(answer, StreamsGroupHeartbeatResponse)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            self._endpoint_epoch = answer.endpoint_information_epoch
            for role in ROLES:
                if (told := getattr(answer, role)) is not None:
                    listed = [TaskIds(subtopology_id=each.subtopology_id, partitions=each.partitions) for each in told]
                    self.tasks[role] = listed
        return self._troupe.side.plain(answer, 0)

    def confirm(self, **fields: Any) -> Plain:
        """Send a heartbeat that lists the owned tasks."""
        return self.beat(**{**self.tasks, **fields})

    def until(self, good: Callable[[Plain], bool]) -> Plain:
        """Send heartbeats until an answer is good: Kafka creates topics a moment after it was asked for them."""
        return until(self.confirm, good)

    def leave(self, epoch: int = -1, **fields: Any) -> Plain:
        return self.beat(member_epoch=epoch, **fields)
