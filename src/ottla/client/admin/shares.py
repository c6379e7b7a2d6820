"""Offsets of share groups: the first unfinished record of each partition, the lag; changing and deleting them."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.admin.asking import ask_coordinator
from ottla.client.checks import checked_names, checked_offset, checked_partition
from ottla.client.cluster import Cluster
from ottla.client.coordinator import CoordinatorKind, call_once
from ottla.client.errors import check
from ottla.client.outcomes import Outcomes, told
from ottla.model.ids import TopicPartition
from ottla.wire.messages.shares.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from ottla.wire.messages.shares.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from ottla.wire.messages.shares.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)


class SharePlace(NamedTuple):
    """The share-partition start offset: `start` is the first unfinished offset (None: nothing read yet), `lag` the
    broker's.
    """

    partition: TopicPartition
    start: int | None
    lag: int | None


class ShareAdmin:
    """Operations on the offsets of share groups."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def places(self, group_id: str) -> list[SharePlace]:
        """Return the start offset and lag of every partition that the group has begun to read, sorted."""
        return list((await self.places_each(group_id)).all().values())

    async def places_each(self, group_id: str) -> Outcomes[TopicPartition, SharePlace]:
        """Return the start offset and lag, with an outcome per partition."""
        group = DescribeShareGroupOffsetsRequest.Group(group_id=group_id, topics=None)
        answer = await call_once(
            self._cluster,
            group_id,
            CoordinatorKind.GROUP,
            DescribeShareGroupOffsetsRequest(groups=[group]),
            lambda each: each.groups[0].error_code,
        )
        (found,) = answer.groups
        check(found.error_code, found.error_message)
        places = [
            (TopicPartition(topic.topic_name, each.partition_index), each)
            for topic in found.topics
            for each in topic.partitions
        ]
        places.sort(key=lambda place: place[0])
        return told((), [(at, _place(at, each), each.error_code, each.error_message) for at, each in places])

    async def move(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the start offsets of a group without members."""
        (await self.move_each(group_id, offsets)).all()

    async def move_each(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, None]:
        """Set the start offsets of a group without members, with an outcome per partition."""
        kind = AlterShareGroupOffsetsRequest.Topic
        topics: dict[str, AlterShareGroupOffsetsRequest.Topic] = {}
        for partition, offset in offsets.items():
            name, index = checked_partition(partition)
            checked_offset(partition, offset)
            topic = topics.setdefault(name, kind(topic_name=name, partitions=[]))
            topic.partitions.append(kind.Partition(partition_index=index, start_offset=offset))
        return await ask_coordinator(
            self._cluster,
            group_id,
            AlterShareGroupOffsetsRequest(group_id=group_id, topics=list(topics.values())),
            offsets,
            lambda answer: (answer.error_code, answer.error_message),
            lambda answer: [
                (TopicPartition(topic.topic_name, each.partition_index), each.error_code, each.error_message)
                for topic in answer.responses
                for each in topic.partitions
            ],
        )

    async def forget(self, group_id: str, topics: Iterable[str]) -> None:
        """Delete the offsets of these topics from a group without members."""
        (await self.forget_each(group_id, topics)).all()

    async def forget_each(self, group_id: str, topics: Iterable[str]) -> Outcomes[str, None]:
        """Delete the offsets of these topics, with an outcome per topic."""
        topics = checked_names(topics, "topic")
        kind = DeleteShareGroupOffsetsRequest.Topic
        return await ask_coordinator(
            self._cluster,
            group_id,
            DeleteShareGroupOffsetsRequest(group_id=group_id, topics=[kind(topic_name=each) for each in topics]),
            topics,
            lambda answer: (answer.error_code, answer.error_message),
            lambda answer: [(each.topic_name, each.error_code, each.error_message) for each in answer.responses],
        )


def _place(at: TopicPartition, found: DescribeShareGroupOffsetsResponse.Group.Topic.Partition) -> SharePlace:
    return SharePlace(
        at,
        found.start_offset if found.start_offset >= 0 else None,
        found.lag if found.lag >= 0 else None,
    )
