"""The placement of partitions: move replicas between brokers and log directories, elect leaders.

Rules:
- Brokers forward these requests to the active controller, so any broker may be asked; only a move between the log
  directories of one broker is a request to that broker.
- A move is a goal ("these replicas, the first of them preferred as the leader"): asking for it again changes nothing,
  so all of these calls are repeated if a response was lost.
- An election that was not needed is not a failure: the right replica leads already.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.client.checks import checked_name, checked_number, checked_partition, checked_partitions
from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.client.outcomes import Outcomes, told, told_by
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.topics.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from ottla.wire.messages.topics.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.messages.topics.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from ottla.wire.messages.topics.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)

_BROKER = "the id of a broker"
_Topic = AlterPartitionReassignmentsRequest.ReassignableTopic


class Election(IntEnum):
    """PREFERRED: elect the first replica of the list if it is in sync. UNCLEAN: elect any live replica; records may be
    lost.
    """

    PREFERRED = 0
    UNCLEAN = 1


class Reassignment(NamedTuple):
    """A reassignment in progress: all replicas of the moment, and which of them are being added and removed."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas once the reassignment is complete."""
        return tuple(each for each in self.replicas if each not in self.removing)


class ReplicaAdmin:
    """Operations on replicas and leaders."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def reassign(
        self, moves: Mapping[TopicPartition, Sequence[int]], *, allow_factor_change: bool = True
    ) -> None:
        """Reassign partitions to these replicas, the preferred leader first. Returns when the moves have begun."""
        (await self.reassign_each(moves, allow_factor_change=allow_factor_change)).all()

    async def reassign_each(
        self, moves: Mapping[TopicPartition, Sequence[int]], *, allow_factor_change: bool = True
    ) -> Outcomes[TopicPartition, None]:
        """Reassign partitions, with an outcome per partition."""
        return await self._alter(moves, allow_factor_change=allow_factor_change)

    async def cancel(self, partitions: Iterable[TopicPartition]) -> None:
        """Cancel the reassignment of partitions; raises NO_REASSIGNMENT_IN_PROGRESS for those that have none."""
        (await self.cancel_each(partitions)).all()

    async def cancel_each(self, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, None]:
        """Cancel the reassignment of partitions, with an outcome per partition."""
        return await self._alter(dict.fromkeys(checked_partitions(partitions)), allow_factor_change=True)

    async def _alter(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, allow_factor_change: bool
    ) -> Outcomes[TopicPartition, None]:
        topics: dict[str, _Topic] = {}
        for partition, replicas in wanted.items():
            name, index = checked_partition(partition)
            topic = topics.setdefault(name, _Topic(name=name, partitions=[]))
            topic.partitions.append(
                _Topic.ReassignablePartition(
                    partition_index=index,
                    replicas=None if replicas is None else [checked_number(each, _BROKER) for each in replicas],
                )
            )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._cluster.options.request_timeout_ms,
            allow_replication_factor_change=allow_factor_change,
            topics=list(topics.values()),
        )

        def read(answer: AlterPartitionReassignmentsResponse) -> list[tuple[TopicPartition, None, int, str | None]]:
            check(answer.error_code, answer.error_message)
            return [
                (TopicPartition(topic.name, each.partition_index), None, each.error_code, each.error_message)
                for topic in answer.responses
                for each in topic.partitions
            ]

        asking = self._cluster.call(request, error_of=lambda each: each.error_code)
        return await told_by(asking, wanted, read)

    async def reassignments(self, partitions: Iterable[TopicPartition] | None = None) -> list[Reassignment]:
        """Return the reassignments in progress (of all partitions by default), sorted."""
        kind = ListPartitionReassignmentsRequest.Topics
        wanted: dict[str, ListPartitionReassignmentsRequest.Topics] | None = None
        if partitions is not None:
            wanted = {}
            for name, index in checked_partitions(partitions):
                wanted.setdefault(name, kind(name=name, partition_indexes=[])).partition_indexes.append(index)
        request = ListPartitionReassignmentsRequest(
            timeout_ms=self._cluster.options.request_timeout_ms,
            topics=None if wanted is None else list(wanted.values()),
        )
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)
        return sorted(
            Reassignment(
                TopicPartition(topic.name, each.partition_index),
                tuple(each.replicas),
                tuple(each.adding_replicas),
                tuple(each.removing_replicas),
            )
            for topic in answer.topics
            for each in topic.partitions
        )

    async def elect(
        self, partitions: Iterable[TopicPartition] | None = None, kind: Election = Election.PREFERRED
    ) -> None:
        """Elect leaders of the given partitions, or of all."""
        (await self.elect_each(partitions, kind)).all()

    async def elect_each(
        self, partitions: Iterable[TopicPartition] | None = None, kind: Election = Election.PREFERRED
    ) -> Outcomes[TopicPartition, bool]:
        """Elect leaders, with an outcome per partition: False if no election was needed. If all partitions are asked
        for (None), only those that needed an election have an outcome.
        """
        parts = None if partitions is None else checked_partitions(partitions)
        wanted: dict[str, ElectLeadersRequest.TopicPartitions] | None = None
        if parts is not None:
            wanted = {}
            for name, index in parts:
                topic = ElectLeadersRequest.TopicPartitions(topic=name, partitions=[])
                wanted.setdefault(name, topic).partitions.append(index)
        request = ElectLeadersRequest(
            election_type=int(kind),
            topic_partitions=None if wanted is None else list(wanted.values()),
            timeout_ms=self._cluster.options.request_timeout_ms,
        )
        unneeded = ErrorCode.ELECTION_NOT_NEEDED

        def read(answer: ElectLeadersResponse) -> list[tuple[TopicPartition, bool, int, str | None]]:
            check(answer.error_code)
            for result in answer.replica_election_results:
                self._cluster.metadata.mark_stale(result.topic)
            return [
                (
                    TopicPartition(result.topic, each.partition_id),
                    each.error_code != unneeded,
                    ErrorCode.NONE if each.error_code == unneeded else each.error_code,
                    each.error_message,
                )
                for result in answer.replica_election_results
                for each in result.partition_result
            ]

        asking = self._cluster.call(request, error_of=lambda each: each.error_code)
        if parts is None:  # without named partitions only the request as a whole can fail
            return told((), read(await asking))
        return await told_by(asking, parts, read)

    async def move_to_disk(self, node_id: int, paths: Mapping[TopicPartition, str]) -> None:
        """Move replicas to other log directories of the same broker. Returns when the moves have begun."""
        (await self.move_to_disk_each(node_id, paths)).all()

    async def move_to_disk_each(
        self, node_id: int, paths: Mapping[TopicPartition, str]
    ) -> Outcomes[TopicPartition, None]:
        """Move replicas to other log directories of the same broker, with an outcome per partition."""
        kind = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        dirs: dict[str, dict[str, list[int]]] = {}
        checked_number(node_id, _BROKER)
        for partition, path in paths.items():
            name, index = checked_partition(partition)
            dirs.setdefault(checked_name(path, "a log directory"), {}).setdefault(name, []).append(index)
        request = AlterReplicaLogDirsRequest(
            dirs=[
                kind(
                    path=path,
                    topics=[kind.AlterReplicaLogDirTopic(name=name, partitions=at) for name, at in topics.items()],
                )
                for path, topics in dirs.items()
            ]
        )
        return await told_by(
            self._cluster.call(request, node_id=node_id),
            paths,
            lambda answer: [
                (TopicPartition(topic.topic_name, each.partition_index), None, each.error_code, None)
                for topic in answer.results
                for each in topic.partitions
            ],
        )
