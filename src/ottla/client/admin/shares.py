"""Share groups' places: where each partition's first unfinished record is, how much is left, and moving it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.cluster import Cluster
from ottla.client.coordinator import CoordinatorKind, call_once
from ottla.client.errors import check
from ottla.model.ids import TopicPartition
from ottla.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from ottla.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)


class SharePlace(NamedTuple):
    """`start` is the first offset that is not finished with (None: nothing read yet); `lag` as the broker counts it."""

    partition: TopicPartition
    start: int | None
    lag: int | None


class Shares:
    """What can be done with the places of share groups."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def places(self, group_id: str) -> list[SharePlace]:
        """Of every partition that the group has begun, sorted."""
        group = DescribeShareGroupOffsetsRequest.Group(group_id=group_id, topics=None)
        answer = await call_once(
            self._cluster,
            group_id,
            CoordinatorKind.GROUP,
            DescribeShareGroupOffsetsRequest(groups=[group]),
            DescribeShareGroupOffsetsResponse,
            lambda each: each.groups[0].error_code,
        )
        (found,) = answer.groups
        check(found.error_code, found.error_message)
        places = []
        for topic in found.topics:
            for each in topic.partitions:
                check(each.error_code, each.error_message)
                places.append(
                    SharePlace(
                        TopicPartition(topic.topic_name, each.partition_index),
                        each.start_offset if each.start_offset >= 0 else None,
                        each.lag if each.lag >= 0 else None,
                    )
                )
        return sorted(places)

    async def move(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Let a group without members go on from these offsets."""
        kind = AlterShareGroupOffsetsRequest.Topic
        topics: dict[str, AlterShareGroupOffsetsRequest.Topic] = {}
        for (name, index), offset in offsets.items():
            topic = topics.setdefault(name, kind(topic_name=name, partitions=[]))
            topic.partitions.append(kind.Partition(partition_index=index, start_offset=offset))
        answer = await call_once(
            self._cluster,
            group_id,
            CoordinatorKind.GROUP,
            AlterShareGroupOffsetsRequest(group_id=group_id, topics=list(topics.values())),
            AlterShareGroupOffsetsResponse,
            lambda each: each.error_code,
        )
        check(answer.error_code, answer.error_message)
        for each in (partition for found in answer.responses for partition in found.partitions):
            check(each.error_code, each.error_message)

    async def forget(self, group_id: str, topics: Iterable[str]) -> None:
        """Drop all that a group without members knows of these topics."""
        kind = DeleteShareGroupOffsetsRequest.Topic
        answer = await call_once(
            self._cluster,
            group_id,
            CoordinatorKind.GROUP,
            DeleteShareGroupOffsetsRequest(group_id=group_id, topics=[kind(topic_name=each) for each in topics]),
            DeleteShareGroupOffsetsResponse,
            lambda each: each.error_code,
        )
        check(answer.error_code, answer.error_message)
        for found in answer.responses:
            check(found.error_code, found.error_message)
