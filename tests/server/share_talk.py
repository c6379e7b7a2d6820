"""A member of a share group over a bare connection: every request by hand, every answer as it came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from tests.server.talk import create, eventually, produce
from tests.support.requests.raw import RawConnection

from ottla.model.errors import ErrorCode
from ottla.records.batch import headers
from ottla.records.build import build_batch
from ottla.records.record import Record, records
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.shares.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest
from ottla.wire.messages.shares.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

VERSION = 2
GROUP = 32  # the kind of configuration resource
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4

# Internal topics of one partition each, made in a moment, and assignments without a pause between them.
SMALL = {
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.share.assignment.interval.ms": 0,
}
_NUMBERS = count()

Acks = Sequence[tuple[int, int, Sequence[int]]]  # first offset, last offset, types
Named = tuple[bytes, int]

_Topic = ShareFetchRequest.FetchTopic
_Partition = _Topic.FetchPartition
_AckTopic = ShareAcknowledgeRequest.AcknowledgeTopic
_AckPartition = _AckTopic.AcknowledgePartition
_Alter = IncrementalAlterConfigsRequest.AlterConfigsResource


def configure(connection: RawConnection, group_id: str, **configs: object) -> None:
    """Sets configurations of a group; underscores stand for dots."""
    changes = [
        _Alter.AlterableConfig(name=key.replace("_", "."), config_operation=0, value=str(value))
        for key, value in configs.items()
    ]
    resource = _Alter(resource_type=GROUP, resource_name=group_id, configs=changes)
    answer: Any = connection.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    assert answer.responses[0].error_code == 0, answer


class Queue:
    """A topic, a group that begins at its start, and members that join it."""

    def __init__(
        self,
        broker: EmbeddedBroker,
        connection: RawConnection,
        *,
        partitions: int = 1,
        tenants: tuple[str, str] = ("", ""),
        **settings: object,
    ) -> None:
        """`tenants` are the prefixes of the topic's name and of the group's."""
        number = next(_NUMBERS)
        self.broker, self.connection = broker, connection
        self.topic, self.group = f"{tenants[0]}queue-{number}", f"{tenants[1]}group-{number}"
        self.topic_id = create(connection, self.topic, partitions)
        configure(connection, self.group, **{"share_auto_offset_reset": "earliest"} | settings)
        self._members: list[Member] = []

    def join(self, name: str = "member", *, joins: bool = True) -> Member:
        """Without `joins` it never sends a heartbeat."""
        member = Member(self.broker.bootstrap, self.group, name, self.topic, self.topic_id, joins=joins)
        self._members.append(member)
        return member

    def put(self, *values: bytes | Record) -> None:
        """One batch."""
        batch = build_batch([each if isinstance(each, Record) else (None, each) for each in values])
        assert produce(self.connection, self.topic, batch)[0] == 0

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.close()


class Member:
    """Joins the group, then speaks of one topic's partitions by its id. The session's epoch is kept for it."""

    def __init__(
        self, bootstrap: str, group_id: str, member_id: str, topic: str, topic_id: bytes, *, joins: bool = True
    ) -> None:
        self.connection = RawConnection(bootstrap)
        self.group_id = group_id
        self.member_id = member_id
        self.topic_id = topic_id
        self.epoch = 0
        self._member_epoch = 0
        self._topics = [topic]
        eventually(self._finds_coordinator, "the coordinator")
        if joins:
            eventually(self._joined, "the assignment")

    def _finds_coordinator(self) -> bool:
        """That also makes the group's internal topic."""
        answer: Any = self.connection.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group_id]), 6)
        return bool(answer.coordinators[0].error_code == 0)

    def _joined(self) -> bool:
        answer = self.heartbeat(self._member_epoch, self._topics)
        if answer.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
            return False  # a Kafka needs a moment to lead a new topic
        assert answer.error_code == 0, answer
        self._member_epoch = answer.member_epoch
        return answer.assignment is not None and any(
            each.topic_id == self.topic_id for each in answer.assignment.topic_partitions
        )

    def heartbeat(self, epoch: int, topics: list[str] | None = None) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=epoch, subscribed_topic_names=topics
        )
        return self.connection.call(request, 1)

    def request(
        self,
        acks: Mapping[int, Acks] | None = None,
        *,
        epoch: int | None = None,
        partitions: Sequence[int] = (0,),
        add: Sequence[int] = (),
        forget: Sequence[int] = (),
        max_records: int = 500,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        strict: bool = False,
        renew: bool = False,
    ) -> ShareFetchRequest:
        acks = acks or {}
        batch = _Partition.AcknowledgementBatch
        named = dict.fromkeys([*(partitions if self.epoch == 0 else add), *acks])
        return ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            max_records=max_records,
            batch_size=max(max_records, 1),
            share_acquire_mode=1 if strict else 0,
            is_renew_ack=renew,
            topics=[
                _Topic(
                    topic_id=self.topic_id,
                    partitions=[
                        _Partition(
                            partition_index=index,
                            acknowledgement_batches=[
                                batch(first_offset=first, last_offset=last, acknowledge_types=list(types))
                                for first, last, types in acks.get(index, ())
                            ],
                        )
                        for index in named
                    ],
                )
            ]
            if named
            else [],
            forgotten_topics_data=[ShareFetchRequest.ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))]
            if forget
            else [],
        )

    def fetch(self, acks: Mapping[int, Acks] | None = None, **options: Any) -> Any:
        answer: Any = self.connection.call(self.request(acks, **options), VERSION)
        if options.get("epoch") is None and answer.error_code == 0:
            self.epoch += 1
        return answer

    def poll(self, acks: Acks | None = None, **options: Any) -> list[tuple[int, int, int]]:
        """What is acquired of partition 0: first offset, last offset, delivery count; no error anywhere."""
        answer = self.fetch({0: acks} if acks else None, **options)
        assert answer.error_code == 0, answer
        found = []
        for topic in answer.responses:
            for data in topic.partitions:
                assert data.error_code == data.acknowledge_error_code == 0, answer
                found += [(each.first_offset, each.last_offset, each.delivery_count) for each in data.acquired_records]
        return found

    def records(self, **options: Any) -> list[tuple[Record, int]]:
        """The acquired records of partition 0, as a consumer sees them, with their delivery counts."""
        answer = self.fetch(**options)
        assert answer.error_code == 0, answer
        found = []
        for topic in answer.responses:
            for data in topic.partitions:
                assert data.error_code == 0, answer
                view = memoryview(data.records)
                for position, header in headers(view):
                    if header.is_control:
                        continue
                    found += [
                        (record, each.delivery_count)
                        for record in records(view, position)
                        for each in data.acquired_records
                        if each.first_offset <= record.offset <= each.last_offset
                    ]
        return found

    def acknowledge_answer(
        self, acks: Mapping[int, Acks], *, epoch: int | None = None, renew: bool = False, version: int = VERSION
    ) -> Any:
        batch = _AckPartition.AcknowledgementBatch
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            is_renew_ack=renew,
            topics=[
                _AckTopic(
                    topic_id=self.topic_id,
                    partitions=[
                        _AckPartition(
                            partition_index=index,
                            acknowledgement_batches=[
                                batch(first_offset=first, last_offset=last, acknowledge_types=list(types))
                                for first, last, types in batches
                            ],
                        )
                        for index, batches in acks.items()
                    ],
                )
            ]
            if acks
            else [],
        )
        answer: Any = self.connection.call(request, version)
        if epoch is None and answer.error_code == 0:
            self.epoch += 1
        return answer

    def acknowledge(self, *acks: tuple[int, int, Sequence[int]], **options: Any) -> int:
        """The error code for partition 0."""
        answer = self.acknowledge_answer({0: acks}, **options)
        assert answer.error_code == 0, answer
        return int(answer.responses[0].partitions[0].error_code)

    def close(self) -> None:
        self.connection.close()
