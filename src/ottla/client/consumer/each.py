"""A consumer's operations over several partitions, with the outcome of each: `consumer.each.end_offsets(...)`.

The consumer's own methods of the same names raise if one partition failed.
"""

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.cluster import Cluster
from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.auto_commit import Committer
from ottla.client.consumer.group_offsets import OffsetAndMetadata, asked_positions
from ottla.client.consumer.offsets import EARLIEST, LATEST, OffsetAndTime, Time, list_offsets_each, resolve_each
from ottla.client.outcomes import Outcomes
from ottla.model.ids import TopicPartition

NO_GROUP = "this needs a group_id"


class Each:
    """One outcome per partition."""

    def __init__(
        self,
        cluster: Cluster,
        committer: Committer | None,
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
        """Store these positions (or all present ones); `found` are those that were stored."""
        committer = self._group()
        places: Sequence[AssignedPartition] = list(self._places.values())
        wanted = committer.positions(places) if offsets is None else asked_positions(offsets)
        return await committer.commit(wanted, places)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> Outcomes[TopicPartition, OffsetAndMetadata | None]:
        """What the group has stored; None where it has nothing."""
        return await self._group().offsets.fetch(partitions)

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> Outcomes[TopicPartition, OffsetAndTime | None]:
        """The first record at or after each time; None where nothing is that late."""
        times = {partition: Time(time_ms) for partition, time_ms in times_ms.items()}
        asked = await list_offsets_each(self._cluster, times, read_committed=self._read_committed)
        return Outcomes({each: at if at.offset >= 0 else None for each, at in asked.found.items()}, asked.failed)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, int]:
        """The first offset."""
        return await resolve_each(self._cluster, [(partition, EARLIEST) for partition in partitions])

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, int]:
        """Behind the last record; with read_committed behind the last one that is decided."""
        wanted = [(partition, LATEST) for partition in partitions]
        return await resolve_each(self._cluster, wanted, read_committed=self._read_committed)

    def _group(self) -> Committer:
        if self._committer is None:
            raise ValueError(NO_GROUP)
        return self._committer
