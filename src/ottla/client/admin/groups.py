"""Groups of any kind: list, describe, delete; offsets and lag of those that commit offsets.

Lag is told in records and in seconds: how long the first record that the group has not read has been waiting. Its time
is read from the log itself, so it is right whatever the rate of writing was meanwhile.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.admin.asking import ask_every_broker
from ottla.client.admin.group_descriptions import GroupDescription, describe
from ottla.client.cluster import Cluster
from ottla.client.commits import GroupOffsets, OffsetAndMetadata
from ottla.client.coordinator import Coordinator, CoordinatorKind, call_once
from ottla.client.errors import check
from ottla.client.fetching import ReadOptions
from ottla.client.group_metadata import GroupMetadata
from ottla.client.metadata import TopicInfo
from ottla.client.offsets import EARLIEST, LATEST, Time, list_offsets
from ottla.client.ranges import RangeReader, Span
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

# A commit by nobody: allowed while the group has no members.
_NOBODY = ("", -1)


class GroupListing(NamedTuple):
    """A group as lists show it. Old brokers tell neither its kind nor its state."""

    group_id: str
    kind: str
    state: str
    protocol_type: str


class PartitionLag(NamedTuple):
    """How far behind a group is in one partition; None where it has committed nothing, or nobody knows."""

    partition: TopicPartition
    committed: int | None
    end: int
    records: int | None
    seconds: float | None


class Groups:
    """What can be done with groups."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def all(self, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> list[GroupListing]:
        """All groups of all brokers, sorted; only those in one of `states` and of one of `kinds` if given."""
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(kinds))
        found: dict[str, GroupListing] = {}
        answers = await ask_every_broker(self._cluster, request, ListGroupsResponse, lambda each: each.error_code)
        for answer in answers:
            check(answer.error_code)
            for each in answer.groups:
                found[each.group_id] = GroupListing(
                    each.group_id, each.group_type or "classic", each.group_state, each.protocol_type
                )
        return [found[name] for name in sorted(found)]

    async def describe(self, group_id: str) -> GroupDescription:
        """State and members. Raises GROUP_ID_NOT_FOUND."""
        kinds = {each.group_id: each.kind for each in await self.all()}
        if group_id not in kinds:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
        coordinator = self._coordinator(group_id)
        try:
            return await describe(coordinator, group_id, kinds[group_id])
        finally:
            coordinator.close()

    async def delete(self, group_id: str) -> None:
        """Delete a group without members, and its offsets."""
        answer = await call_once(
            self._cluster,
            group_id,
            CoordinatorKind.GROUP,
            DeleteGroupsRequest(groups_names=[group_id]),
            DeleteGroupsResponse,
            lambda each: each.results[0].error_code,
        )
        check(answer.results[0].error_code)

    # --- offsets

    async def offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed. For named partitions it waits for transactions that are about to end."""
        coordinator = self._coordinator(group_id)
        try:
            offsets = GroupOffsets(self._cluster, coordinator, group_id)
            return await (offsets.fetch_all() if partitions is None else offsets.fetch(partitions))
        finally:
            coordinator.close()

    async def set_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]) -> None:
        """Let the group go on elsewhere; it must not have members."""
        coordinator = self._coordinator(group_id)
        places = {
            partition: place if isinstance(place, OffsetAndMetadata) else OffsetAndMetadata(place)
            for partition, place in offsets.items()
        }
        member_id, generation = _NOBODY
        try:
            await GroupOffsets(self._cluster, coordinator, group_id).commit(
                places, GroupMetadata(group_id, generation, member_id, None)
            )
        finally:
            coordinator.close()

    async def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget how far the group has read partitions that none of its members reads."""
        topics: dict[str, OffsetDeleteRequest.Topic] = {}
        for name, index in partitions:
            topic = topics.setdefault(name, OffsetDeleteRequest.Topic(name=name, partitions=[]))
            topic.partitions.append(OffsetDeleteRequest.Topic.Partition(partition_index=index))
        answer = await call_once(
            self._cluster,
            group_id,
            CoordinatorKind.GROUP,
            OffsetDeleteRequest(group_id=group_id, topics=list(topics.values())),
            OffsetDeleteResponse,
            lambda each: each.error_code,
        )
        check(answer.error_code)
        for each in (partition for found in answer.topics for partition in found.partitions):
            check(each.error_code)

    async def lag(self, group_id: str, partitions: Iterable[TopicPartition] = ()) -> list[PartitionLag]:
        """For what the group has committed, and for `partitions` (those of its members, say), sorted."""
        committed = await self.offsets(group_id)
        wanted = sorted({*committed, *partitions})
        ends = await self._bounds(wanted, LATEST)
        starts = await self._bounds(wanted, EARLIEST)
        lags: dict[TopicPartition, PartitionLag] = {}
        unread: list[Span] = []
        for partition in wanted:
            if partition not in ends:
                continue  # its topic was deleted
            place, end = committed.get(partition), ends[partition]
            # What retention has deleted before it was read is still owed, but has no time any more.
            begin = max(place.offset, starts[partition]) if place is not None else 0
            records = max(end - place.offset, 0) if place is not None else None
            lags[partition] = PartitionLag(
                partition, place.offset if place else None, end, records, 0.0 if records == 0 else None
            )
            if place is not None and begin < end:
                unread.append(Span(*partition, begin, end))
        for partition, timestamp in (await self._first_times(unread)).items():
            waited_ms = max(self._cluster.options.now_ms() - timestamp, 0)
            lags[partition] = lags[partition]._replace(seconds=waited_ms / 1000)
        return list(lags.values())

    async def _bounds(self, partitions: Iterable[TopicPartition], time: Time) -> dict[TopicPartition, int]:
        """Of those that exist."""
        known = {topic.name: topic.partition_count for topic in await self._topics()}
        there = [each for each in partitions if each.partition < known.get(each.topic, 0)]
        found = await list_offsets(self._cluster, dict.fromkeys(there, time))
        return {partition: answer.offset for partition, answer in found.items()}

    async def _topics(self) -> list[TopicInfo]:
        answer, _ = await self._cluster.refresh(None)
        found = (self._cluster.metadata.topics.get(each.name or "") for each in answer.topics)
        return [each for each in found if each is not None]

    async def _first_times(self, spans: Iterable[Span]) -> dict[TopicPartition, int]:
        """The timestamp of the first record of each span; one small fetch for all partitions of a broker."""
        waiting = {TopicPartition(span.topic, span.partition): span for span in spans}
        times: dict[TopicPartition, int] = {}
        if not waiting:
            return times
        options = ReadOptions(max_partition_bytes=1)  # a broker gives one batch at least
        async with RangeReader(self._cluster, list(waiting.values()), options) as reader:
            async for record in reader:
                times.setdefault(TopicPartition(record.topic, record.partition), record.timestamp)
                if len(times) == len(waiting):
                    break
        return times

    def _coordinator(self, group_id: str) -> Coordinator:
        return Coordinator(self._cluster, group_id, CoordinatorKind.GROUP)
