"""One simulation from beginning to end: start, work under chaos, repair, read everything, restart, read it again.

The result lists every violation: of the history's claims, errors that reached the loop or were logged with a traceback,
nodes that did not start or stop, and simulations that did not end.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import random
import traceback
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.client.connection import Address
from ottla.log.files.disk import StorageError
from ottla.log.files.names import STRAY_DIRECTORY
from ottla.log.offline.findings import Severity
from ottla.log.offline.verify import verify
from ottla.model.ids import TopicPartition
from ottla.sim.check import Guarantee, History
from ottla.sim.cluster import SimMachine
from ottla.sim.faults import Chaos
from ottla.sim.process import Workload, WorkloadStage
from ottla.sim.scaled import scaled
from ottla.sim.scenario import Scenario, SimFault
from ottla.sim.workload import (
    Eraser,
    FollowingReader,
    JumpingReader,
    Surroundings,
    WritingClient,
    create_topic,
    read_everything,
)
from ottla.sim.world.disk import Crash
from ottla.sim.world.loop import SimHost, SimLoop, SimulationError
from ottla.sim.world.net import SimNet

TOPIC = "t"
WORK_SECONDS_MAX = 900.0  # writers must have finished so long after the last fault


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a simulation."""

    seed: int
    violations: list[str]
    trace: str
    virtual_seconds: float
    facts: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.violations


