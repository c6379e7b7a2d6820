"""AlterPartitionReassignments: give partitions other replicas, or cancel a reassignment; each partition by itself.

The new replicas are added first, and the old ones are removed when the new ones are all in sync (see
`cluster/leader_election.py`). A reassignment that adds no replica ends at once if the remaining replicas are in sync.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.cluster.commands.assign import check_replicas
from ottla.cluster.entities import PartitionState, Topic
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.leader_election import Elections, ElectionType, Wish
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.topic_settings import UNCLEAN_LEADER_ELECTION_ENABLE


class ReplicaAssignment(NamedTuple):
    """A partition and the replicas it shall have; None cancels its reassignment."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


class Moved(NamedTuple):
    """The result for one partition."""

    topic: str
    partition: int
    error: ApiError | None


@dataclass(frozen=True, slots=True)
class Reassign:
    """Replies with a Moved for each partition, in order."""

    moves: tuple[ReplicaAssignment, ...]
    may_change_replication_factor: bool = True

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, list[Moved]]:
        elections = Elections(view)
        records: list[MetadataEntry] = []
        outcomes: list[Moved] = []
        for move in self.moves:
            try:
                entry = self._one(view, elections, move)
            except ApiError as error:
                outcomes.append(Moved(move.topic, move.partition, error))
                continue
            outcomes.append(Moved(move.topic, move.partition, None))
            if entry is not None:
                records.append(entry)
        return Result(records, outcomes)

    def _one(self, view: MetadataView, elections: Elections, move: ReplicaAssignment) -> MetadataEntry | None:
        topic = view.state.topics.get(move.topic)
        if topic is None:
            raise _unknown(f"Unable to find a topic named {move.topic}.")
        if not 0 <= move.partition < len(topic.partitions):
            raise _unknown(f"Unable to find partition {move.topic}:{move.partition}.")
        partition = topic.partitions[move.partition]
        if move.replicas is None:
            return _call_off(view, elections, topic, partition)
        check_replicas(view, move.replicas, None)
        if not self.may_change_replication_factor:
            _check_factor(partition, move.replicas)
        removing = tuple(sorted(set(partition.replicas) - set(move.replicas)))
        adding = tuple(sorted(set(move.replicas) - set(partition.replicas)))
        # None leaves a list as it is: replicas that are already being added or removed, and still shall be, stay in it.
        wish = Wish(replicas=move.replicas + removing, removing=removing or None, adding=adding or None)
        # Added replicas have no data yet: this election must not make one of them leader uncleanly.
        return elections.change(topic, partition, wish, ElectionType.ONLINE)


def _check_factor(partition: PartitionState, replicas: tuple[int, ...]) -> None:
    now = len(set(partition.replicas) - set(partition.removing))
    if len(replicas) != now:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"The replication factor is changed from {now} to {len(replicas)}"
        )


def _call_off(
    view: MetadataView, elections: Elections, topic: Topic, partition: PartitionState
) -> MetadataEntry | None:
    """Go back to the replicas before the reassignment. If none of them is in sync, the first becomes leader
    uncleanly.
    """
    if not partition.moving:
        raise ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(id for id in partition.replicas if id not in partition.adding)
    isr = tuple(id for id in partition.isr if id not in partition.adding)
    if not isr:
        if not view.topic_config(topic.name)[UNCLEAN_LEADER_ELECTION_ENABLE]:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{partition.index} because it would require an "
                "unclean leader election.",
            )
        isr = replicas[:1]
    return elections.change(topic, partition, Wish(isr=isr, replicas=replicas, removing=(), adding=()))


def _unknown(message: str) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)


@dataclass(frozen=True, slots=True)
class ListMoves:
    """Replies with (topic name, partition) for each partition that is being reassigned; `topics` restricts the
    partitions.
    """

    topics: tuple[tuple[str, tuple[int, ...]], ...] | None = None

    def decide(self, view: MetadataView, now_ms: int) -> Result[MetadataEntry, list[tuple[str, PartitionState]]]:
        return Result(reply=[(name, partition) for name, partition in self._asked(view) if partition.moving])

    def _asked(self, view: MetadataView) -> Iterator[tuple[str, PartitionState]]:
        state = view.state
        if self.topics is None:
            for topic_id, index in state.index.moving:
                topic = state.topic_by_id[topic_id]
                yield topic.name, topic.partitions[index]
            return
        for name, indexes in self.topics:
            found = state.topics.get(name)
            if found is not None:
                yield from ((name, found.partitions[index]) for index in indexes if 0 <= index < len(found.partitions))
