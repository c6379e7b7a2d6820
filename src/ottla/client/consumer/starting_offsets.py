"""Where a consumer begins: partitions without a position get one from the group's committed offsets, or by the options.

Rules:
- The group's offsets are requested for all partitions together, and each has its own outcome. One that fails is
  requested again after a while; the others are read meanwhile.
- Without a committed offset a partition begins where `auto_offset_reset` says: its cursor gets that time, and the
  fetcher finds the offset. If the option is "none", the failure is raised to the caller of `poll`.
- A partition whose position the caller has changed meanwhile keeps that position.
"""

import asyncio
from collections.abc import Callable, Iterable

from ottla.client.cluster import Cluster
from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.group_offsets import GroupOffsets, OffsetAndMetadata
from ottla.client.consumer.offsets import Time
from ottla.client.errors import NoOffset
from ottla.model.ids import NO_ID


class StartingOffsets:
    """Finds the first position of assigned partitions that have neither a position nor a time."""

    def __init__(
        self,
        cluster: Cluster,
        group: GroupOffsets | None,
        reset: Time | None,
        fail: Callable[[AssignedPartition, Exception], None],
        wake: Callable[[object], None],
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._reset = reset
        self._fail = fail
        self._wake = wake
        self._waiting: dict[
            AssignedPartition, asyncio.TimerHandle | None
        ] = {}  # a request is in flight, or a timer for the next runs
        self._tasks: dict[asyncio.Task[None], None] = {}

    def start(self, places: Iterable[AssignedPartition]) -> None:
        """Make sure that all of these partitions get a position."""
        lost = [each for each in places if each not in self._waiting]
        if not lost:
            return
        if self._group is None:
            for place in lost:
                self._begin(place, None)
            return
        for place in lost:
            self._waiting[place] = None
        task = asyncio.create_task(self._ask(self._group, lost))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        task.add_done_callback(self._wake)

    async def close(self) -> None:
        for timer in filter(None, self._waiting.values()):
            timer.cancel()
        self._waiting.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, group: GroupOffsets, places: list[AssignedPartition]) -> None:
        try:
            await self._find(group, places)
        except Exception as defect:  # the caller has to be told, or these partitions would wait for ever
            for place in [each for each in places if each in self._waiting and self._waiting[each] is None]:
                if place.cursor is None:
                    self._fail(place, defect)
                self._ask_again(place)

    async def _find(self, group: GroupOffsets, places: list[AssignedPartition]) -> None:
        ids, outcomes = await group.fetch_with_ids([place.partition for place in places])
        for place in places:
            error = outcomes.failed.get(place.partition)
            if place.cursor is not None:
                self._waiting.pop(place, None)
            elif error is None:
                self._begin(place, outcomes.found[place.partition], ids[place.partition.topic])
            else:
                if self._cluster.passes(error):
                    place.failure, place.is_told = error, True
                else:
                    self._fail(place, error)
                self._ask_again(place)

    def _begin(self, place: AssignedPartition, committed: OffsetAndMetadata | None, topic_id: bytes = NO_ID) -> None:
        if committed is not None:
            place.move(committed.offset, committed.leader_epoch, topic_id)
            place.committed = committed.offset
        elif self._reset is not None:
            place.move(self._reset)
        else:
            self._fail(place, NoOffset(place.partition))
            self._ask_again(place)
            return
        self._waiting.pop(place, None)

    def _ask_again(self, place: AssignedPartition) -> None:
        place.tries += 1
        wait_s = self._cluster.options.backoff_ms(place.tries) / 1000
        self._waiting[place] = asyncio.get_running_loop().call_later(wait_s, self._is_due, place)

    def _is_due(self, place: AssignedPartition) -> None:
        self._waiting.pop(place, None)
        self._wake(None)
