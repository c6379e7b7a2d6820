"""Offsets by time: the first and end offsets of partitions, and the offset of a timestamp (ListOffsets).

Rules:
- `Time` is a timestamp in milliseconds or one of the special values below; the leader of each partition answers.
- A time after the last record means the end of the partition.
- Each partition has its own outcome (`…_each`), and leaders are asked in parallel. The plain calls raise if one
  partition failed.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.client.checks import checked_number, checked_partitions, kind_of
from ottla.client.cluster import Cluster
from ottla.client.errors import OffsetOutOfRange
from ottla.client.leaders import ask_leaders, ask_one
from ottla.client.outcomes import Outcomes
from ottla.model import limits
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest, ListOffsetsResponse

NOT_FOUND = -1


class Time(NamedTuple):
    """A point in a partition by time; negative numbers are Kafka's special values."""

    timestamp_ms: int


LATEST = Time(-1)
EARLIEST = Time(-2)
MAX_TIMESTAMP = Time(-3)
EARLIEST_LOCAL = Time(-4)
LATEST_TIERED = Time(-5)
EARLIEST_PENDING_UPLOAD = Time(-6)


class OffsetAndTime(NamedTuple):
    """The answer for one partition; offset -1 if there is no record so late."""

    offset: int
    timestamp: int
    leader_epoch: int


class PartitionBounds(NamedTuple):
    """The first offset of a partition, and the offset behind its last record."""

    start: int
    end: int


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, Time], *, read_committed: bool = False
) -> dict[TopicPartition, OffsetAndTime]:
    """Return the offset at a time, for each partition. Raises if one of them fails:
    `list_offsets_each` returns which.
    """
    return (await list_offsets_each(cluster, wanted, read_committed=read_committed)).all()


async def list_offsets_each(
    cluster: Cluster, wanted: Mapping[TopicPartition, Time], *, read_committed: bool = False
) -> Outcomes[TopicPartition, OffsetAndTime]:
    """Ask the leaders for the offset at a time, for each partition; transient errors are retried."""
    checked_partitions(wanted)
    for time in wanted.values():
        if not isinstance(time, Time):
            raise TypeError(f"a Time (in milliseconds) is needed, not {kind_of(time)}")
        checked_number(time.timestamp_ms, "a time", at_least=-limits.INT64_MAX, at_most=limits.INT64_MAX)

    async def ask(node_id: int, leads: Mapping[TopicPartition, LeaderEpoch]) -> Outcomes[TopicPartition, OffsetAndTime]:
        times = {partition: (wanted[partition], epoch) for partition, epoch in leads.items()}
        return await ask_leader(cluster, node_id, times, read_committed=read_committed)

    return await ask_leaders(cluster, wanted, ask)


async def ask_leader(
    cluster: Cluster, node_id: int, wanted: Mapping[TopicPartition, tuple[Time, LeaderEpoch]], *, read_committed: bool
) -> Outcomes[TopicPartition, OffsetAndTime]:
    """Send one ListOffsets to the leader of all these partitions; `wanted` has the time and the
    leader epoch of each.
    """
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
    return await ask_one(cluster, node_id, wanted, request, _told)


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
    """Turn every `Time` into an offset; plain offsets stay as they are. Raises if one of them cannot be found."""
    return (await resolve_each(cluster, wanted, read_committed=read_committed)).all()


async def resolve_each(
    cluster: Cluster,
    wanted: Iterable[tuple[TopicPartition, int | Time]],
    *,
    read_committed: bool = False,
) -> Outcomes[TopicPartition, int]:
    """Turn every `Time` into an offset, with an outcome per partition."""
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
    """Return the first and end offsets of partitions, with an outcome per partition; both are requested in parallel."""
    partitions = checked_partitions(partitions)
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
    """Return the error for an offset that is not in the log, with the offsets between which the log is."""
    bounds = (await bounds_each(cluster, [partition])).all()[partition]
    return OffsetOutOfRange(partition, offset, bounds.start, bounds.end)
