"""Verified producers: idempotent, acks=all; what was acknowledged must be there, once, in order, with its content."""

from __future__ import annotations

import asyncio

from tests.chaos.content import value_of, written
from tests.chaos.work import PARTITIONS, Entrance, again_and_again, connect, everything

from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.records.compress import Codec

TOPIC = "verified"
CODECS = (Codec.NONE, Codec.LZ4, Codec.ZSTD)
BURST = 5
PACE_S = 0.05


class Writers:
    name = "writers"

    def __init__(self, entrance: Entrance, count: int = 3) -> None:
        self._entrance = entrance
        self.acknowledged: dict[str, list[int]] = {f"w{number}": [] for number in range(count)}
        self._next = dict.fromkeys(self.acknowledged, 0)
        self._stop = asyncio.Event()
        self._tasks: list[asyncio.Task[int]] = []
        self._failures = 0

    def start(self) -> None:
        for position, writer in enumerate(self.acknowledged):
            self._tasks.append(asyncio.create_task(self._write(writer, position)))

    async def _write(self, writer: str, position: int) -> int:
        async def life() -> None:
            options = ProducerOptions(
                codec=CODECS[position % 3], linger_ms=2, request_timeout_ms=8_000, delivery_timeout_ms=60_000
            )
            async with connect(self._entrance) as cluster, Producer(cluster, options) as producer:
                while not self._stop.is_set():
                    await self._burst(producer, writer, position % PARTITIONS)
                    await asyncio.sleep(PACE_S)

        return await again_and_again(life, self._stop)

    async def _burst(self, producer: Producer, writer: str, partition: int) -> None:
        """Numbers are never used twice: one whose fate is unknown may be there or not, but not again."""
        numbers = range(self._next[writer], self._next[writer] + BURST)
        self._next[writer] += BURST
        futures = [await producer.enqueue(TOPIC, value_of(writer, number), partition=partition) for number in numbers]
        for number, outcome in zip(numbers, await asyncio.gather(*futures, return_exceptions=True), strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            self.acknowledged[writer].append(number)

    async def rest(self) -> None:
        self._stop.set()
        self._failures = sum(await asyncio.gather(*self._tasks))

    async def judge(self) -> list[str]:
        problems: list[str] = []
        seen: dict[str, list[int]] = {writer: [] for writer in self.acknowledged}
        for index, entries in (await everything(self._entrance, TOPIC)).items():
            if [offset for offset, _ in entries] != list(range(len(entries))):
                problems.append(f"{TOPIC}-{index} has gaps")
            for _, value in entries:
                said = written(value)
                seen[said.writer].append(said.number)
        for writer, numbers in seen.items():
            if sorted(set(numbers)) != numbers:
                problems.append(f"{writer}: records are there twice or out of order")
            lost = set(self.acknowledged[writer]) - set(numbers)
            if lost:
                problems.append(f"{writer}: {len(lost)} acknowledged records are lost, {min(lost)} first")
        return problems

    def facts(self) -> dict[str, int]:
        return {"acknowledged": sum(map(len, self.acknowledged.values())), "producers_given_up": self._failures}
