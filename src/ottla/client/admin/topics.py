"""Topics: create, list, describe, delete, add partitions, delete records, offsets."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.client.admin.asking import ask_leaders, one_by_one
from ottla.client.admin.segments import PartitionSegments, described_segments
from ottla.client.checks import (
    Setting,
    checked_name,
    checked_names,
    checked_number,
    checked_partitions,
    kind_of,
    setting_text,
)
from ottla.client.cluster import Cluster
from ottla.client.consumer.offsets import LATEST, OffsetAndTime, PartitionBounds, Time, bounds_each, list_offsets_each
from ottla.client.metadata import PartitionInfo, TopicInfo
from ottla.client.outcomes import Outcomes, told, told_by
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest
from ottla.wire.messages.records.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest

BROKER_DEFAULT = -1
# For DeleteRecords: delete up to the high watermark.
ALL_RECORDS = -1
# The codes with which CreateTopics reports a topic that exists afterwards.
_EXISTS = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
# What the error codes of DeleteRecords mean; the response has no field for a message.
_DELETION_REFUSED: dict[int, str] = {
    ErrorCode.POLICY_VIOLATION: "records can be deleted only where cleanup.policy contains delete",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset lies beyond the end of the partition",
}


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; fields that are left out take the broker's defaults."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    configs: Mapping[str, Setting] | None = None
    assignments: Mapping[int, Iterable[int]] | None = None


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was created; `configs` is None if the broker did not return it."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """The state that a partition keeps of one producer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class TopicAdmin:
    """Operations on topics."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # --- create and delete --------------------------------------------------------------------------------------

    async def create(
        self,
        name: str,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, Setting] | None = None,
        *,
        validate_only: bool = False,
    ) -> CreatedTopic:
        """Create one topic."""
        topic = NewTopic(name, partitions, replication_factor, configs)
        return (await self.create_each([topic], validate_only=validate_only)).all()[name]

    async def create_each(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> Outcomes[str, CreatedTopic]:
        """Create topics, with an outcome per topic."""
        topics = list(topics)
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics],
            timeout_ms=self._cluster.options.request_timeout_ms,
            validate_only=validate_only,
        )

        def read(answer: CreateTopicsResponse) -> list[tuple[str, CreatedTopic, int, str | None]]:
            if not validate_only:
                for each in answer.topics:
                    if each.error_code in _EXISTS:
                        self._cluster.metadata.made(each.name, asyncio.get_running_loop().time())
            return [(each.name, _created(each), each.error_code, each.error_message) for each in answer.topics]

        asking = self._cluster.call(request, repeatable=False)
        return await told_by(asking, [topic.name for topic in topics], read)

    async def delete(self, name: str) -> None:
        """Delete one topic and all its records."""
        (await self.delete_each([name])).all()

    async def delete_each(self, names: Iterable[str]) -> Outcomes[str, None]:
        """Delete topics, with an outcome per topic."""
        if isinstance(names, str):
            raise TypeError(f"a list of names is needed, not {names!r}; delete takes one name")
        names = list(names)
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"topic must be a name, not {kind_of(name)}; delete_each takes a list of names")
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=NO_ID) for name in names],
            topic_names=names,
            timeout_ms=self._cluster.options.request_timeout_ms,
        )
        outcomes = await told_by(
            self._cluster.call(request, repeatable=False),
            names,
            lambda answer: [(each.name or "", None, each.error_code, each.error_message) for each in answer.responses],
        )
        for name in outcomes.found:
            self._cluster.metadata.deleted(name)
        for name in outcomes.failed:
            self._cluster.metadata.mark_stale(name)  # the topic may be deleted even if the response was lost
        return outcomes

    async def add_partitions(self, name: str, total: int, *, validate_only: bool = False) -> None:
        """Increase the number of partitions of the topic to `total`."""
        (await self.add_partitions_each({name: total}, validate_only=validate_only)).all()

    async def add_partitions_each(
        self, totals: Mapping[str, int], *, validate_only: bool = False
    ) -> Outcomes[str, None]:
        """Increase the numbers of partitions of topics, with an outcome per topic."""
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsRequest.Topic(
                    name=checked_name(name, "topic"), count=checked_number(total, "total"), assignments=None
                )
                for name, total in totals.items()
            ],
            timeout_ms=self._cluster.options.request_timeout_ms,
            validate_only=validate_only,
        )
        outcomes = await told_by(
            self._cluster.call(request, repeatable=False),
            totals,
            lambda answer: [(each.name, None, each.error_code, each.error_message) for each in answer.results],
        )
        for name in totals:
            self._cluster.metadata.mark_stale(name)
        for name in outcomes.found if not validate_only else ():
            self._cluster.metadata.made(name, asyncio.get_running_loop().time())
        return outcomes

    # --- describe -----------------------------------------------------------------------------------------------

    async def names(self) -> list[str]:
        """The names of all topics, sorted."""
        return [topic.name for topic in await self.all()]

    async def all(self) -> list[TopicInfo]:
        """Every topic with its partitions, sorted by name."""
        answer, _ = await self._cluster.refresh(None)
        found = [self._cluster.metadata.fresh(topic.name or "") for topic in answer.topics]
        return sorted((topic for topic in found if topic is not None), key=lambda topic: topic.name)

    async def describe(self, name: str) -> TopicInfo:
        """Return the current metadata of one topic."""
        self._cluster.metadata.mark_stale(checked_name(name, "topic"))
        return await self._cluster.topic(name)

    async def describe_each(self, names: Iterable[str]) -> Outcomes[str, TopicInfo]:
        """Return the current metadata of topics, with an outcome per topic."""
        return await one_by_one(checked_names(names, "topic"), self.describe)

    async def offsets(
        self, name: str, time: Time = LATEST, partitions: Iterable[int] | None = None, *, read_committed: bool = False
    ) -> dict[int, OffsetAndTime]:
        """Return the offset at a time, per partition of one topic."""
        if partitions is None:
            partitions = [each.index for each in (await self.describe(name)).partitions]
        wanted = {TopicPartition(name, index): time for index in partitions}
        found = (await self.offsets_each(wanted, read_committed=read_committed)).all()
        return {partition.partition: answer for partition, answer in found.items()}

    async def offsets_each(
        self, wanted: Mapping[TopicPartition, Time], *, read_committed: bool = False
    ) -> Outcomes[TopicPartition, OffsetAndTime]:
        """Return the offset at a time, per partition of any topics."""
        return await list_offsets_each(self._cluster, wanted, read_committed=read_committed)

    async def bounds(self, name: str) -> dict[int, PartitionBounds]:
        """Return the readable range of offsets, (first offset, end offset), per partition of one topic."""
        partitions = [TopicPartition(name, each.index) for each in (await self.describe(name)).partitions]
        found = (await self.bounds_each(partitions)).all()
        return {partition.partition: found[partition] for partition in partitions}

    async def bounds_each(self, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, PartitionBounds]:
        """Return the readable range of offsets per partition of any topics."""
        return await bounds_each(self._cluster, partitions)

    # --- records and producers ----------------------------------------------------------------------------------

    async def delete_records(self, name: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete the records before an offset per partition (ALL_RECORDS: all of them); return the
        new first offsets.
        """
        wanted = {TopicPartition(name, index): offset for index, offset in before.items()}
        return {at.partition: offset for at, offset in (await self.delete_records_each(wanted)).all().items()}

    async def delete_records_each(self, before: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, int]:
        """Delete the records before an offset in partitions of any topics, with an outcome per partition."""
        before = {
            partition: checked_number(offset, f"offset of {partition}", at_least=ALL_RECORDS, at_most=limits.INT64_MAX)
            for partition, offset in zip(checked_partitions(before), before.values(), strict=True)
        }

        async def ask(node_id: int, led: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, int]:
            topics: dict[str, DeleteRecordsRequest.Topic] = {}
            for at in led:
                topic = topics.setdefault(at.topic, DeleteRecordsRequest.Topic(name=at.topic, partitions=[]))
                topic.partitions.append(
                    DeleteRecordsRequest.Topic.Partition(partition_index=at.partition, offset=before[at])
                )
            request = DeleteRecordsRequest(
                topics=list(topics.values()), timeout_ms=self._cluster.options.request_timeout_ms
            )
            answer = await self._cluster.ask_leader(node_id, topics, request)
            return told(
                led,
                [
                    (
                        TopicPartition(found.name, each.partition_index),
                        each.low_watermark,
                        each.error_code,
                        _DELETION_REFUSED.get(each.error_code),
                    )
                    for found in answer.topics
                    for each in found.partitions
                ],
            )

        return await ask_leaders(self._cluster, before, ask)

    async def producers(self, partition: TopicPartition) -> list[ActiveProducer]:
        """Return the idempotent and transactional producers whose state the partition keeps."""
        return (await self.producers_each([partition])).all()[partition]

    async def producers_each(
        self, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, list[ActiveProducer]]:
        """Return the producers of several partitions, with an outcome per partition."""

        async def ask(
            node_id: int, led: Mapping[TopicPartition, int]
        ) -> Outcomes[TopicPartition, list[ActiveProducer]]:
            topics: dict[str, DescribeProducersRequest.TopicRequest] = {}
            for name, index in led:
                topic = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[])
                topics.setdefault(name, topic).partition_indexes.append(index)
            request = DescribeProducersRequest(topics=list(topics.values()))
            answer = await self._cluster.ask_leader(node_id, topics, request)
            return told(
                led,
                [
                    (
                        TopicPartition(found.name, each.partition_index),
                        [_active(state) for state in each.active_producers],
                        each.error_code,
                        each.error_message,
                    )
                    for found in answer.topics
                    for each in found.partitions
                ],
            )

        return await ask_leaders(self._cluster, partitions, ask)

    async def segments(self, partition: TopicPartition) -> PartitionSegments:
        """Return the segments of a partition at its leader. Raises UnsupportedApi if that is not Ottla's."""
        return (await self.segments_each([partition])).all()[partition]

    async def segments_each(self, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, PartitionSegments]:
        """Return the segments of several partitions at their leaders, with an outcome per partition."""
        return await described_segments(self._cluster, partitions)


