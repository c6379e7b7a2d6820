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
    answers = {
        TopicPartition(topic.name, each.partition_index): _delete(
            TopicPartition(topic.name, each.partition_index), each.offset, context
        )
        for topic in request.topics
        for each in topic.partitions
    }
    done = [name for name, answer in answers.items() if not answer.error_code]
    try:
        context.partitions.checkpoints.remember_log_starts(done)
    except ApiError as error:
        for name in done:
            answers[name] = _refusal(name, error.code)
    topics: dict[str, list[PartitionAnswer]] = {topic.name: [] for topic in request.topics}
    for name, answer in answers.items():
        topics[name.topic].append(answer)
    return DeleteRecordsResponse(
        topics=[TopicAnswer(name=name, partitions=partitions) for name, partitions in topics.items()]
    )


def _delete(name: TopicPartition, offset: int, context: Context) -> PartitionAnswer:
    try:
        if is_internal(name.topic):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = context.partitions.find(*name)
        if not partition.log.config.delete:
            raise ApiError(ErrorCode.POLICY_VIOLATION)
        low_watermark = partition.delete_records(offset)
    except ApiError as error:
        return _refusal(name, error.code)
    except StorageError as error:
        context.partitions.storage_failed(partition, error)
        return _refusal(name, ErrorCode.KAFKA_STORAGE_ERROR)
    context.services.waiters.notify(partition)
    return PartitionAnswer(partition_index=name.partition, low_watermark=low_watermark, error_code=ErrorCode.NONE)


def _refusal(name: TopicPartition, code: ErrorCode) -> PartitionAnswer:
    return PartitionAnswer(partition_index=name.partition, low_watermark=_NO_LOW_WATERMARK, error_code=code)
