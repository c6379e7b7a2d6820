"""Operators at work while things go wrong: they move replicas, elect preferred leaders, make and delete topics, and add
brokers.

What they ask for may fail, be refused or be half done when the faults are over: then the moves that are under way must
come to an end by themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.sim.process import Stage
from ottla.sim.replicated.scenario import REPLICAS
from ottla.sim.workload import PATIENCE_SECONDS

PAUSE_SECONDS = 1.5


class Operators:
    """A company of one."""

    def __init__(
        self, stage: Stage, operations: int, brokers: Sequence[int], spares: Sequence[int], start: Callable[[int], None]
    ) -> None:
        self._stage = stage
        self._left = operations
        self._brokers = list(brokers)
        self._spares = list(spares)
        self._start = start
        self._rng = stage.stream("operators")
        self._process = stage.process("operator")
        self._task: asyncio.Task[None] | None = None
        self._done: dict[str, int] = {}
        self._made = 0

    async def prepare(self) -> None:
        """Nothing."""

    def start(self) -> None:
        self._task = self._process.start(self._work())

    async def _work(self) -> None:
        rng = self._rng
        while self._left > 0 or self._spares:
            await asyncio.sleep(rng.expovariate(1 / PAUSE_SECONDS))
            if self._spares and rng.random() < 0.5:
                spare = self._spares.pop()
                self._stage.around.tell(f"operator: broker {spare} joins")
                self._start(spare)
                self._brokers.append(spare)
                continue
            self._left -= 1
            what = rng.choice((self._move, self._move, self._elect, self._cancel, self._make_topic, self._delete_topic))
            name = what.__name__.strip("_")
            self._stage.around.tell(f"operator: {name}")
            try:
                async with Admin(self._stage.around.options("operator", rng)) as admin:
                    await what(admin)
                self._done[name] = self._done.get(name, 0) + 1
            except (ClientError, ApiError) as error:
                self._stage.around.tell(f"operator: {name} failed: {error}")

    async def _move(self, admin: Admin) -> None:
        """Some partitions of the run to other replicas, in another order."""
        chosen = [partition for partition in self._stage.around.partitions if self._rng.random() < 0.7]
        await admin.replicas.reassign({each: self._rng.sample(self._brokers, REPLICAS) for each in chosen})

    async def _cancel(self, admin: Admin) -> None:
        moves = await admin.replicas.reassignments()
        if moves:
            await admin.replicas.cancel([move.partition for move in moves])

    async def _elect(self, admin: Admin) -> None:
        await admin.replicas.elect()

    async def _make_topic(self, admin: Admin) -> None:
        self._made += 1
        await admin.topics.create(f"made-{self._made}", self._rng.randint(1, 3))

    async def _delete_topic(self, admin: Admin) -> None:
        if self._made:
            await admin.topics.delete(f"made-{self._made}")

    async def finish(self) -> None:
        """Every move must come to an end now."""
        assert self._task is not None
        await self._task

        async def wait() -> None:
            deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
            while True:
                try:
                    async with Admin(self._stage.around.options("operator", self._rng)) as admin:
                        if not await admin.replicas.reassignments():
                            return
                except (ClientError, ApiError) as error:
                    self._stage.around.tell(f"operator: cannot list moves: {error}")
                if asyncio.get_running_loop().time() > deadline:
                    self._stage.around.history.blame("reassignments do not come to an end although all faults are over")
                    return
                await asyncio.sleep(0.5)

        await self._process.start(wait())

    async def look(self) -> None:
        """Nothing."""

    def facts(self) -> dict[str, int]:
        return {f"operator: {name}": count for name, count in self._done.items()}
