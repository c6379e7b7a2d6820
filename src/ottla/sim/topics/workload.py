"""Topics that change, as a part of any run: their writers, readers and operators, and the final checks."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Sequence
from typing import Any

from ottla.sim.cluster import SimMachine
from ottla.sim.process import WorkloadStage
from ottla.sim.topics.check import TopicBook
from ottla.sim.topics.clients import CommittedFollower, KeyedWriter, judge_all
from ottla.sim.topics.operator import TopicOperator
from ottla.sim.topics.plan import TopicsPlan
from ottla.sim.topics.staying_members import StayingMember

WRITERS_SECONDS_MAX = 300.0  # they must have finished so long after the last fault
STRANGER = "photos-2024"
PICTURE = (f"{STRANGER}/a.jpg", b"somebody else's")


class TopicWorkload:
    """All participants; see the module."""

    def __init__(
        self, stage: WorkloadStage, plan: TopicsPlan, machines: Sequence[SimMachine], *, replicated: bool = False
    ) -> None:
        around = stage.around
        self.book = TopicBook(around.history.blame, replicated=replicated)
        self._stage = stage
        self._plan = plan
        self._machines = machines
        self._operator = TopicOperator(around, plan, self.book, stage.stream("topic operator"))
        self._writers = [
            KeyedWriter(around, plan, each, self.book, stage.stream(f"keyed {each.number}")) for each in plan.writers
        ]
        self._follower = CommittedFollower(around, plan, self.book, stage.stream("follower"))
        self._staying = [
            StayingMember(around, plan, number, stage.stream(f"sitter {number}"))
            for number in range(plan.staying_members)
        ]
        self._strangers: list[SimMachine] = []  # machines with foreign files in their data directories
        self._working: list[asyncio.Task[None]] = []
        self._watching: list[asyncio.Task[None]] = []

    async def prepare(self) -> None:
        await self._as_client("topic-operator", self._operator.make_all())
        if self._plan.strangers:
            self._strangers = list(self._machines)
        for machine in self._strangers:
            _leave_a_picture(machine)

    def start(self) -> None:
        self._working = [self._as_client("topic-operator", self._operator.run())]
        self._working += [self._as_client(f"keyed-{n}", each.run()) for n, each in enumerate(self._writers)]
        self._watching = [self._as_client("follower", self._follower.run())]
        self._watching += [self._as_client(f"sitter-{n}", each.run()) for n, each in enumerate(self._staying)]

    async def finish(self) -> None:
        self._operator.stop()
        for writer in self._writers:
            writer.stopped = True
        _, unfinished = await asyncio.wait(self._working, timeout=WRITERS_SECONDS_MAX)
        if unfinished:
            self._blame(f"{len(unfinished)} users of topics did not finish although all faults are over")
        for task in [*self._working, *self._watching]:
            task.cancel()
        for result in await asyncio.gather(*self._working, *self._watching, return_exceptions=True):
            if isinstance(result, Exception):
                self._blame(f"a user of topics failed: {''.join(traceback.format_exception(result))}")
        await self._as_client("topic-operator", self._operator.settle())
        await self.look()

    async def look(self) -> None:
        await self._as_client("topic-reader", judge_all(self._stage.around, self._plan, self.book, self._rng))
        for machine in self._strangers:
            self._look_at_the_picture(machine)

    def facts(self) -> dict[str, int]:
        book = self.book
        counts = {
            "keyed": len(book.sent),
            "placed": book.acknowledged,
            "followed": book.reads,
            "compacted away": book.excused,
            "committed transactions": book.committed,
            "topics made anew": book.made_anew,
        }
        return counts | {f"operator: {what}": count for what, count in self._operator.done.items()}

    @property
    def _rng(self) -> random.Random:
        return self._stage.stream("topic reader")

    def _blame(self, what: str) -> None:
        self._stage.around.history.blame(what)

    def _as_client(self, name: str, work: Any) -> asyncio.Task[None]:
        return self._stage.process(name).start(work)

    def _look_at_the_picture(self, machine: SimMachine) -> None:
        for path, disk in machine.disks.items():
            kept = {each: disk.content(each) for each in disk.paths() if each.startswith(STRANGER)}
            if kept != dict([PICTURE]) and not machine.replaced:
                self._blame(f"{machine.name}: {path}/{PICTURE[0]} is not ours, and is gone; there is {list(kept)}")


def _leave_a_picture(machine: SimMachine) -> None:
    """Make a foreign directory whose name looks like that of a partition."""
    path, content = PICTURE
    for disk in machine.disks.values():
        disk.make_directory(STRANGER)
        file = disk.open(path, create=True)
        file.append(content)
        file.sync()
        disk.sync_directory(STRANGER)
        disk.sync_directory("")
