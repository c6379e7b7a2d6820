"""Consumers that join a group and stay. If only the clock is disturbed, no member may be considered dead."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.sim.topics.plan import TopicsPlan
from ottla.sim.workload import Surroundings

SETTLED_SECONDS = 12.0  # after so long all members have joined, and know it: twice the pause between two heartbeats
GROUP = "sitters"


class StayingMember:
    """One member; from `settled_at` on the group must be stable."""

    def __init__(self, around: Surroundings, plan: TopicsPlan, number: int, rng: random.Random) -> None:
        self._around = around
        self._plan = plan
        self._number = number
        self._rng = rng
        self._settled_at = 0.0
        self.lasted = 0  # polls in the generation in which the group became stable

    async def run(self) -> None:
        self._settled_at = asyncio.get_running_loop().time() + SETTLED_SECONDS
        options = ConsumerOptions(
            group_id=GROUP,
            group_protocol=self._plan.protocol,
            session_timeout_ms=45_000 if self._plan.protocol == "classic" else 10_000,
            heartbeat_interval_ms=1_000,
            enable_auto_commit=True,
            auto_offset_reset="earliest",
        )
        while True:
            try:
                async with Consumer(self._around.options(f"sitter-{self._number}", self._rng), options) as consumer:
                    consumer.subscribe([topic.name for topic in self._plan.topics], self)
                    await self._sit(consumer)
            except (ClientError, ApiError) as error:
                self._blame(f"failed: {error!r}")
                await asyncio.sleep(0.5)

    async def _sit(self, consumer: Consumer) -> None:
        generation = -1
        while True:
            await consumer.poll(timeout_ms=500)
            now = consumer.group_metadata().generation_id
            if asyncio.get_running_loop().time() < self._settled_at:
                generation = now
                continue
            if now != generation:
                self._blame(f"was in generation {generation} and is in {now}")
                generation = now
            self.lasted += 1

    def _blame(self, what: str) -> None:
        if asyncio.get_running_loop().time() >= self._settled_at:
            self._around.history.blame(f"sitter {self._number} {what}, though only clocks jump")

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._around.tell(f"sitter {self._number} owns {[str(each) for each in partitions]}")

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Nothing to do: others join at the beginning."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._blame("lost its partitions")
