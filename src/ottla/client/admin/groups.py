"""Groups of any kind: list, describe, delete; offsets and lag of the groups that commit offsets.

Lag is given in records and in seconds: how long the first record that the group has not read has been waiting. The
timestamp of that record is read from the log, so the lag is right whatever the rate of writing was meanwhile.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.admin.asking import ask_coordinator, ask_every_broker, one_by_one
from ottla.client.admin.first_times import first_times
from ottla.client.admin.group_descriptions import GroupDescription, describe
from ottla.client.admin.group_events import GroupPast, group_past
from ottla.client.checks import checked_names, checked_partitions
from ottla.client.cluster import Cluster
from ottla.client.consumer.group_metadata import GroupMetadata
from ottla.client.consumer.group_offsets import GroupOffsets, OffsetAndMetadata, asked_positions
from ottla.client.consumer.offsets import PartitionBounds, bounds_each
from ottla.client.coordinator import Coordinator, CoordinatorKind, call_once
from ottla.client.errors import check
from ottla.client.outcomes import Outcomes
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.groups.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.groups.offset_delete import OffsetDeleteRequest

# The member id and generation of an offset commit without a member: allowed while the group has no members.
_NOBODY = ("", -1)
_GROUP = "the id of a group"


class GroupListing(NamedTuple):
    """A group in a list of groups. Old brokers return neither its kind nor its state."""

    group_id: str
    kind: str
    state: str
    protocol_type: str


class PartitionLag(NamedTuple):
    """The lag of a group in one partition; a field is None if the group has committed nothing or
    the value is unknown.
    """

    partition: TopicPartition
    committed: int | None
    end: int
    records: int | None
    seconds: float | None


class GroupAdmin:
    """Operations on groups."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def all(self, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> list[GroupListing]:
        """Return the groups of all brokers, sorted; only those in one of `states` and of one of `kinds` if given."""
        answers = (await self.all_each(states, kinds)).all().values()
        found = {each.group_id: each for listed in answers for each in listed}
        return [found[name] for name in sorted(found)]

    async def all_each(
        self, states: Iterable[str] = (), kinds: Iterable[str] = ()
    ) -> Outcomes[int, list[GroupListing]]:
        """Return the groups by coordinating broker; a broker that cannot be reached has a failed outcome."""
        request = ListGroupsRequest(
            states_filter=checked_names(states, "a state"), types_filter=checked_names(kinds, "a kind of groups")
        )
        answers = await ask_every_broker(self._cluster, request, lambda each: each.error_code)
        found = {
            node_id: [
                GroupListing(each.group_id, each.group_type or "classic", each.group_state, each.protocol_type)
                for each in answer.groups
            ]
            for node_id, answer in answers.found.items()
        }
        return Outcomes(found, answers.failed)

    async def describe(self, group_id: str) -> GroupDescription:
        """Return the state and members of a group. Raises GROUP_ID_NOT_FOUND."""
        return (await self.describe_each([group_id])).all()[group_id]

    async def describe_each(self, group_ids: Iterable[str]) -> Outcomes[str, GroupDescription]:
        """Describe several groups, each at its own coordinator, with an outcome per group."""
        group_ids = checked_names(group_ids, _GROUP)
        listed = await self.all_each()
        kinds = {each.group_id: each.kind for groups in listed.found.values() for each in groups}

        async def ask(group_id: str) -> GroupDescription:
            if group_id not in kinds:
                listed.all()  # raises if a broker is away: it may coordinate this group
                raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
            return await self.describe_as(group_id, kinds[group_id])

        return await one_by_one(group_ids, ask)

    async def describe_as(self, group_id: str, kind: str) -> GroupDescription:
        """Describe a group whose kind is known already, from a list of groups."""
        return await describe(self._coordinator(group_id), group_id, kind)

    async def events(self, group_id: str) -> GroupPast:
        """Return what the group's coordinator remembers of the group: members that came and went, rebalances, and why.
        Raises UnsupportedApi on a broker that is not Ottla.
        """
        return await group_past(self._coordinator(group_id), group_id)

    async def delete(self, group_id: str) -> None:
        """Delete a group without members, together with its offsets."""
        answer = await call_once(
            self._cluster,
            group_id,
            CoordinatorKind.GROUP,
            DeleteGroupsRequest(groups_names=[group_id]),
            lambda each: each.results[0].error_code,
        )
        check(answer.results[0].error_code)

    async def delete_each(self, group_ids: Iterable[str]) -> Outcomes[str, None]:
        """Delete several groups, with an outcome per group."""
        return await one_by_one(checked_names(group_ids, _GROUP), self.delete)

    # --- offsets

    async def offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offsets that the group has committed. With named partitions, wait for transactions that are about
        to end.
        """
        if partitions is None:
            return await GroupOffsets(self._cluster, self._coordinator(group_id), group_id).fetch_all()
        found = (await self.offsets_each(group_id, partitions)).all()
        return {partition: place for partition, place in found.items() if place is not None}

    async def offsets_each(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets with an outcome per partition: None if it has committed nothing."""
        return await GroupOffsets(self._cluster, self._coordinator(group_id), group_id).fetch(partitions)

    async def set_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]) -> None:
        """Change the offsets from which the group continues; the group must not have members."""
        (await self.set_offsets_each(group_id, offsets)).all()

    async def set_offsets_each(
        self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> Outcomes[TopicPartition, OffsetAndMetadata]:
        """Change the group's offsets, with an outcome per partition: the offset that was stored."""
        places = asked_positions(offsets)
        member_id, generation = _NOBODY
        return await GroupOffsets(self._cluster, self._coordinator(group_id), group_id).commit(
            places, GroupMetadata(group_id, generation, member_id, None)
        )

    async def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete the group's offsets of partitions that none of its members reads."""
        (await self.delete_offsets_each(group_id, partitions)).all()

    async def delete_offsets_each(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, None]:
        """Delete the group's offsets of partitions, with an outcome per partition."""
        partitions = checked_partitions(partitions)
        topics: dict[str, OffsetDeleteRequest.Topic] = {}
        for name, index in partitions:
            topic = topics.setdefault(name, OffsetDeleteRequest.Topic(name=name, partitions=[]))
            topic.partitions.append(OffsetDeleteRequest.Topic.Partition(partition_index=index))
        return await ask_coordinator(
            self._cluster,
            group_id,
            OffsetDeleteRequest(group_id=group_id, topics=list(topics.values())),
            partitions,
            lambda answer: (answer.error_code, None),
            lambda answer: [
                (TopicPartition(topic.name, each.partition_index), each.error_code, None)
                for topic in answer.topics
                for each in topic.partitions
            ],
        )

    async def lag(self, group_id: str, partitions: Iterable[TopicPartition] = ()) -> list[PartitionLag]:
        """Return the lag in the partitions for which the group has committed offsets, and in `partitions`, sorted."""
        return list((await self.lag_each(group_id, partitions)).all().values())

    async def lag_each(
        self, group_id: str, partitions: Iterable[TopicPartition] = ()
    ) -> Outcomes[TopicPartition, PartitionLag]:
        """Return the group's lag with an outcome per partition: a leader that is away, or records that cannot be read,
        fail only the partitions that they concern.
        """
        partitions = checked_partitions(partitions)
        stored = await GroupOffsets(self._cluster, self._coordinator(group_id), group_id).fetch_all_each()
        committed = stored.found
        wanted = sorted({*committed, *partitions} - stored.failed.keys())
        known = await self._partition_counts({each.topic for each in wanted})
        there = [each for each in wanted if each.partition < known.get(each.topic, 0)]  # partitions that still exist
        bounds = await bounds_each(self._cluster, there)
        lags: dict[TopicPartition, PartitionLag] = {}
        unread: dict[TopicPartition, PartitionBounds] = {}
        for partition in (each for each in there if each in bounds.found):
            place, (start, end) = committed.get(partition), bounds.found[partition]
            # Records that retention deleted before the group read them count as lag, but have no timestamp any more.
            begin = max(place.offset, start) if place is not None else 0
            records = max(end - place.offset, 0) if place is not None else None
            lags[partition] = PartitionLag(
                partition, place.offset if place else None, end, records, 0.0 if records == 0 else None
            )
            if place is not None and begin < end:
                unread[partition] = PartitionBounds(begin, end)
        times = await first_times(self._cluster, unread)
        for partition, timestamp in times.found.items():
            if timestamp is not None:
                waited_ms = max(self._cluster.options.now_ms() - timestamp, 0)
                lags[partition] = lags[partition]._replace(seconds=waited_ms / 1000)
        failed = stored.failed | bounds.failed | times.failed
        return Outcomes({at: lag for at, lag in lags.items() if at not in failed}, failed)

    async def _partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the number of partitions of those topics that exist."""
        names = sorted(topics)
        _, failed = await self._cluster.refresh(names)
        found = {name: self._cluster.metadata.topics.get(name) for name in names if name not in failed}
        return {name: topic.partition_count for name, topic in found.items() if topic is not None}

    def _coordinator(self, group_id: str) -> Coordinator:
        return Coordinator(self._cluster, group_id, CoordinatorKind.GROUP, shared=True)
