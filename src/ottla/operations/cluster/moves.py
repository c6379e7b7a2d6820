"""Carry out moves of replicas: start a few at a time, wait until they are done; then elect leaders.

Rules:
- Interrupting the command breaks nothing: moves that have begun go on by themselves, the others have not begun. The
  same command continues from there, and also waits for the moves under way.
- A move that only changes the order of replicas copies nothing, so it does not count against the limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.cluster.balance.loads import ReplicaMove
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.operations.cluster.view import disks

if TYPE_CHECKING:
    from ottla.client.admin import Admin

AT_ONCE = 10
_POLL_S = 0.3
# Errors of an election that are not reported.
_HARMLESS = (ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


class Progress(NamedTuple):
    """How far the moves are."""

    done_moves: int
    moves: int
    done_bytes: int
    size_bytes: int
    under_way: tuple[TopicPartition, ...]


class Mover:
    """Carries out the moves of one plan, and waits for those that had `begun` before it; `on_progress` is called with
    the progress.
    """

    def __init__(
        self,
        admin: Admin,
        moves: Sequence[ReplicaMove],
        begun: Sequence[ReplicaMove] = (),
        *,
        at_once: int = AT_ONCE,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._admin = admin
        self._moves = {each.at: each for each in (*begun, *moves)}
        self._planned = {each.at for each in moves}
        self._at_once = at_once
        self._on_progress = on_progress
        self.failed: dict[TopicPartition, str] = {}

    async def run(self) -> None:
        """Run until no move is left; then elect leaders."""
        waiting = sorted(self._planned)
        running = {each.partition for each in await self._admin.replicas.reassignments()}
        while waiting or running:
            begun = await self._begin(waiting, running)
            running |= begun
            running &= {each.partition for each in await self._admin.replicas.reassignments()}
            await self._report(waiting, running)
            if running:
                await asyncio.sleep(_POLL_S)
        await self._report([], set())
        await self._elect()

    async def _begin(self, waiting: list[TopicPartition], running: set[TopicPartition]) -> set[TopicPartition]:
        """Begin as many moves as the limit allows."""
        room = max(0, self._at_once - len(running))
        unlimited = [at for at in waiting if not self._moves[at].adding or at in running]  # they copy nothing more
        copying = [at for at in waiting if self._moves[at].adding and at not in running][:room]
        wanted = {at: self._moves[at].after for at in sorted([*unlimited, *copying])}
        if not wanted:
            return set()
        outcomes = await self._admin.replicas.reassign_each(wanted)
        outcomes.answered()  # raise if there was no answer: then it is not known what moves
        self.failed.update({at: str(error) for at, error in outcomes.failed.items()})
        waiting[:] = [at for at in waiting if at not in wanted]
        return {at for at in wanted if at not in self.failed}

    async def _report(self, waiting: Iterable[TopicPartition], running: set[TopicPartition]) -> None:
        left = {*waiting, *running}
        finished = [move for at, move in self._moves.items() if at not in left]
        done_bytes = sum(each.copied_bytes for each in finished)
        if any(at in self._moves for at in running):
            done_bytes += await self._copied(running)
        total = sum(each.copied_bytes for each in self._moves.values())
        progress = Progress(len(finished), len(self._moves), min(done_bytes, total), total, tuple(sorted(running)))
        self._on_progress(progress)

    async def _copied(self, running: set[TopicPartition]) -> int:
        """The bytes that the new replicas of running moves have so far."""
        targets = sorted({node for at in running if at in self._moves for node in self._moves[at].adding})
        found = 0
        answers = await disks(self._admin, targets)  # a broker that is away has copied nothing new
        for directory in [each for found_dirs in answers.values() for each in found_dirs]:
            for replica in directory.replicas:
                at = TopicPartition(replica.topic, replica.partition)
                if at in running and at in self._moves and directory.node_id in self._moves[at].adding:
                    found += min(replica.size_bytes, self._moves[at].size_bytes)
        return found

    # --- leaders

    async def _elect(self) -> None:
        """Elect the preferred leaders of the partitions that were moved."""
        wanted = sorted(at for at in self._moves if at not in self.failed)
        if wanted:
            outcomes = await self._admin.replicas.elect_each(wanted)
            for at, error in outcomes.failed.items():
                if not (isinstance(error, ApiError) and error.code in _HARMLESS):
                    self.failed[at] = str(error)
