"""Operators that change topics while they are used: their settings, their log starts, and by deleting and creating
them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from ottla.client.admin import Admin
from ottla.client.consumer.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.sim.topics.check import FOREVER, TopicBook
from ottla.sim.topics.plan import COMPRESSIONS, POLICIES, TopicPlan, TopicsPlan
from ottla.sim.workload import PATIENCE_SECONDS, Surroundings

# A deletion whose request failed may still take effect: wait longer than any request lives.
IN_DOUBT_SECONDS = 15.0
_TIGHT = ({"retention.ms": "2000"}, {"retention.bytes": "3000"}, FOREVER, FOREVER)


class TopicOperator:
    """Changes one topic after the other."""

    def __init__(self, around: Surroundings, plan: TopicsPlan, book: TopicBook, rng: random.Random) -> None:
        self._around = around
        self._plan = plan
        self._book = book
        self._rng = rng
        self._stopped = False
        self.done: dict[str, int] = {}
        self._changes: dict[str, Callable[[Admin, TopicPlan], Awaitable[None]]] = {
            "policy": lambda admin, topic: self._set(admin, topic, {"cleanup.policy": rng.choice(POLICIES)}),
            "compression": lambda admin, topic: self._set(admin, topic, {"compression.type": rng.choice(COMPRESSIONS)}),
            "segments": lambda admin, topic: self._set(
                admin, topic, {"internal.segment.bytes": str(rng.choice((1024, 4096, 1 << 20)))}
            ),
            "retention": lambda admin, topic: self._set(admin, topic, rng.choice(_TIGHT)),
            "erase": self._erase,
            "recreate": self._recreate,
            "settle": lambda admin, topic: self._set(admin, topic, FOREVER),
        }

    def stop(self) -> None:
        """Make no further change; one that is in progress is finished."""
        self._stopped = True

    async def make_all(self) -> None:
        """Create all topics before any fault happens."""
        async with Admin(self._around.options("operator", self._rng)) as admin:
            for topic in self._plan.topics:
                created = await admin.topics.create(topic.name, topic.partitions, configs=topic.configs)
                self._book.made(topic.name, topic.partitions, topic.configs, topic_id=created.topic_id)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._rng.expovariate(1 / self._plan.pause_between_changes_seconds))
            if self._stopped:
                return
            change, topic = self._rng.choice(self._plan.changes), self._rng.choice(self._plan.topics)
            self._around.tell(f"operator: {change} of {topic.name}")
            await self._until_done(change, topic)

    async def _until_done(self, change: str, topic: TopicPlan) -> None:
        """Retry a change until it is done if it deletes or settles a topic; give up other changes that fail."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            try:
                async with Admin(self._around.options("operator", self._rng)) as admin:
                    await self._changes[change](admin, topic)
                self.done[change] = self.done.get(change, 0) + 1
                return
            except (ClientError, ApiError) as error:
                self._around.tell(f"operator: {change} of {topic.name} failed: {error}")
                if change not in ("recreate", "settle"):
                    return
                if asyncio.get_running_loop().time() > deadline:
                    self._around.history.blame(f"{topic.name} cannot be deleted and made anew: {error}")
                    return
                await asyncio.sleep(IN_DOUBT_SECONDS)

    async def settle(self) -> None:
        """After all faults, let no record expire any more."""
        if "retention" in self._plan.changes:
            for topic in self._plan.topics:
                await self._until_done("settle", topic)

    async def _set(self, admin: Admin, topic: TopicPlan, values: dict[str, str]) -> None:
        self._book.configuring(topic.name, values)
        await admin.configs.set(Resource.topic(topic.name), values)

    async def _erase(self, admin: Admin, topic: TopicPlan) -> None:
        partition = TopicPartition(topic.name, self._rng.randrange(topic.partitions))
        start = (await list_offsets(admin.cluster, {partition: EARLIEST}))[partition].offset
        end = (await list_offsets(admin.cluster, {partition: LATEST}))[partition].offset
        before = self._rng.randint(start, (start + end) // 2)
        self._book.erasing(partition, before)
        await admin.topics.delete_records(topic.name, {partition.partition: before})

    async def _recreate(self, admin: Admin, topic: TopicPlan) -> None:
        self._book.deleting(topic.name)
        try:
            await admin.topics.delete(topic.name)
        except ApiError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
        await asyncio.sleep(self._rng.choice((0.0, 0.2, 1.5)))
        topic_id = None
        try:
            topic_id = (await admin.topics.create(topic.name, topic.partitions, configs=topic.configs)).topic_id
        except ApiError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        self._book.made(topic.name, topic.partitions, topic.configs, topic_id=topic_id)