def _active(state: DescribeProducersResponse.TopicResponse.PartitionResponse.ProducerState) -> ActiveProducer:
    return ActiveProducer(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch,
        state.current_txn_start_offset,
    )


def _created(topic: CreateTopicsResponse.CreatableTopicResult) -> CreatedTopic:
    return CreatedTopic(topic.name, topic.topic_id, topic.num_partitions, topic.replication_factor)


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    if not isinstance(topic, NewTopic):
        raise TypeError(f"a list of NewTopic(...) is needed, not of {kind_of(topic)}")
    kind = CreateTopicsRequest.CreatableTopic
    return kind(
        name=checked_name(topic.name, "topic"),
        num_partitions=checked_number(topic.partitions, "partitions"),
        replication_factor=checked_number(
            topic.replication_factor, "replication_factor", at_least=-limits.INT16_MAX, at_most=limits.INT16_MAX
        ),
        assignments=[
            kind.CreatableReplicaAssignment(
                partition_index=checked_number(index, "the index of a partition"),
                broker_ids=[checked_number(broker, "the id of a broker") for broker in brokers],
            )
            for index, brokers in (topic.assignments or {}).items()
        ],
        configs=[
            kind.CreatableTopicConfig(name=name, value=setting_text(name, value))
            for name, value in (topic.configs or {}).items()
        ],
    )


__all__ = ["ALL_RECORDS", "BROKER_DEFAULT", "ActiveProducer", "CreatedTopic", "NewTopic", "PartitionInfo", "TopicAdmin"]
