"""A transactional copier (Kafka's Java clients): what it reads it writes once, whatever happens."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from tests.chaos.work import Entrance, everything, until
from tests.chaos.writers import TOPIC
from tests.support.java.apps import App

OUTPUT = "copies"
CATCH_UP_S = 150.0


class Copier:
    name = "copier"

    def __init__(self, entrance: Entrance, directory: Path) -> None:
        self._entrance = entrance
        words = [entrance.bootstrap, TOPIC, OUTPUT, "chaos-copier", "classic"]
        words += [f"{name}={text}" for name, text in (entrance.security or {}).items()]
        self._app = App(directory / "copier.log", "ottla.Copier", *words)
        self._stop = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._starts = 0
        self._copied = 0

    def start(self) -> None:
        self._keeper = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        while not self._stop.is_set():
            if self._app.ended():
                self._app.kill()
                self._app.start()
                self._starts += 1
            await asyncio.sleep(0.5)

    async def rest(self) -> None:
        """Until it has copied everything, or for long enough."""
        wanted = sum(map(len, (await everything(self._entrance, TOPIC)).values()))

        async def done() -> bool:
            found = await everything(self._entrance, OUTPUT, read_committed=True)
            self._copied = sum(map(len, found.values()))
            return self._copied >= wanted

        await until(done, CATCH_UP_S)
        self._stop.set()
        if self._keeper is not None:
            await self._keeper
        self._app.kill()

    async def judge(self) -> list[str]:
        originals = Counter(b"copy of " + value for value in await self._values(TOPIC))
        copies = Counter(await self._values(OUTPUT))
        missing, surplus = originals - copies, copies - originals
        problems = []
        if missing:
            problems.append(
                f"copier: {missing.total()} of {originals.total()} records were not copied: {self._app.said()}"
            )
        if surplus:
            problems.append(f"copier: {surplus.total()} copies too many")
        return problems

    async def _values(self, topic: str) -> list[bytes]:
        found = await everything(self._entrance, topic, read_committed=True)
        return [value for entries in found.values() for _, value in entries]

    def facts(self) -> dict[str, int]:
        return {"copied": self._copied, "starts": self._starts}
