"""OttlaDescribeSegments (key 30001): the segments of partitions on this broker, as leader or follower. ApiVersions
tells only our own clients of it (ADR 0052).

What is told is in memory: sizes, counts of index entries, timestamps. No file is read. Few partitions are told at once,
and the newest segments of each.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice

from ottla.log.files.index import OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES
from ottla.log.files.segment import Segment
from ottla.log.files.txn_index import ENTRY_BYTES
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import check_topic_name
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_topic
from ottla.server.loop.later import Answer
from ottla.wire.messages.records.ottla_describe_segments import (
    OttlaDescribeSegmentsRequest,
    OttlaDescribeSegmentsResponse,
)

PartitionAnswer = OttlaDescribeSegmentsResponse.Partition


@handles(OttlaDescribeSegmentsRequest, needs=Needs((on_topic(AclOperation.DESCRIBE, "topic"),)))
def ottla_describe_segments(
    request: OttlaDescribeSegmentsRequest, context: Context
) -> Answer[OttlaDescribeSegmentsResponse]:
    if len(request.partition_indexes) > limits.SEGMENTS_PARTITIONS_MAX:
        text = f"The segments of at most {limits.SEGMENTS_PARTITIONS_MAX} partitions are told at once."
        return OttlaDescribeSegmentsResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=text, partitions=[])
    return context.runtime.slices.answer(_response(request, context))


def _response(
    request: OttlaDescribeSegmentsRequest, context: Context
) -> Generator[None, None, OttlaDescribeSegmentsResponse]:
    partitions = []
    for number, index in enumerate(request.partition_indexes, 1):
        partitions.append(_described(request.topic, index, context))
        if number % limits.PARTITIONS_OPENED_PER_SLICE == 0:
            yield
    return OttlaDescribeSegmentsResponse(error_code=ErrorCode.NONE, partitions=partitions)


def _described(topic: str, index: int, context: Context) -> PartitionAnswer:
    try:
        check_topic_name(topic)
        partition = context.storage.partitions.find(topic, index)
    except ApiError as error:
        return PartitionAnswer(partition_index=index, error_code=error.code, error_message=error.text, segments=[])
    log = partition.log
    count = len(log.segments)
    return PartitionAnswer(
        partition_index=index,
        error_code=ErrorCode.NONE,
        is_leader=partition.is_leader,
        log_start_offset=log.log_start_offset,
        high_watermark=partition.high_watermark,
        end_offset=log.next_offset,
        segment_count=count,
        segments=[
            _segment(each, is_active=each is log.active)
            for each in islice(log.segments, max(count - limits.SEGMENTS_DESCRIBED_MAX, 0), None)
        ],
    )


def _segment(segment: Segment, *, is_active: bool) -> PartitionAnswer.Segment:
    return PartitionAnswer.Segment(
        base_offset=segment.base_offset,
        size_bytes=segment.size_bytes,
        offset_index_bytes=segment.offsets.count * OFFSET_ENTRY_BYTES,
        time_index_bytes=segment.times.count * TIME_ENTRY_BYTES,
        transaction_index_bytes=segment.aborted.count * ENTRY_BYTES,
        largest_timestamp=segment.max_timestamp,
        is_active=is_active,
    )
