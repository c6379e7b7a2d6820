"""DescribeLogDirs (key 35): the data directories, what lies in them, and how much room is left.

v3 an error for the request as a whole   v4 total and usable bytes   v5 cordoned directories

Our own client asks as well for the bytes that consumers were given: what is read where is in no answer of Kafka's.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.log.disk import Disk
from ottla.log.names import LOG
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.replica.partition import Partition
from ottla.server.context import Context
from ottla.server.directories import DataDirectory
from ottla.server.dispatch import handles
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

if TYPE_CHECKING:
    from ottla.server.replication.log_dirs import Move

Answer = DescribeLogDirsResponse.Result
PartitionAnswer = Answer.Topic.Partition

_UNKNOWN_BYTES = -1


@handles(DescribeLogDirsRequest)
def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    opened = {TopicPartition(partition.topic, partition.index): partition for partition in context.partitions.opened()}
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}
    replication = context.services.replication
    moves = None if replication is None else replication.moves
    closed = context.partitions.cordoned()
    response = DescribeLogDirsResponse(
        error_code=ErrorCode.NONE,
        results=[
            _describe(directory, wanted, opened, [] if moves is None else moves.futures_in(directory), closed)
            for directory in context.partitions.directories
        ],
    )
    if request.with_sent_bytes:
        _count_reads(response, opened)
    return response


def _describe(
    directory: DataDirectory,
    wanted: set[TopicPartition] | None,
    opened: dict[TopicPartition, Partition],
    moves: Sequence[Move],
    closed: Sequence[bytes],
) -> Answer:
    if directory.failure is not None:
        return Answer(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=[])
    topics: dict[str, list[PartitionAnswer]] = {}
    for name in directory.partitions:
        if wanted is None or name in wanted:
            partition = opened.get(name)
            topics.setdefault(name.topic, []).append(
                PartitionAnswer(
                    partition_index=name.partition,
                    partition_size=_size_bytes(directory.disk, name) if partition is None else partition.log.size_bytes,
                    offset_lag=0,  # a high watermark is never beyond the log it is of
                    is_future_key=False,
                )
            )
    for move in moves:
        if wanted is None or move.name in wanted:
            topics.setdefault(move.name.topic, []).append(
                PartitionAnswer(
                    partition_index=move.name.partition,
                    partition_size=move.copy.size_bytes,
                    offset_lag=move.partition.log.next_offset - move.copy.next_offset,
                    is_future_key=True,
                )
            )
    total_bytes, usable_bytes = _room(directory.path)
    return Answer(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=[Answer.Topic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=directory.id in closed,
    )


def _count_reads(response: DescribeLogDirsResponse, opened: dict[TopicPartition, Partition]) -> None:
    """What consumers were given of each; nothing of what nobody has opened."""
    for topic in (topic for result in response.results for topic in result.topics):
        for each in topic.partitions:
            partition = opened.get(TopicPartition(topic.name, each.partition_index))
            each.sent_bytes = 0 if partition is None or each.is_future_key else partition.sent_bytes


def _size_bytes(disk: Disk, name: TopicPartition) -> int:
    """Of a partition that nobody has opened yet; there may be thousands, so this does not open it either."""
    segments = [file for file in disk.list(str(name)) if file.endswith(LOG)]
    return sum(disk.open(f"{name}/{file}").size for file in segments)


def _room(path: str) -> tuple[int, int]:
    try:
        usage = shutil.disk_usage(path)
    except OSError:  # gone, or simulated
        return _UNKNOWN_BYTES, _UNKNOWN_BYTES
    return usage.total, usage.free
