"""Consumer groups and share groups: everything that is written is delivered at least once, and committed to the end."""

from __future__ import annotations

import asyncio

from tests.chaos.work import PARTITIONS, Entrance, again_and_again, connect, everything, until
from tests.chaos.writers import TOPIC

from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.options import ShareOptions
from ottla.model.ids import TopicPartition

MEMBERS = 2
CATCH_UP_S = 60.0


class Readers:
    """Members that each note what they were given; `name` says of what kind the group is."""

    def __init__(self, name: str, entrance: Entrance) -> None:
        self.name = name
        self._entrance = entrance
        self._delivered: set[tuple[int, int]] = set()
        self._deliveries = 0
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[int]] = []
        self._failures = 0

    def start(self) -> None:
        live = self._share if self.name == "share" else self._member
        self._tasks = [asyncio.create_task(again_and_again(live, self._stop)) for _ in range(MEMBERS)]

    async def _member(self) -> None:
        options = ConsumerOptions(
            group_id=f"chaos-{self.name}",
            group_protocol=self.name,
            session_timeout_ms=10_000,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        async with connect(self._entrance) as cluster, Consumer(cluster, options) as consumer:
            consumer.subscribe([TOPIC])
            while not self._stop.is_set():
                batch = await consumer.poll(timeout_ms=500)
                for partition, records in batch.items():
                    for record in records:
                        self._note(partition.partition, record.offset)
                if batch:
                    await consumer.commit()

    async def _share(self) -> None:
        options = ShareOptions(group_id="chaos-share", acknowledgement_mode="explicit")
        async with connect(self._entrance) as cluster, ShareConsumer(cluster, options) as consumer:
            consumer.subscribe([TOPIC])
            while not self._stop.is_set():
                deliveries = await consumer.poll(timeout_ms=500)
                for delivery in deliveries:
                    # Delivered it is: an acknowledgement whose answer gets lost may count or not.
                    self._note(delivery.partition, delivery.offset)
                    delivery.accept()
                await consumer.commit()

    def _note(self, partition: int, offset: int) -> None:
        self._delivered.add((partition, offset))
        self._deliveries += 1

    async def rest(self) -> None:
        """Goes on until everything that is there was delivered, or for long enough."""
        there = await self._there()

        async def done() -> bool:
            return there <= self._delivered

        await until(done, CATCH_UP_S)
        await asyncio.sleep(1)  # the last commit
        self._stop.set()
        self._failures = sum(await asyncio.gather(*self._tasks))

    async def _there(self) -> set[tuple[int, int]]:
        found = await everything(self._entrance, TOPIC)
        return {(index, offset) for index, entries in found.items() for offset, _ in entries}

    async def judge(self) -> list[str]:
        there = await self._there()
        problems = []
        missing = there - self._delivered
        if missing:
            problems.append(f"{self.name}: {len(missing)} records were never delivered, {min(missing)} first")
        unknown = self._delivered - there
        if unknown:
            problems.append(f"{self.name}: {len(unknown)} delivered records are not there, {min(unknown)} first")
        if self.name != "share":
            problems.extend(await self._uncommitted(there))
        return problems

    async def _uncommitted(self, there: set[tuple[int, int]]) -> list[str]:
        options = ConsumerOptions(group_id=f"chaos-{self.name}", enable_auto_commit=False)
        async with connect(self._entrance) as cluster, Consumer(cluster, options) as consumer:
            partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
            committed = await consumer.committed(partitions)
        problems = []
        for partition in partitions:
            end = 1 + max((offset for index, offset in there if index == partition.partition), default=-1)
            found = committed[partition].offset if partition in committed else 0
            if found != end:
                problems.append(f"{self.name}: {partition} is committed up to {found} of {end}")
        return problems

    def facts(self) -> dict[str, int]:
        return {"deliveries": self._deliveries, "members_given_up": self._failures}
