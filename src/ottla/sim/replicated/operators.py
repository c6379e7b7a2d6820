"""Operators at work during the faults: they reassign partitions, elect preferred leaders, create and delete topics, and
change the members of the cluster (`members.py`).

Their requests may fail, be refused or be half done when the faults are over: reassignments that are still in progress
must then complete by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.sim.process import WorkloadStage
from ottla.sim.replicated.members import Members
from ottla.sim.replicated.scenario import REPLICAS
from ottla.sim.workload import PATIENCE_SECONDS

PAUSE_SECONDS = 0.7


class Operators:
    """The workload of the one operator."""

    def __init__(self, stage: WorkloadStage, operations: int, changes: int, members: Members) -> None:
        self._stage = stage
        self._left = operations
        self._changes_left = changes
        self._members = members
        self._rng = stage.stream("operators")
        self._process = stage.process("operator")
        self._task: asyncio.Task[None] | None = None
        self._done: dict[str, int] = {}
        self._made = 0

    async def prepare(self) -> None:
        """Nothing to prepare."""

    def start(self) -> None:
        self._task = self._process.start(self._work())

    async def _work(self) -> None:
        rng, members = self._rng, self._members
        ordinary = (self._move, self._move, self._elect, self._cancel, self._make_topic, self._delete_topic)
        while self._left > 0 or self._changes_left > 0 or members.spares:
            await asyncio.sleep(rng.expovariate(1 / PAUSE_SECONDS))
            if members.spares and rng.random() < 0.5:
                members.join()
            elif rng.random() * (self._left + self._changes_left) < self._left:
                self._left -= 1
                await self._do(rng.choice(ordinary))
            elif self._changes_left > 0:
                self._changes_left -= 1
                await self._do(rng.choice(members.changes))

    async def _do(self, what: Callable[[Admin], Awaitable[None]]) -> None:
        name = what.__name__.strip("_")
        self._stage.around.tell(f"operator: {name}")
        try:
            async with Admin(self._stage.around.options("operator", self._rng)) as admin:
                await what(admin)
            self._done[name] = self._done.get(name, 0) + 1
        except (ClientError, ApiError) as error:
            self._stage.around.tell(f"operator: {name} failed: {error}")

    async def _move(self, admin: Admin) -> None:
        """Reassign some partitions of the run to other replicas, in another order."""
        chosen = [partition for partition in self._stage.around.partitions if self._rng.random() < 0.7]
        moves = {each: self._rng.sample(self._members.brokers, REPLICAS) for each in chosen}
        (await admin.replicas.reassign_each(moves)).answered()

    async def _cancel(self, admin: Admin) -> None:
        moves = await admin.replicas.reassignments()
        if moves:
            (await admin.replicas.cancel_each([move.partition for move in moves])).answered()

    async def _elect(self, admin: Admin) -> None:
        await admin.replicas.elect_each()

    async def _make_topic(self, admin: Admin) -> None:
        self._made += 1
        await admin.topics.create(f"made-{self._made}", self._rng.randint(1, 3))

    async def _delete_topic(self, admin: Admin) -> None:
        if self._made:
            await admin.topics.delete(f"made-{self._made}")

    async def finish(self) -> None:
        """Wait until every reassignment has completed, and every waiting controller has become a voter."""
        assert self._task is not None
        await self._task
        await self._process.start(self._until(self._no_moves, "reassignments do not come to an end"))
        await self._process.start(self._until(self._members.settle, "voters cannot be changed"))

    @staticmethod
    async def _no_moves(admin: Admin) -> bool:
        return not await admin.replicas.reassignments()

    async def _until(self, done: Callable[[Admin], Awaitable[bool]], otherwise: str) -> None:
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            try:
                async with Admin(self._stage.around.options("operator", self._rng)) as admin:
                    if await done(admin):
                        return
            except (ClientError, ApiError) as error:
                self._stage.around.tell(f"operator: not yet: {error}")
            if asyncio.get_running_loop().time() > deadline:
                self._stage.around.history.blame(f"{otherwise} although all faults are over")
                return
            await asyncio.sleep(0.5)

    async def look(self) -> None:
        """Check that brokers which were unregistered stay so."""
        for broker in self._members.remembered():
            self._stage.around.history.blame(f"broker {broker} was forgotten, and is still known")

    def facts(self) -> dict[str, int]:
        return {f"operator: {name}": count for name, count in self._done.items()}