class Simulation:
    """The simulation of one scenario; `run` may be called once."""

    step_limit = 600_000

    def __init__(self, scenario: Scenario, tell: Callable[[str], None] | None = None) -> None:
        self.scenario = scenario
        self._listener = tell
        self._rng = random.Random(f"simulation {scenario.seed}")
        self.loop = SimLoop(self._stream("loop"), step_limit=self.step_limit)
        self.net = SimNet(self.loop, self._stream("net"), scenario.quality)
        self.history = self._history()
        self.machines = self._machines()
        for machine in self.machines:
            machine.follows_script = SimFault.ANSWERS in scenario.faults
            for disk in machine.disks.values():
                disk.faults.garbage_rate = scenario.garbage_rate
        self._clients: list[SimHost] = []
        self._around = Surroundings(
            bootstrap=self._bootstrap(),
            partitions=tuple(TopicPartition(TOPIC, index) for index in range(scenario.partitions)),
            history=self.history,
            now_ms=self.machines[0].clock.now_ms,
            tell=self.tell,
        )
        self.workloads: list[Workload] = []  # clients beside the plain writers and readers
        self._logged: list[str] = []
        self._chaos_done: dict[str, int] = {}

    @property
    def stage(self) -> WorkloadStage:
        return WorkloadStage(self._around, self.net, self._disturbances, self._clients, self._stream)

    @property
    def machine(self) -> SimMachine:
        """The only machine, where there is just one."""
        return self.machines[0]

    def _history(self) -> History:
        return History(self.scenario.guarantee)

    def _machines(self) -> list[SimMachine]:
        return [SimMachine("node-0", self.net, self._settings(), self._stream("machine"), self.tell)]

    def _bootstrap(self) -> tuple[Address, ...]:
        return tuple(machine.address for machine in self.machines)

    def _disturbances(self) -> int:
        return sum(machine.ends for machine in self.machines)

    def _stream(self, name: str) -> random.Random:
        """Return an independent random stream, so that one more draw in one place does not change all others."""
        return random.Random(f"{name} {self.scenario.seed}")

    def _settings(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "0",
            "listeners": f"PLAINTEXT://:{9092}",
            "log.dirs": ",".join(f"data-{number}" for number in range(self.scenario.log_dirs)),
        }

    def tell(self, what: str) -> None:
        if self._listener is not None:
            self._listener(f"{self.loop.time():10.4f}  {what}")

    # -- running

    def run(self) -> Outcome:
        for line in self.scenario.lines():
            self.tell(line)
        with _no_collector(), self._watched_log(), scaled(self._limits()):
            try:
                self.loop.run_until_complete(self._main())
            except SimulationError as error:
                self.history.blame(str(error))
            except Exception as error:
                self.history.blame("".join(traceback.format_exception(error)))
            failures = [failure for machine in self.machines for failure in machine.failures]
            violations = [*self.history.violations, *failures, *self._logged, *self._loop_errors()]
            outcome = Outcome(self.scenario.seed, violations, self.loop.trace, self.loop.time(), self._facts())
            self.loop.bury()
        return outcome

    def _limits(self) -> Mapping[str, object]:
        """Return the limits of the nodes that are small in this run."""
        return {}

    def _facts(self) -> dict[str, int]:
        history = self.history
        counts = {"sent": len(history.sent), "acknowledged": history.acknowledged, "read": history.reads}
        for workload in self.workloads:
            counts |= workload.facts()
        return counts | self._chaos_done

    async def _main(self) -> None:
        supervisor = self.loop.create_task(self.machine.supervise())
        await self._work()
        await self._retire()
        await supervisor
        self._verify_disks()

    async def _work(self) -> None:
        """Run everything from creating the topic to the last check."""
        await self._begin()
        for workload in self.workloads:
            await workload.prepare()
        writers, readers = self._start_clients()
        for workload in self.workloads:
            workload.start()
        await self._run_chaos()
        unfinished = (await asyncio.wait(writers, timeout=WORK_SECONDS_MAX))[1] if writers else None
        if unfinished:
            self.history.blame(f"{len(unfinished)} writers did not finish although all faults are over")
        await self._end(readers, "reader")
        await self._end(writers, "writer")
        for workload in self.workloads:
            await workload.finish()
        await self._look_again()

    async def _begin(self) -> None:
        """Wait until clients can work: no fault happens before."""
        await self.machine.wait_until_ready()
        await self._as_client("admin", create_topic(self._around, self.scenario.topic_configs, self._stream("admin")))

    def _start_clients(self) -> tuple[list[asyncio.Task[None]], list[asyncio.Task[None]]]:
        """Start the writers, and the clients that work until the writers have finished."""
        scenario = self.scenario
        writers = [
            self._as_client(f"writer-{plan.writer.number}", self._writer(plan).run()) for plan in scenario.writers
        ]
        readers = [
            *(self._as_client(f"reader-{n}", self._reader(n).run()) for n in range(scenario.following_readers)),
            *(self._as_client(f"jumper-{n}", self._jumper(n).run()) for n in range(scenario.jumping_readers)),
            *(self._as_client("eraser", self._eraser(n).run()) for n in range(scenario.erasers)),
        ]
        return writers, readers

    async def _run_chaos(self) -> None:
        chaos = Chaos(self.scenario, self.net, self.machines, self._clients, self._stream("chaos"), self.tell)
        await chaos.run()
        await self.machine.repair()
        self._chaos_done = {fault.value: count for fault, count in chaos.done.items()}

    async def _retire(self) -> None:
        await self.machine.retire()

    def _verify_disks(self) -> None:
        """Verify, file by file, that a clean stop leaves sound files."""
        if self.scenario.guarantee is Guarantee.ROTTEN:
            return
        for machine in self.machines:
            for path, disk in machine.disks.items():
                for finding in verify(disk):
                    # Stray directories stay as a crash left them: they are not recovered, because nothing reads them.
                    ignored = (f"{STRAY_DIRECTORY}/", *machine.scars)
                    if finding.severity is Severity.ERROR and not any(each in str(finding) for each in ignored):
                        self.history.blame(f"{machine.name}, {path} after a clean stop: {finding}")

    async def _look_again(self) -> None:
        """Check that everything is there now, after a clean restart, and after one more crash."""
        for step in (None, self.machine.restart, lambda: self.machine.crash(Crash.PROCESS)):
            if step is not None:
                await self.machine.wait_until_ready()
                step()
                await asyncio.sleep(5)
            await self._as_client("last-reader", read_everything(self._around, self._stream("last reader")))
            for workload in self.workloads:
                await workload.look()

    async def _end(self, tasks: list[asyncio.Task[None]], kind: str) -> None:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                self.history.blame(f"a {kind} failed: {''.join(traceback.format_exception(result))}")

    def _as_client(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        host = self.net.add_host(name)
        self._clients.append(host)
        return self.loop.task_of(host, work)

    def _writer(self, plan: Any) -> WritingClient:
        self.history.add_writer(plan.writer)
        return WritingClient(self._around, plan, self._stream(f"writer {plan.writer.number}"))

    def _reader(self, number: int) -> FollowingReader:
        return FollowingReader(self._around, number, self._stream(f"reader {number}"))

    def _jumper(self, number: int) -> JumpingReader:
        return JumpingReader(self._around, number, self._stream(f"jumper {number}"))

    def _eraser(self, number: int) -> Eraser:
        return Eraser(self._around, self._stream(f"eraser {number}" if number else "eraser"))

    # --- errors outside the history

    def _loop_errors(self) -> list[str]:
        return [
            f"{error.get('host')}: {error.get('message')}"
            + "".join(traceback.format_exception(error["exception"]) if error.get("exception") else ())
            for error in self.loop.errors
        ]

    @contextlib.contextmanager
    def _watched_log(self) -> Iterator[None]:
        handler = _LogWatcher(self)
        logger = logging.getLogger("ottla")
        logger.addHandler(handler)
        propagate, logger.propagate = logger.propagate, False
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.propagate = propagate


class _LogWatcher(logging.Handler):
    """Adds the node's log to the story; a traceback in it is a bug, unless a disk was told to fail."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(logging.INFO)
        self._simulation = simulation

    def emit(self, record: logging.LogRecord) -> None:
        self._simulation.tell(f"log: {record.levelname.lower()}: {record.getMessage()}")
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, StorageError):
            lines = "".join(traceback.format_exception(error))
            self._simulation._logged.append(f"logged: {record.getMessage()}\n{lines}")


@contextlib.contextmanager
def _no_collector() -> Iterator[None]:
    """Collect garbage between simulations only, so that its timing cannot influence one."""
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()  # objects from before need not be examined afterwards
    try:
        yield
    finally:
        if enabled:
            gc.enable()
            gc.collect()
        gc.unfreeze()
