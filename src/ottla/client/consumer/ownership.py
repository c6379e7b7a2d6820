"""The partitions that a consumer owns, and how they change: assigned, revoked or lost, with calls of the listener.

Rules:
- A member changes its partitions only inside `poll`: the records handed out before have then been handled, so the
  commit before a revocation is exact.
- Revoked: commit, call the listener, drop the partition, in this order. Lost: drop it without a commit, then call.
- The listener's errors go to the caller of `poll`, after the change is complete.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence

from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.options import RebalanceListener
from ottla.model.ids import TopicPartition

BeforeRevoking = Callable[[Sequence[TopicPartition]], Awaitable[None]]


class Ownership:
    """The assigned partitions of one consumer."""

    def __init__(self, before_revoking: BeforeRevoking) -> None:
        self.places: dict[TopicPartition, AssignedPartition] = {}
        self.listener: RebalanceListener | None = None
        self._before_revoking = before_revoking

    @property
    def partitions(self) -> list[TopicPartition]:
        """The owned partitions, in order."""
        return sorted(self.places)

    def place(self, partition: TopicPartition) -> AssignedPartition:
        """Return an owned partition; raise ValueError if it is not owned."""
        place = self.places.get(partition)
        if place is None:
            raise ValueError(f"{partition} is not assigned to this consumer")
        return place

    def all_of(self, partitions: Iterable[TopicPartition]) -> list[AssignedPartition]:
        """Return all of these partitions; raise ValueError if one of them is not owned, before any is changed."""
        return [self.place(partition) for partition in partitions]

    def put_last(self, partition: TopicPartition) -> None:
        """Move the partition to the end of the order in which partitions are served."""
        self.places[partition] = self.places.pop(partition)

    async def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Give partitions up that the group takes away, after a last commit."""
        gone = sorted(each for each in partitions if each in self.places)
        if not gone:
            return
        try:
            await self._before_revoking(gone)
            if self.listener is not None:
                await _finish(self.listener.on_revoked(gone))
        finally:
            self._drop(gone)

    async def lose(self) -> None:
        """Drop all partitions: the group has gone on without this member."""
        gone = self.partitions
        if gone:
            self._drop(gone)
            if self.listener is not None:
                await _finish(self.listener.on_lost(gone))

    async def give(self, partitions: Iterable[TopicPartition]) -> None:
        """Add new partitions; their positions are looked up afterwards, unless the listener seeks."""
        new = sorted(each for each in partitions if each not in self.places)
        for partition in new:
            self.places[partition] = AssignedPartition(partition)
        if self.listener is not None:
            await _finish(self.listener.on_assigned(new))

    def _drop(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            place = self.places.pop(partition, None)
            if place is not None:
                place.is_revoked = True
                place.move(None)


async def _finish(result: Awaitable[None] | None) -> None:
    if inspect.isawaitable(result):
        await result
