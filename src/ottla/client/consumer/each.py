"""A consumer's operations over several partitions, with an outcome per partition: `consumer.each.end_offsets(...)`.

The consumer's own methods of the same names raise if one partition failed.
"""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.checks import checked_partitions, kind_of
from ottla.client.cluster import Cluster
from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.auto_commit import OffsetCommitter
from ottla.client.consumer.group_offsets import OffsetAndMetadata, asked_positions
from ottla.client.consumer.offsets import EARLIEST, LATEST, OffsetAndTime, Time, list_offsets_each, resolve_each
from ottla.client.outcomes import Outcomes
from ottla.model.ids import TopicPartition

NO_GROUP = "this needs a group_id"


class Each:
    """Operations that return an outcome per partition."""

    def __init__(
        self,
        cluster: Cluster,
        committer: OffsetCommitter | None,
        places: dict[TopicPartition, AssignedPartition],
        *,
        read_committed: bool,
    ) -> None:
        self._cluster = cluster
        self._committer = committer
        self._places = places
        self._read_committed = read_committed

    async def commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> Outcomes[TopicPartition, OffsetAndMetadata]:
        """Commit these offsets (default: all current positions); `found` has those that were stored."""
        committer = self._group()
        places: Sequence[AssignedPartition] = list(self._places.values())
        wanted = committer.positions(places) if offsets is None else asked_positions(offsets)
        return await committer.commit(wanted, places)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets; None for partitions without one."""
        return await self._group().offsets.fetch(partitions)

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> Outcomes[TopicPartition, OffsetAndTime | None]:
        """Return the first record at or after each time; None for partitions without one."""
        if not isinstance(times_ms, Mapping):
            raise TypeError(f"a mapping of partitions to times is needed, not {kind_of(times_ms)}")
        times = {partition: Time(time_ms) for partition, time_ms in times_ms.items()}
        asked = await list_offsets_each(self._cluster, times, read_committed=self._read_committed)
        return Outcomes({each: at if at.offset >= 0 else None for each, at in asked.found.items()}, asked.failed)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, int]:
        """Return the first offsets."""
        return await resolve_each(
            self._cluster, [(partition, EARLIEST) for partition in checked_partitions(partitions)]
        )

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, int]:
        """Return the offsets behind the last records; with read_committed the last stable offsets."""
        wanted = [(partition, LATEST) for partition in checked_partitions(partitions)]
        return await resolve_each(self._cluster, wanted, read_committed=self._read_committed)

    def _group(self) -> OffsetCommitter:
        if self._committer is None:
            raise ValueError(NO_GROUP)
        return self._committer
