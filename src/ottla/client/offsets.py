"""Offsets by time: where a partition begins and ends, and what was written when (ListOffsets).

Rules:
- `Time` is a timestamp in milliseconds or one of the named places below; the broker of each partition answers.
- A time after the last record means the end of the partition.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import OffsetOutOfRange, check, error_code
from ottla.model.ids import TopicPartition
from ottla.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

NOT_FOUND = -1


class Time(NamedTuple):
    """A point in a partition by time; negative numbers are Kafka's names for special places."""

    timestamp_ms: int


LATEST = Time(-1)
EARLIEST = Time(-2)
MAX_TIMESTAMP = Time(-3)
EARLIEST_LOCAL = Time(-4)
LATEST_TIERED = Time(-5)
EARLIEST_PENDING_UPLOAD = Time(-6)


class OffsetAndTime(NamedTuple):
    """The answer for one partition; offset -1 when nothing is that late."""

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, Time], *, read_committed: bool = False
) -> dict[TopicPartition, OffsetAndTime]:
    """Ask the leaders for the offset at a time, for each partition."""
    found: dict[TopicPartition, OffsetAndTime] = {}

    async def attempt() -> dict[TopicPartition, OffsetAndTime]:
        by_leader: dict[int, dict[TopicPartition, tuple[Time, int]]] = {}
        for partition, time in wanted.items():
            if partition not in found:
                node_id, epoch = await cluster.leader(partition)
                by_leader.setdefault(node_id, {})[partition] = (time, epoch)
        for node_id, times in by_leader.items():
            await _ask(cluster, node_id, times, found, read_committed=read_committed)
        return found

    return await cluster.retry(attempt, seeking=True)


async def _ask(
    cluster: Cluster,
    node_id: int,
    wanted: Mapping[TopicPartition, tuple[Time, int]],
    found: dict[TopicPartition, OffsetAndTime],
    *,
    read_committed: bool,
) -> None:
    topics: dict[str, ListOffsetsRequest.Topic] = {}
    for (name, index), (time, epoch) in wanted.items():
        topic = topics.setdefault(name, ListOffsetsRequest.Topic(name=name, partitions=[]))
        topic.partitions.append(
            ListOffsetsRequest.Topic.Partition(
                partition_index=index, current_leader_epoch=epoch, timestamp=time.timestamp_ms
            )
        )
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=1 if read_committed else 0,
        topics=list(topics.values()),
        timeout_ms=cluster.options.request_timeout_ms,
    )
    answer = await cluster.ask_leader(node_id, topics, request, ListOffsetsResponse)
    for result in answer.topics:
        for each in result.partitions:
            if error_code(each.error_code).retriable:
                cluster.metadata.forget(result.name)
            check(each.error_code)
            partition = TopicPartition(result.name, each.partition_index)
            found[partition] = OffsetAndTime(each.offset, each.timestamp, each.leader_epoch)


async def resolve(
    cluster: Cluster,
    wanted: Iterable[tuple[TopicPartition, int | Time]],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """Turn every `Time` into an offset; plain offsets stay what they are."""
    wanted = list(wanted)
    times = {partition: place for partition, place in wanted if isinstance(place, Time)}
    found = await list_offsets(cluster, times, read_committed=read_committed) if times else {}
    late = {partition: LATEST for partition, answer in found.items() if answer.offset == NOT_FOUND}
    if late:
        found.update(await list_offsets(cluster, late, read_committed=read_committed))
    return {partition: found[partition].offset if isinstance(place, Time) else place for partition, place in wanted}


async def out_of_range(cluster: Cluster, partition: TopicPartition, offset: int) -> OffsetOutOfRange:
    """The error for an offset that the log does not have, with what it has."""
    start = await list_offsets(cluster, {partition: EARLIEST})
    end = await list_offsets(cluster, {partition: LATEST})
    return OffsetOutOfRange(partition, offset, start[partition].offset, end[partition].offset)
