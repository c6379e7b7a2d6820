"""DescribeLogDirs (key 35): the data directories, their replicas, and the free space.

v3 an error for the request as a whole   v4 total and usable bytes   v5 cordoned directories

Ottla's own client also asks for the number of bytes sent to consumers, and for the rates of a tenant, for which Kafka's
protocol has no fields.
"""

from __future__ import annotations

from collections.abc import Generator

from ottla.log.files.disk import Disk
from ottla.log.files.names import LOG
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.loop.later import Answer as Reply
from ottla.server.storage.directories import DataDirectory, disk_room
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

Answer = DescribeLogDirsResponse.Result
PartitionAnswer = Answer.Topic.Partition


@handles(DescribeLogDirsRequest, needs=Needs((on_cluster(AclOperation.DESCRIBE),)))
def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> Reply[DescribeLogDirsResponse]:
    return context.runtime.slices.answer(_describing(request, context))


def _describing(request: DescribeLogDirsRequest, context: Context) -> Generator[None, None, DescribeLogDirsResponse]:
    """Describe all directories; yield after each slice of partitions."""
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}
    results: list[Answer] = []
    for directory in context.storage.partitions.directories:
        results += [(yield from _describe(directory, wanted, context, with_sent_bytes=request.with_sent_bytes))]
    answer = DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=results)
    if request.rates_of_tenant is not None:
        rates = context.tenants.traffic.rates_of(request.rates_of_tenant, context.runtime.steady_ms())
        answer.produced_byte_rate, answer.consumed_byte_rate = rates
    return answer


def _describe(
    directory: DataDirectory, wanted: set[TopicPartition] | None, context: Context, *, with_sent_bytes: bool
) -> Generator[None, None, Answer]:
    if directory.failure is not None:
        return Answer(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=[])
    topics: dict[str, list[PartitionAnswer]] = {}
    names = [name for name in directory.partitions if wanted is None or name in wanted]
    for number, name in enumerate(names, start=1):
        topics.setdefault(name.topic, []).append(_partition(directory, name, context, with_sent_bytes=with_sent_bytes))
        if number % limits.ITEMS_PER_SLICE == 0:
            yield
    replication = context.replication
    moves = None if replication is None else replication.moves
    for move in () if moves is None else moves.futures_in(directory):
        if wanted is None or move.name in wanted:
            future = PartitionAnswer(
                partition_index=move.name.partition,
                partition_size=move.copy.size_bytes,
                offset_lag=move.partition.log.next_offset - move.copy.next_offset,
                is_future_key=True,
            )
            if with_sent_bytes:
                future.sent_bytes = 0
            topics.setdefault(move.name.topic, []).append(future)
    total_bytes, usable_bytes = disk_room(directory.path)
    return Answer(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=[Answer.Topic(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=directory.id in context.storage.partitions.cordoned(),
    )


def _partition(
    directory: DataDirectory, name: TopicPartition, context: Context, *, with_sent_bytes: bool
) -> PartitionAnswer:
    opened = context.storage.partitions.if_opened(*name)
    answer = PartitionAnswer(
        partition_index=name.partition,
        partition_size=_size_bytes(directory.disk, name) if opened is None else opened.log.size_bytes,
        offset_lag=0,  # a high watermark is never beyond the end of its log
        is_future_key=False,
    )
    if with_sent_bytes:  # bytes sent to consumers; none for a partition that is not open
        answer.sent_bytes = 0 if opened is None else opened.sent_bytes
    return answer


def _size_bytes(disk: Disk, name: TopicPartition) -> int:
    """Return the size of a partition that is not open, without opening it, because there may be thousands."""
    segments = [file for file in disk.list(str(name)) if file.endswith(LOG)]
    return sum(disk.open(f"{name}/{file}").size for file in segments)
