"""The segments of partitions, as their leaders have them on disk. Only Ottla's brokers tell them (ADR 0052)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.admin.asking import ask_leaders
from ottla.client.cluster import Cluster
from ottla.client.errors import UnsupportedApi, check
from ottla.client.outcomes import Outcomes, told
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.wire.messages.records.ottla_describe_segments import (
    OttlaDescribeSegmentsRequest,
    OttlaDescribeSegmentsResponse,
)

_NEEDS_OTTLA = "segments are told by Ottla only: this broker tells the sizes of partitions"


class LogSegment(NamedTuple):
    """One segment: the bytes of its records and of its indexes, and the largest timestamp (-1: none). The active
    segment is the one that grows.
    """

    base_offset: int
    size_bytes: int
    offset_index_bytes: int
    time_index_bytes: int
    transaction_index_bytes: int
    largest_timestamp: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class PartitionSegments:
    """The segments of one partition, the oldest first. `segment_count` counts all; the newest of them are here."""

    log_start_offset: int
    high_watermark: int
    end_offset: int
    segment_count: int
    segments: tuple[LogSegment, ...]


async def described_segments(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> Outcomes[TopicPartition, PartitionSegments]:
    """Ask the leaders; UnsupportedApi is the outcome of the partitions of leaders that are not Ottla's."""

    async def ask(node_id: int, led: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, PartitionSegments]:
        topics: dict[str, list[int]] = {}
        for name, index in led:
            topics.setdefault(name, []).append(index)
        outcomes: Outcomes[TopicPartition, PartitionSegments] = Outcomes()
        for name, indexes in topics.items():
            for first in range(0, len(indexes), limits.SEGMENTS_PARTITIONS_MAX):
                some = indexes[first : first + limits.SEGMENTS_PARTITIONS_MAX]
                outcomes.add(await _ask(cluster, node_id, name, some))
        return outcomes

    return await ask_leaders(cluster, partitions, ask)


async def _ask(
    cluster: Cluster, node_id: int, topic: str, indexes: Sequence[int]
) -> Outcomes[TopicPartition, PartitionSegments]:
    asked = [TopicPartition(topic, index) for index in indexes]
    request = OttlaDescribeSegmentsRequest(topic=topic, partition_indexes=[*indexes])
    try:
        answer = await cluster.ask_leader(node_id, [topic], request)
        check(answer.error_code, answer.error_message)
    except UnsupportedApi:
        return Outcomes(failed=dict.fromkeys(asked, UnsupportedApi(_NEEDS_OTTLA)))
    except ApiError as error:
        return Outcomes(failed=dict.fromkeys(asked, error))
    return told(
        asked,
        [
            (TopicPartition(topic, each.partition_index), _described(each), each.error_code, each.error_message)
            for each in answer.partitions
        ],
    )


def _described(partition: OttlaDescribeSegmentsResponse.Partition) -> PartitionSegments:
    segments = [
        LogSegment(
            each.base_offset,
            each.size_bytes,
            each.offset_index_bytes,
            each.time_index_bytes,
            each.transaction_index_bytes,
            each.largest_timestamp,
            each.is_active,
        )
        for each in partition.segments
    ]
    return PartitionSegments(
        partition.log_start_offset,
        partition.high_watermark,
        partition.end_offset,
        partition.segment_count,
        tuple(segments),
    )
