"""Simulated machines that run real nodes: starting, killing and restarting them, their clocks and disks.

A `SimMachine` outlives its nodes. Each start makes a new `SimHost` (so that no code of the previous incarnation goes on
running), finds the disk as the last crash left it, and runs `ottla.server.node.Node` on it; a supervisor starts the
node again whenever it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from concurrent.futures import Executor

from ottla.client.connection import Address
from ottla.cluster.state import JournalError
from ottla.log.files.disk import Disk
from ottla.server.api.dispatch import load_handlers
from ottla.server.node import Node
from ottla.server.ports.ports import Ports
from ottla.sim.world.disk import Crash, SimDisk
from ottla.sim.world.loop import SimLoop
from ottla.sim.world.net import SimNet
from ottla.testing.faults import FaultScript

# A node imports a handler in a worker at its first request. Load all now, so that a run does not depend on earlier
# runs.
load_handlers()

PORT = 9092
CONTROLLER_PORT = 9093
EPOCH_MS = 1_700_000_000_000  # the wall clock at virtual time zero


class SimClock:
    """The wall clock of a machine: virtual time plus an error."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.error_ms = 0

    def now_ms(self) -> int:
        return EPOCH_MS + int(self._loop.time() * 1000) + self.error_ms


class SimMachine:
    """One broker machine and the node on it."""

    def __init__(
        self,
        name: str,
        net: SimNet,
        settings: dict[str, str],
        rng: random.Random,
        tell: Callable[[str], None],
        executor: Executor | None = None,
    ) -> None:
        """With an `executor` (whose threads belong to the loop, see `SimLoop.run_in_executor`) the node syncs in
        workers, as real nodes do.
        """
        self.name = name
        self.net = net
        self.loop = net.loop
        self.host = net.add_host(name)
        self.disks = {path: SimDisk(random.Random(rng.random())) for path in settings["log.dirs"].split(",")}
        self.clock = SimClock(net.loop)
        self.settings = settings
        self.script = FaultScript()  # which requests fail before they reach the node
        self.follows_script = False  # whether the node uses `script`: requests take another code path then
        self.node: Node | None = None  # set while the node is ready
        self.incarnation: Node | None = None  # set from the creation of a node until that of the next one
        self.failures: list[str] = []  # failed starts and stops on a healthy disk
        self.damaged = False  # its metadata was damaged, so it may refuse to start
        self.scars: list[str] = []  # files that were damaged
        self.replaced = 0  # how often its disks were replaced because it refused
        self.on_crash: Callable[[Crash], None] = lambda _: None  # called before anything is lost
        self._rng = rng
        self._tell = tell
        self._executor = executor
        self._ended = asyncio.Event()
        self._ready = asyncio.Event()
        self._crash: Crash | None = None
        self._stopping = False
        self._retired = False
        self._refused = False  # the node refused to start because its metadata is damaged
        self._ends = 0
        for disk in self.disks.values():
            disk.on_operation = self._note_operation

    @property
    def address(self) -> Address:
        return Address(self.host.address, PORT)

    @property
    def running(self) -> bool:
        return self._ready.is_set() and self.host.alive

    @property
    def ends(self) -> int:
        """How many incarnations of the node have ended."""
        return self._ends

    async def wait_until_ready(self) -> None:
        await self._ready.wait()

    async def wait_until_ended(self) -> None:
        await self._ended.wait()

    # -- life

    async def supervise(self) -> None:
        """Start the node again and again until the machine is retired."""
        self._retired = False
        while not self._retired:
            self._begin()
            await self._ended.wait()
            self._ready.clear()
            self.node = None
            if self._crash is not None:
                self.disks = {path: disk.crash(self._crash) for path, disk in self.disks.items()}
                self._crash = None
            await asyncio.sleep(self._rng.uniform(0.05, 2.0))
            if self._refused:
                self._replace_disks()
            self.host = self.net.replace_host(self.host)

    def _replace_disks(self) -> None:
        """Give a machine that cannot read its metadata empty disks, as its operator would."""
        self._tell(f"{self.name} gets empty disks")
        self.replaced += 1
        self._refused = self.damaged = False
        self.disks = {path: SimDisk(disk.rng, disk.faults) for path, disk in self.disks.items()}
        for disk in self.disks.values():
            disk.on_operation = self._note_operation

    def _begin(self) -> None:
        self._ended.clear()
        self._stopping = False
        self.loop.task_of(self.host, self._run())

    async def _run(self) -> None:
        """Run the node. This task belongs to the host: a crash ends it without any cleanup."""
        ports = Ports(
            disk=self._disk_at,
            net=self.net.view(self.host),
            now_ms=self.clock.now_ms,
            rng=random.Random(self._rng.random()),
            executor=self._executor,
        )
        try:
            node = self.incarnation = Node(
                self.settings, ports, intercept=self.script.intercept if self.follows_script else None
            )
            await node.start()
        except Exception as error:
            self._failed("start", error)
            self._exit()
            return
        self.node = node
        self._tell(f"{self.name} is ready")
        self._ready.set()

    def _disk_at(self, path: str) -> Disk:
        return self.disks[path]

    def crash(self, kind: Crash) -> None:
        """End the present incarnation at this very moment."""
        if not self.host.alive:
            return
        self._tell(f"{self.name} crashes: {kind.value}")
        self._ends += 1
        self._crash = kind
        self.on_crash(kind)
        self.loop.kill(self.host)
        if kind is Crash.POWER:
            self.net.vanish(self.host)
        else:
            self.net.close_all(self.host)
        self._ended.set()

    def crash_within(self, kind: Crash, disk: SimDisk, operations: int) -> None:
        disk.crash_within(operations, lambda: self.crash(kind))

    def restart(self) -> None:
        """Stop the node as an operator would; the supervisor starts it again."""
        if self.running and not self._stopping:
            self._stopping = True
            self._ends += 1
            self.loop.task_of(self.host, self._stop())

    async def repair(self) -> None:
        """Restart a node that runs without some of its disks, as the operator does when all disks work again."""
        while not self._ready.is_set() and not self._retired:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await self._ready.wait()
        node = self.node
        if node is None or self._retired:
            return
        if len(node.storage.directories) < len(self.disks) or any(each.offline for each in node.storage.directories):
            self.restart()
            await self._ended.wait()
            await self._ready.wait()

    async def retire(self) -> None:
        """Stop the node cleanly and do not start it again (until it is supervised again)."""
        await self._ready.wait()
        self._retired = True
        self.restart()
        await self._ended.wait()

    async def _stop(self) -> None:
        assert self.node is not None
        self._tell(f"{self.name} stops")
        try:
            await self.node.stop()
        except Exception as error:
            self._failed("stop", error)
        self._exit()

    def _exit(self) -> None:
        """End the process; its kernel closes its connections."""
        self.loop.kill(self.host)
        self.net.close_all(self.host)
        self._ended.set()

    def _failed(self, what: str, error: Exception) -> None:
        self._tell(f"{self.name} cannot {what}: {error!r}")
        if self.damaged and what == "start" and isinstance(error, JournalError):
            self._refused = True
        elif all(disk.faults.healthy for disk in self.disks.values()):
            self.failures.append(f"{self.name} cannot {what}: {error!r}")

    def _note_operation(self, what: str, path: str, size_bytes: int) -> None:
        self.loop.note("disk", self.name, what, path, size_bytes)

    # -- faults

    def pause(self) -> None:
        self.loop.pause(self.host)

    def resume(self) -> None:
        self.loop.resume(self.host)
