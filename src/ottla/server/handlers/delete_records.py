"""DeleteRecords (key 21): everything below an offset (-1: below the high watermark) can be read no more."""

from __future__ import annotations

from ottla.log.disk import StorageError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.names import is_internal
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

TopicAnswer = DeleteRecordsResponse.TopicResult
PartitionAnswer = TopicAnswer.PartitionResult

_NO_LOW_WATERMARK = -1


@handles(DeleteRecordsRequest)
def delete_records(request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    # The last word counts for a partition that is named twice.
    asked = {
        TopicPartition(topic.name, each.partition_index): each.offset
        for topic in request.topics
        for each in topic.partitions
    }
    answers: dict[TopicPartition, PartitionAnswer] = {}
    starts: dict[TopicPartition, int] = {}
    for name, offset in asked.items():
        try:
            starts[name] = _deletion_point(name, offset, context)
        except ApiError as error:
            answers[name] = _refusal(name, error.code)
    try:
        # On disk before anyone can see it: a log start must not go back after a crash.
        context.partitions.checkpoints.remember_log_starts(starts)
        answers |= {name: _delete(name, start, context) for name, start in starts.items()}
    except ApiError as error:
        answers |= {name: _refusal(name, error.code) for name in starts}
    topics: dict[str, list[PartitionAnswer]] = {topic.name: [] for topic in request.topics}
    for name in asked:
        topics[name.topic].append(answers[name])
    return DeleteRecordsResponse(
        topics=[TopicAnswer(name=name, partitions=partitions) for name, partitions in topics.items()]
    )


def _deletion_point(name: TopicPartition, offset: int, context: Context) -> int:
    if is_internal(name.topic):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = context.partitions.find(*name)
    if not partition.log.config.delete:
        raise ApiError(ErrorCode.POLICY_VIOLATION)
    return partition.deletion_point(offset)


def _delete(name: TopicPartition, start: int, context: Context) -> PartitionAnswer:
    partition = context.partitions.find(*name)
    try:
        low_watermark = partition.delete_records(start)
    except StorageError as error:
        context.partitions.storage_failed(partition, error)
        return _refusal(name, ErrorCode.KAFKA_STORAGE_ERROR)
    context.services.waiters.notify(partition)
    return PartitionAnswer(partition_index=name.partition, low_watermark=low_watermark, error_code=ErrorCode.NONE)


def _refusal(name: TopicPartition, code: ErrorCode) -> PartitionAnswer:
    return PartitionAnswer(partition_index=name.partition, low_watermark=_NO_LOW_WATERMARK, error_code=code)
