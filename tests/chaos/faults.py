"""What is done to a cluster of three: at most one node suffers at a time, so that a majority can go on.

Each fault breaks something, lasts for a while and is undone. Which, on whom and how long follows from the seed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from tests.chaos.links import Links
from tests.server.security.secured import SecureCluster
from tests.support.processes.clusters import ProcessCluster

BALLAST = "ballast"
MIB = 1024 * 1024
LASTS_S = (0.5, 6.0)
BETWEEN_S = (0.5, 3.0)
AT_LEAST = 2  # however short the time and busy the machine

Fault = Callable[[int], Awaitable[None]]


class Faults:
    """`links` is None if they cannot be cut; `small_disks`: each data directory is a file system of its own.

    `only`: these kinds of faults, if they can be; by default all.
    """

    def __init__(
        self,
        cluster: ProcessCluster,
        links: Links | None,
        rng: random.Random,
        tell: Callable[[str], None],
        *,
        small_disks: bool,
        only: Collection[str] = (),
    ) -> None:
        self._cluster = cluster
        self._links = links
        self._rng = rng
        self._tell = tell
        self.count = 0
        self.kinds: dict[str, Fault] = {"kill": self.kill, "pause": self.pause, "restart": self.restart}
        if links is not None:
            self.kinds |= {"cut off": self.cut_off, "cut one link": self.cut_link, "deafen": self.deafen}
        if small_disks:
            self.kinds["fill the disk"] = self.fill
        if isinstance(cluster, SecureCluster):
            self.kinds["renew its certificate"] = self.renew
        if only:
            self.kinds = {name: fault for name, fault in self.kinds.items() if name in only}
        assert self.kinds, f"none of {', '.join(only)} can be done here"

    async def play(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        names = sorted(self.kinds)
        order: list[str] = []
        while loop.time() < end or self.count < AT_LEAST:
            if not order:  # each kind once before any comes again
                order = self._rng.sample(names, len(names))
            await self.strike(order.pop())
            await asyncio.sleep(self._rng.uniform(*BETWEEN_S))

    async def strike(self, kind: str) -> None:
        victim = self._rng.choice(self._cluster.ids)
        self._tell(f"{kind}: node {victim}")
        self.count += 1
        await self.kinds[kind](victim)

    async def _while(self) -> None:
        await asyncio.sleep(self._rng.uniform(*LASTS_S))

    async def kill(self, victim: int) -> None:
        await asyncio.to_thread(self._cluster.kill, victim)
        await self._while()
        await asyncio.to_thread(self._cluster.start_node, victim)

    async def restart(self, victim: int) -> None:
        await asyncio.to_thread(self._cluster.stop_node, victim)
        await asyncio.to_thread(self._cluster.start_node, victim)

    async def pause(self, victim: int) -> None:
        self._cluster.pause(victim)
        await self._while()
        await asyncio.sleep(self._rng.choice((0, 0, 8)))  # now and then beyond the session time-outs
        self._cluster.resume(victim)

    async def renew(self, victim: int) -> None:
        """Another certificate in the same file, which the node finds by itself while it serves."""
        assert isinstance(self._cluster, SecureCluster)
        self._cluster.renew(victim)
        await self._while()

    async def cut_off(self, victim: int) -> None:
        """From the other nodes, in both directions; clients still reach it."""
        await self._cut([pair for other in self._others(victim) for pair in ((victim, other), (other, victim))])

    async def cut_link(self, victim: int) -> None:
        other = self._rng.choice(self._others(victim))
        await self._cut([(victim, other), (other, victim)])

    async def deafen(self, victim: int) -> None:
        """It hears nobody, but everybody hears it."""
        await self._cut([(other, victim) for other in self._others(victim)])

    def _others(self, victim: int) -> list[int]:
        return [id for id in self._cluster.ids if id != victim]

    async def _cut(self, pairs: list[tuple[int, int]]) -> None:
        assert self._links is not None
        for pair in pairs:
            self._links.cut(*pair)
        await self._while()
        await asyncio.sleep(self._rng.choice((0, 0, 8)))
        self._links.heal()

    async def fill(self, victim: int) -> None:
        """A node that cannot write may go down with it; then it is started again when there is room."""
        ballast = self._cluster.data_directory(victim) / BALLAST
        await asyncio.to_thread(fill, ballast)
        await self._while()
        ballast.unlink()
        if not self._cluster.is_alive(victim):
            self._tell(f"node {victim} went down with its disk")
            self._cluster.kill(victim)
            await asyncio.to_thread(self._cluster.start_node, victim)


def fill(path: Path) -> None:
    chunk = b"\0" * MIB
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(chunk) == MIB:
                pass
        except OSError:
            return  # that is what was wanted
