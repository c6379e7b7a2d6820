"""Members of a consumer group (KIP-848), heartbeat by heartbeat, on one side of a comparison.

Members choose their own ids, so that both sides give the same answers.
"""

from itertools import groupby
from typing import Any

from tests.support.requests.classic import wait_for_coordinator
from tests.support.requests.same import Plain, Side
from tests.support.waiting import until

from ottla.groups.view import GroupTopic
from ottla.machine.keyed import Entry, entries_of, types_of
from ottla.model.java import java_abs, java_hash
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.records.batch import headers
from ottla.wire.journal import consumer_group, consumer_offsets, streams_group
from ottla.wire.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

NEWEST = 1
GROUP_RESOURCE = 32
TIMES = ("timestamp", "assignment_timestamp", "version", "metadata_hash")  # the hash depends on topic ids


class KnownTopics:
    """Topics in the form that the coordinator's functions need."""

    def __init__(self, infos: dict[str, GroupTopic]) -> None:
        self.infos = infos

    def by_name(self, name: str) -> GroupTopic | None:
        return self.infos.get(name)

    def by_id(self, topic_id: bytes) -> GroupTopic | None:
        return next((each for each in self.infos.values() if each.id == topic_id), None)

    def names(self) -> list[str]:
        return list(self.infos)


class Flock:
    """One consumer group on one side of a comparison."""

    def __init__(self, side: Side, group: str, **configs: str) -> None:
        self.side = side
        self.group = group
        wait_for_coordinator(side, group)
        self.configure(**{"consumer.assignment.interval.ms": "0", **configs})

    def configure(self, **configs: str) -> None:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        listed = [
            resource.AlterableConfig(name=name, config_operation=0, value=value) for name, value in configs.items()
        ]
        wanted = resource(resource_type=GROUP_RESOURCE, resource_name=self.group, configs=listed)
        answer = self.side.call(IncrementalAlterConfigsRequest(resources=[wanted], validate_only=False), 1)
        assert answer["responses"][0]["error_code"] == 0, answer
        self.side.settle()

    def bird(self, member_id: str, topics: list[str] | None = None, **joining: Any) -> "Bird":
        return Bird(self, member_id, {"subscribed_topic_names": topics, **joining})

    def described(self, version: int = NEWEST) -> Plain:
        request = ConsumerGroupDescribeRequest(group_ids=[self.group], include_authorized_operations=False)
        answer = self.side.call(request, version)
        for group in answer["groups"]:
            for member in group["members"]:
                member["subscribed_topic_names"].sort()  # Kafka keeps a set
        return answer

    def wait_for_epoch(self, epoch: int) -> None:
        """Wait for a group epoch: regular expressions are resolved a moment after the heartbeat that has them."""
        until(self.described, lambda found: found["groups"][0]["group_epoch"] >= epoch)

    def journal(self) -> list[Plain]:
        """All entries of the group in the journal; times and fields that depend on the cluster are left out."""
        return self._journal(TIMES)

    def values(self, kind: str) -> list[Plain]:
        """The values of all entries of one kind."""
        return [each["value"] for each in self._journal(()) if each["kind"] == kind and each["value"] is not None]

    def _journal(self, blank: tuple[str, ...]) -> list[Plain]:
        topic = FetchRequest.Topic
        partition = java_abs(java_hash(self.group)) % 50
        part = topic.Partition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 24)
        answer = self.side.answer(
            FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic(topic=CONSUMER_OFFSETS_TOPIC, partitions=[part])]),
            12,
        )
        assert isinstance(answer, FetchResponse)
        data = memoryview(bytes(answer.responses[0].partitions[0].records or b""))
        types = types_of(consumer_group, consumer_offsets, streams_group)
        found = [
            entry
            for position, header in headers(data)
            for entry in entries_of(data[position : position + header.size_bytes], header, types)
        ]
        listed = [
            {
                "kind": type(entry.key).__name__,
                "key": self.side.plain(entry.key, 0),
                "version": entry.version,
                "value": entry.value and self.side.plain(entry.value, entry.version, blank),
            }
            for entry in found
            if isinstance(entry, Entry) and getattr(entry.key, "group_id", None) == self.group
        ]
        return [each for _, run in groupby(listed, key=_kind) for each in sorted(run, key=_member)]


def _kind(entry: Plain) -> str:
    return str(entry["kind"])


def _member(entry: Plain) -> str:
    """The sort key of an entry: Kafka writes the target assignments of several members in the order of a hash table."""
    return str(entry["key"]["member_id"]) if "TargetAssignmentMember" in entry["kind"] else ""


class Bird:
    """One member, with its epoch and assignment."""

    def __init__(self, flock: Flock, member_id: str, joining: dict[str, Any]) -> None:
        self.member_id = member_id
        self.epoch = 0
        self.owned: list[tuple[bytes, list[int]]] = []
        self._flock = flock
        self._joining = joining

    def join(self, version: int = NEWEST, **fields: Any) -> Plain:
        """Join with all fields that a new member sends."""
        self.owned = []
        said = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], "member_epoch": 0, **self._joining, **fields}
        return self.beat(version, **said)

    def beat(self, version: int = NEWEST, **fields: Any) -> Plain:
        """Send a heartbeat with no other fields than `fields`."""
        said = {
            "group_id": self._flock.group,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self._joining.get("instance_id"),
            **fields,
        }
        answer = self._flock.side.answer(ConsumerGroupHeartbeatRequest(**said), version)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = [(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions]
        return self._flock.side.plain(answer, version)

    def confirm(self, version: int = NEWEST, **fields: Any) -> Plain:
        """Send a heartbeat that lists the owned partitions."""
        listed = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in self.owned
        ]
        return self.beat(version, topic_partitions=listed, **fields)

    def leave(self, epoch: int = -1, **fields: Any) -> Plain:
        return self.beat(member_epoch=epoch, **fields)
