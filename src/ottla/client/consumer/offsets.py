"""Offsets by time: where a partition begins and ends, and what was written when (ListOffsets).

Rules:
- `Time` is a timestamp in milliseconds or one of the named places below; the broker of each partition answers.
- A time after the last record means the end of the partition.
- Each partition has its own outcome (`…_each`), and leaders are asked at the same time. The plain calls raise if one of
  them failed.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.errors import OffsetOutOfRange
from ottla.client.leaders import ask_leaders, ask_one
from ottla.client.outcomes import Outcomes
from ottla.model.ids import TopicPartition
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

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


class PartitionBounds(NamedTuple):
    """Where a partition begins and ends: the first offset, and the one behind the last."""

    start: int
    end: int


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, Time], *, read_committed: bool = False
) -> dict[TopicPartition, OffsetAndTime]:
    """The offset at a time, for each partition. Raises if one of them has none: `list_offsets_each` tells which."""
    return (await list_offsets_each(cluster, wanted, read_committed=read_committed)).all()


async def list_offsets_each(
    cluster: Cluster, wanted: Mapping[TopicPartition, Time], *, read_committed: bool = False
) -> Outcomes[TopicPartition, OffsetAndTime]:
    """Ask the leaders for the offset at a time, for each partition; what passes is waited out."""

    async def ask(node_id: int, leads: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, OffsetAndTime]:
        times = {partition: (wanted[partition], epoch) for partition, epoch in leads.items()}
        return await ask_leader(cluster, node_id, times, read_committed=read_committed)

    return await ask_leaders(cluster, wanted, ask)


async def ask_leader(
    cluster: Cluster, node_id: int, wanted: Mapping[TopicPartition, tuple[Time, int]], *, read_committed: bool
) -> Outcomes[TopicPartition, OffsetAndTime]:
    """One ListOffsets to the leader of all these partitions, by the time and the epoch in which it leads."""
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
    return await ask_one(cluster, node_id, wanted, request, ListOffsetsResponse, _told)


def _told(answer: ListOffsetsResponse) -> Iterator[tuple[TopicPartition, OffsetAndTime, int]]:
    for topic in answer.topics:
        for each in topic.partitions:
            found = OffsetAndTime(each.offset, each.timestamp, each.leader_epoch)
            yield TopicPartition(topic.name, each.partition_index), found, each.error_code


async def resolve(
    cluster: Cluster,
    wanted: Iterable[tuple[TopicPartition, int | Time]],
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """Turn every `Time` into an offset; plain offsets stay what they are. Raises if one of them cannot be found."""
    return (await resolve_each(cluster, wanted, read_committed=read_committed)).all()


async def resolve_each(
    cluster: Cluster,
    wanted: Iterable[tuple[TopicPartition, int | Time]],
    *,
    read_committed: bool = False,
) -> Outcomes[TopicPartition, int]:
    """The same, with an outcome per partition."""
    wanted = list(wanted)
    times = {partition: place for partition, place in wanted if isinstance(place, Time)}
    asked = await list_offsets_each(cluster, times, read_committed=read_committed)
    late = {partition: LATEST for partition, answer in asked.found.items() if answer.offset == NOT_FOUND}
    if late:
        asked.add(await list_offsets_each(cluster, late, read_committed=read_committed))
    found = {
        partition: asked.found[partition].offset if isinstance(place, Time) else place
        for partition, place in wanted
        if partition not in asked.failed
    }
    return Outcomes(found, asked.failed)


async def bounds_each(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> Outcomes[TopicPartition, PartitionBounds]:
    """Where partitions begin and end, both asked for at the same time."""
    partitions = list(partitions)
    starts, ends = await asyncio.gather(
        list_offsets_each(cluster, dict.fromkeys(partitions, EARLIEST)),
        list_offsets_each(cluster, dict.fromkeys(partitions, LATEST)),
    )
    failed = starts.failed | ends.failed
    found = {
        each: PartitionBounds(starts.found[each].offset, ends.found[each].offset)
        for each in partitions
        if each not in failed
    }
    return Outcomes(found, failed)


async def out_of_range(cluster: Cluster, partition: TopicPartition, offset: int) -> OffsetOutOfRange:
    """The error for an offset that the log does not have, with what it has."""
    bounds = (await bounds_each(cluster, [partition])).all()[partition]
    return OffsetOutOfRange(partition, offset, bounds.start, bounds.end)
