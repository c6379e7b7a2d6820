"""How far the groups have read that this node coordinates: their committed offsets; of share groups, their starts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.server.loop.later import gather
from ottla.server.loop.slices import Slices

if TYPE_CHECKING:
    from ottla.groups.view import GroupsView
    from ottla.server.coordination.host import Host
    from ottla.server.coordinators.all_coordinators import AllCoordinators


class GroupPosition(NamedTuple):
    """The first offset that a group has not finished, and how many records behind it are finished anyway."""

    offset: int
    finished: int = 0


class GroupPositions(NamedTuple):
    group_id: str
    kind: str
    positions: Mapping[TopicPartition, GroupPosition]


async def positions(
    composed: AllCoordinators, state: Callable[[], ClusterState], slices: Slices
) -> AsyncIterator[GroupPositions]:
    """Yield the positions of all groups in partitions that exist, in the order of their coordinators."""
    from ottla.groups.group import GroupKind
    from ottla.groups.listing import AllGroups

    for host in tuple(composed.groups.coordinators.hosts()):
        if not host.active:  # it is being loaded
            continue
        groups = await host.ask(AllGroups())
        for group in () if isinstance(groups, ApiError) else groups:
            if group.kind is GroupKind.SHARE:
                found = await _starts(group.group_id, host, composed, state)
            else:
                found = await _committed(group.group_id, host)
            topics = state().topics
            there = {
                where: position
                for where, position in found.items()
                if where.topic in topics and where.partition < len(topics[where.topic].partitions)
            }
            yield GroupPositions(group.group_id, group.kind.value, there)
            await slices.turn()


async def _committed(group_id: str, host: Host[GroupsView]) -> dict[TopicPartition, GroupPosition]:
    from ottla.groups.offsets.fetch import FetchOffsets

    found = await host.ask(FetchOffsets(group_id, None))
    if isinstance(found, ApiError):
        return {}
    return {partition: GroupPosition(committed.offset) for partition, committed in found.kept.items()}


async def _starts(
    group_id: str, host: Host[GroupsView], composed: AllCoordinators, state: Callable[[], ClusterState]
) -> dict[TopicPartition, GroupPosition]:
    """Ask the share coordinators, which may be other nodes, for the starts of a group's partitions."""
    from ottla.groups.share.state_partitions import ReadInitializedPartitions
    from ottla.shares.state.batches import NO_OFFSET
    from ottla.shares.state.commands import ReadSummary

    topics = await host.ask(ReadInitializedPartitions(group_id))
    if isinstance(topics, ApiError):
        return {}
    wanted = [(topic_id, index) for topic_id, topic in topics.items() for index in sorted(topic.partitions)]
    found: dict[TopicPartition, GroupPosition] = {}
    left = iter(wanted)
    while some := list(islice(left, limits.ITEMS_PER_SLICE)):
        summaries = await gather([composed.shares.states.submit(ReadSummary(group_id, *each)) for each in some])
        for (topic_id, index), summary in zip(some, summaries, strict=True):
            name = state().topic_name(topic_id)
            if name is not None and not isinstance(summary, ApiError) and summary.start_offset != NO_OFFSET:
                finished = max(summary.delivery_complete_count, 0)
                found[TopicPartition(name, index)] = GroupPosition(summary.start_offset, finished)
    return found
