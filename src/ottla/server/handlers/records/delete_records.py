"""DeleteRecords (key 21): move the log start, so that records below an offset (-1: the high watermark) are deleted.

It is carried out in the order of the connection, and even if the client has disconnected by then, because memory must
agree with the checkpoint on disk. The answer waits until all followers that are alive have done the same.
"""

from __future__ import annotations

from ottla.log.files.disk import StorageError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.names import is_internal
from ottla.replica.partition import Partition
from ottla.security.acls import AclOperation
from ottla.server.api.changes.names import topics_named
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, on_topic
from ottla.server.api.portions import Portions
from ottla.server.api.turns import keep_turn
from ottla.server.loop.later import Answer, Later
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

TopicAnswer = DeleteRecordsResponse.TopicResult
PartitionAnswer = TopicAnswer.PartitionResult

_NO_LOW_WATERMARK = -1


@handles(
    DeleteRecordsRequest,
    needs=Needs(
        items=CheckedItems(
            on_topic(AclOperation.DELETE),
            "topics.partitions",
            "topics.partitions",
            refused=(("low_watermark", _NO_LOW_WATERMARK),),
        ),
        changes=topics_named,
    ),
    portions=Portions("topics.partitions", "topics.partitions", limits.PARTITIONS_OPENED_PER_SLICE),
)
def delete_records(request: DeleteRecordsRequest, context: Context) -> Answer[DeleteRecordsResponse]:
    # If a partition is named twice, the last entry counts.
    asked = {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in request.topics
        for each in topic.partitions
    }
    answers: dict[TopicPartition, PartitionAnswer] = {}
    starts: dict[Partition, int] = {}
    for name, offset in asked.items():
        try:
            if is_internal(name.topic):
                raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
            partition = context.storage.partitions.find(*name)
            starts[partition] = _deletion_point(partition, offset)
        except ApiError as error:
            answers[name] = _refusal(name, error.code)
    if not starts:
        return _respond(request, answers)

    def deleted(told: dict[TopicPartition, PartitionAnswer]) -> Answer[DeleteRecordsResponse]:
        answers.update(told)
        lagging = {
            partition: start
            for partition, start in starts.items()
            if not told[partition.topic_partition].error_code and partition.low_watermark < start
        }
        return _when_done(request, answers, lagging, context) if lagging else _respond(request, answers)

    return keep_turn(context, context.runtime.tasks.later(_delete_all(starts, context)), deleted)


async def _delete_all(starts: dict[Partition, int], context: Context) -> dict[TopicPartition, PartitionAnswer]:
    try:
        # Checkpointed before it becomes visible: a log start must not go back after a crash.
        await context.storage.checkpoints.remember_log_starts(starts)
    except ApiError as error:
        return {partition.topic_partition: _refusal(partition.topic_partition, error.code) for partition in starts}
    return {partition.topic_partition: _delete(partition, start, context) for partition, start in starts.items()}


def _respond(request: DeleteRecordsRequest, answers: dict[TopicPartition, PartitionAnswer]) -> DeleteRecordsResponse:
    topics: dict[str, dict[int, PartitionAnswer]] = {topic.name: {} for topic in request.topics}
    for topic in request.topics:
        for each in topic.partitions:
            name = TopicPartition(topic.name, each.partition_index)
            topics[topic.name][each.partition_index] = answers[name]
    return DeleteRecordsResponse(
        topics=[TopicAnswer(name=name, partitions=list(parts.values())) for name, parts in topics.items()]
    )


def _when_done(
    request: DeleteRecordsRequest,
    answers: dict[TopicPartition, PartitionAnswer],
    lagging: dict[Partition, int],
    context: Context,
) -> Later[DeleteRecordsResponse]:
    later: Later[DeleteRecordsResponse] = Later()

    def settle(changed: object) -> bool:
        for partition, start in tuple(lagging.items()):
            name = partition.topic_partition
            if not context.storage.partitions.holds(partition) or not partition.is_leader:
                answers[name] = _refusal(name, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.low_watermark >= start:
                answers[name].low_watermark = partition.low_watermark
            elif changed is None:
                answers[name] = _refusal(name, ErrorCode.REQUEST_TIMED_OUT)
            else:
                continue
            del lagging[partition]
        if lagging:
            return False
        later.set(_respond(request, answers))
        return True

    context.storage.waiters.watch(later, list(lagging), settle, request.timeout_ms)
    return later


def _deletion_point(partition: Partition, offset: int) -> int:
    if not partition.log.config.delete:
        raise ApiError(ErrorCode.POLICY_VIOLATION)
    return partition.deletion_point(offset)


def _delete(partition: Partition, start: int, context: Context) -> PartitionAnswer:
    name = partition.topic_partition
    if not context.storage.partitions.holds(partition):
        # The partition was deleted meanwhile; a new one of the same name is not affected.
        return _refusal(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        low_watermark = partition.delete_records(start)
    except ApiError as error:
        return _refusal(name, error.code)  # another node is the leader by now
    except StorageError as error:
        context.storage.partitions.storage_failed(partition, error)
        return _refusal(name, ErrorCode.KAFKA_STORAGE_ERROR)
    context.storage.waiters.notify(partition)
    return PartitionAnswer(partition_index=name.partition, low_watermark=low_watermark, error_code=ErrorCode.NONE)


def _refusal(name: TopicPartition, code: ErrorCode) -> PartitionAnswer:
    return PartitionAnswer(partition_index=name.partition, low_watermark=_NO_LOW_WATERMARK, error_code=code)
