"""A sample: where a group and its partitions are at one moment. Two of them give rates."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ottla.client.admin import Admin
from ottla.client.admin.group_descriptions import GroupMember
from ottla.client.consumer.offsets import LATEST, OffsetAndTime, PartitionBounds
from ottla.client.metadata import NO_LEADER, TopicInfo
from ottla.client.outcomes import Outcomes
from ottla.model.ids import TopicPartition

SHARE = "share"


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment, `at_s` by the event loop's clock. Only partitions that exist and have a leader have bounds."""

    at_s: float
    committed: Mapping[TopicPartition, int]
    bounds: Outcomes[TopicPartition, PartitionBounds]
    stable: Mapping[TopicPartition, int]  # the end for consumers that read committed records
    # Of a share group: what is not finished, as its coordinator counts.
    unfinished: Mapping[TopicPartition, int] = field(default_factory=dict)

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the records that the group has not read; None if it has committed nothing."""
        if partition in self.unfinished:
            return self.unfinished[partition]
        committed, bounds = self.committed.get(partition), self.bounds.found.get(partition)
        return None if committed is None or bounds is None else max(bounds.end - committed, 0)


class Sampler:
    """Samples a group: the partitions that it has committed offsets for, and those of its members."""

    def __init__(self, admin: Admin, group_id: str, kind: str, members: Iterable[GroupMember]) -> None:
        self._admin = admin
        self._group_id = group_id
        self._kind = kind
        self._topics: dict[str, TopicInfo] = {}
        self.follow(members)

    def follow(self, members: Iterable[GroupMember]) -> None:
        """Follow the partitions of these members from now on."""
        self._owned = frozenset(each for member in members for each in member.partitions)

    async def take(self) -> Sample:
        committed, unfinished = await self._places()
        self._topics = {each.name: each for each in await self._admin.topics.all()}
        wanted = sorted(each for each in {*committed, *self._owned} if self.exists(each) and self.has_leader(each))
        bounds, stable = await asyncio.gather(
            self._admin.topics.bounds_each(wanted),
            self._admin.topics.offsets_each(dict.fromkeys(wanted, LATEST), read_committed=True),
        )
        now_s = asyncio.get_running_loop().time()
        return Sample(now_s, committed, bounds, _ends(stable), unfinished)

    async def _places(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        if self._kind == SHARE:
            found = await self._admin.shares.places(self._group_id)
            starts = {each.partition: each.start for each in found if each.start is not None}
            return starts, {each.partition: each.lag for each in found if each.lag is not None and each.lag >= 0}
        offsets = await self._admin.groups.offsets(self._group_id)
        return {partition: each.offset for partition, each in offsets.items()}, {}

    def exists(self, partition: TopicPartition) -> bool:
        """Whether the partition existed at the last sample."""
        topic = self._topics.get(partition.topic)
        return topic is not None and topic.partition(partition.partition) is not None

    def has_leader(self, partition: TopicPartition) -> bool:
        """Whether an existing partition had a leader at the last sample."""
        info = self._topics[partition.topic].partition(partition.partition)
        return info is not None and info.leader != NO_LEADER


def _ends(stable: Outcomes[TopicPartition, OffsetAndTime]) -> dict[TopicPartition, int]:
    return {partition: each.offset for partition, each in stable.found.items()}
