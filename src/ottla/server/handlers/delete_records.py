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
    return DeleteRecordsResponse(
        topics=[
            TopicAnswer(
                name=topic.name,
                partitions=[
                    _delete(TopicPartition(topic.name, each.partition_index), each.offset, context)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _delete(name: TopicPartition, offset: int, context: Context) -> PartitionAnswer:
    try:
        if is_internal(name.topic):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = context.partitions.find(*name)
        # On disk before anyone can see it: a log start must not go back after a crash.
        context.partitions.remember_log_start(name, partition.deletion_point(offset))
        low_watermark = partition.delete_records(offset)
    except ApiError as error:
        return _refused(name, error.code)
    except StorageError as error:
        context.partitions.storage_failed(partition, error)
        return _refused(name, ErrorCode.KAFKA_STORAGE_ERROR)
    context.services.waiters.notify(partition)
    return PartitionAnswer(partition_index=name.partition, low_watermark=low_watermark, error_code=ErrorCode.NONE)


def _refused(name: TopicPartition, code: ErrorCode) -> PartitionAnswer:
    return PartitionAnswer(partition_index=name.partition, low_watermark=_NO_LOW_WATERMARK, error_code=code)
