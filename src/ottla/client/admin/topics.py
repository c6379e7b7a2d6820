"""Topics: create, list, describe, delete, add partitions, delete records, offsets.

Rules:
- A call that names several topics returns one result per topic, `ApiError` for those that failed; a call that names one
  topic raises.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.client.admin.asking import ask_leader
from ottla.client.cluster import Cluster
from ottla.client.errors import check, error_code
from ottla.client.metadata import PartitionInfo, TopicInfo
from ottla.client.offsets import EARLIEST, LATEST, OffsetAndTime, Time, list_offsets
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

BROKER_DEFAULT = -1
# DeleteRecords up to the high watermark, wherever it is.
ALL_RECORDS = -1
# What CreateTopics says of topics that are there afterwards.
_EXISTS = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
# What DeleteRecords' codes mean; its answer has no room for a text.
_DELETION_REFUSED: dict[int, str] = {
    ErrorCode.POLICY_VIOLATION: "records can be deleted only where cleanup.policy contains delete",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset lies beyond the end of the partition",
}


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be made; what is left out is the broker's default."""

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    configs: Mapping[str, str | None] | None = None
    assignments: Mapping[int, Iterable[int]] | None = None


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic that was made; configs are None when the broker does not tell."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class ActiveProducer:
    """A producer that a partition remembers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


class Topics:
    """What can be done with topics."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # --- create and delete --------------------------------------------------------------------------------------

    async def create(
        self,
        name: str,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, str | None] | None = None,
        *,
        validate_only: bool = False,
    ) -> CreatedTopic:
        """Create one topic."""
        topic = NewTopic(name, partitions, replication_factor, configs)
        return _value((await self.create_many([topic], validate_only=validate_only))[name])

    async def create_many(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, CreatedTopic | ApiError]:
        """Create topics, each on its own account."""
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics],
            timeout_ms=self._cluster.options.request_timeout_ms,
            validate_only=validate_only,
        )
        answer = await self._cluster.call(request, CreateTopicsResponse, repeatable=False)
        if not validate_only:
            for each in answer.topics:
                if each.error_code in _EXISTS:
                    self._cluster.metadata.made(each.name, asyncio.get_running_loop().time())
        return {
            each.name: _error(each.error_code, each.error_message)
            or CreatedTopic(each.name, each.topic_id, each.num_partitions, each.replication_factor)
            for each in answer.topics
        }

    async def delete(self, name: str) -> None:
        """Delete one topic and all its records."""
        error = (await self.delete_many([name]))[name]
        if error is not None:
            raise error

    async def delete_many(self, names: Iterable[str]) -> dict[str, ApiError | None]:
        """Delete topics, each on its own account; None means deleted."""
        names = list(names)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=NO_ID) for name in names],
            topic_names=names,
            timeout_ms=self._cluster.options.request_timeout_ms,
        )
        answer = await self._cluster.call(request, DeleteTopicsResponse, repeatable=False)
        for name in names:
            self._cluster.metadata.deleted(name)
        return {each.name or "": _error(each.error_code, each.error_message) for each in answer.responses}

    async def add_partitions(self, name: str, total: int, *, validate_only: bool = False) -> None:
        """Let the topic have `total` partitions, more than it has now."""
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsRequest.Topic(name=name, count=total, assignments=None)],
            timeout_ms=self._cluster.options.request_timeout_ms,
            validate_only=validate_only,
        )
        answer = await self._cluster.call(request, CreatePartitionsResponse, repeatable=False)
        self._cluster.metadata.mark_stale(name)
        for each in answer.results:
            check(each.error_code, each.error_message)

    # --- look ---------------------------------------------------------------------------------------------------

    async def names(self) -> list[str]:
        """The names of all topics, sorted."""
        return [topic.name for topic in await self.all()]

    async def all(self) -> list[TopicInfo]:
        """Every topic with its partitions, sorted by name."""
        answer, _ = await self._cluster.refresh(None)
        found = [self._cluster.metadata.fresh(topic.name or "") for topic in answer.topics]
        return sorted((topic for topic in found if topic is not None), key=lambda topic: topic.name)

    async def describe(self, name: str) -> TopicInfo:
        """One topic as it is now."""
        self._cluster.metadata.mark_stale(name)
        return await self._cluster.topic(name)

    async def offsets(
        self, name: str, time: Time = LATEST, partitions: Iterable[int] | None = None, *, read_committed: bool = False
    ) -> dict[int, OffsetAndTime]:
        """The offset at a time, per partition of one topic."""
        if partitions is None:
            partitions = [each.index for each in (await self.describe(name)).partitions]
        wanted = {TopicPartition(name, index): time for index in partitions}
        found = await list_offsets(self._cluster, wanted, read_committed=read_committed)
        return {partition.partition: answer for partition, answer in found.items()}

    async def bounds(self, name: str) -> dict[int, tuple[int, int]]:
        """(first offset, end offset) per partition: what can be read."""
        starts = await self.offsets(name, EARLIEST)
        ends = await self.offsets(name, LATEST)
        return {index: (starts[index].offset, ends[index].offset) for index in sorted(starts)}

    # --- records and producers ----------------------------------------------------------------------------------

    async def delete_records(self, name: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete the records before an offset per partition (ALL_RECORDS: all); returns the new first offsets."""
        result: dict[int, int] = {}

        async def attempt() -> dict[int, int]:
            by_leader: dict[int, dict[int, int]] = {}
            for index, offset in before.items():
                if index not in result:
                    node_id, _ = await self._cluster.leader(TopicPartition(name, index))
                    by_leader.setdefault(node_id, {})[index] = offset
            for node_id, offsets in by_leader.items():
                await self._delete_records_on(node_id, name, offsets, result)
            return result

        return await self._cluster.retry(attempt)

    async def _delete_records_on(
        self, node_id: int, name: str, before: Mapping[int, int], result: dict[int, int]
    ) -> None:
        topic = DeleteRecordsRequest.Topic
        partitions = [topic.Partition(partition_index=index, offset=offset) for index, offset in before.items()]
        request = DeleteRecordsRequest(
            topics=[topic(name=name, partitions=partitions)], timeout_ms=self._cluster.options.request_timeout_ms
        )
        answer = await self._cluster.ask_leader(node_id, [name], request, DeleteRecordsResponse)
        for each in (partition for found in answer.topics for partition in found.partitions):
            if error_code(each.error_code).retriable:
                self._cluster.metadata.mark_stale(name)
            check(each.error_code, _DELETION_REFUSED.get(each.error_code))
            result[each.partition_index] = each.low_watermark

    async def producers(self, partition: TopicPartition) -> list[ActiveProducer]:
        """The idempotent and transactional producers that the partition remembers."""
        wanted = DescribeProducersRequest.TopicRequest(name=partition.topic, partition_indexes=[partition.partition])
        request = DescribeProducersRequest(topics=[wanted])

        async def attempt() -> DescribeProducersResponse:
            return await ask_leader(
                self._cluster,
                partition,
                request,
                DescribeProducersResponse,
                lambda each: each.topics[0].partitions[0].error_code,
            )

        if (await self._cluster.topic(partition.topic)).partition(partition.partition) is None:
            await self._cluster.leader(partition)  # says so
        answer = await self._cluster.retry(attempt, seeking=True)
        found: list[ActiveProducer] = []
        for each in (found for topic in answer.topics for found in topic.partitions):
            check(each.error_code, each.error_message)
            found.extend(
                ActiveProducer(
                    state.producer_id,
                    state.producer_epoch,
                    state.last_sequence,
                    state.last_timestamp,
                    state.coordinator_epoch,
                    state.current_txn_start_offset,
                )
                for state in each.active_producers
            )
        return found


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    kind = CreateTopicsRequest.CreatableTopic
    return kind(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            kind.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in (topic.assignments or {}).items()
        ],
        configs=[kind.CreatableTopicConfig(name=name, value=value) for name, value in (topic.configs or {}).items()],
    )


def _error(code: int, message: str | None) -> ApiError | None:
    return ApiError(error_code(code), message) if code else None


def _value(result: CreatedTopic | ApiError) -> CreatedTopic:
    if isinstance(result, ApiError):
        raise result
    return result


__all__ = ["ALL_RECORDS", "BROKER_DEFAULT", "ActiveProducer", "CreatedTopic", "NewTopic", "PartitionInfo", "Topics"]
