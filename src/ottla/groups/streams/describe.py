"""DescribeStreamsGroup: describe a streams group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.streams.group import streams_group
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.tasks import TaskSet
from ottla.groups.streams.topology import Subtopology
from ottla.groups.view import GroupsView
from ottla.machine.keyed import Entry
from ottla.machine.kit import Result


class StreamsMemberDescription(NamedTuple):
    """A member with its target."""

    member: StreamsMember
    target: TaskSet


class StreamsGroupDescription(NamedTuple):
    """A snapshot of a group; internal topics have their partition counts once these are known."""

    state: str
    epoch: int
    assignment_epoch: int
    topology_epoch: int
    subtopologies: tuple[Subtopology, ...]
    members: tuple[StreamsMemberDescription, ...]


@dataclass(frozen=True, slots=True)
class DescribeStreamsGroup:
    """Replies with a StreamsGroupDescription; GROUP_ID_NOT_FOUND also if the group is of another kind."""

    group_id: str

    def decide(self, view: GroupsView, now_ms: int) -> Result[Entry, StreamsGroupDescription]:
        group = streams_group(view, self.group_id)
        topology, configured = group.topology, group.configured
        subtopologies = sorted(topology.subtopologies) if topology is not None else []
        if configured is not None and configured.is_ready:
            subtopologies = [
                each._replace(
                    repartition_sources=configured.subtopologies[each.id].repartition_sources,
                    changelogs=configured.subtopologies[each.id].changelogs,
                )
                for each in subtopologies
            ]
        return Result(
            reply=StreamsGroupDescription(
                group.state_name,
                group.epoch,
                group.assignment_epoch,
                topology.epoch if topology is not None else -1,
                tuple(subtopologies),
                tuple(
                    StreamsMemberDescription(each, group.target_of(each.member_id)) for each in group.members.values()
                ),
            )
        )
