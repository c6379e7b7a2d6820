"""Node: one broker and controller in one process, composed from its parts; the only place that knows them all.

Start: data directories, then the metadata journal, then the partitions (recovered if the last stop was not clean),
then the listeners; only then is the node ready. Stop goes the other way round and ends with the mark of a clean stop.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ottla.log.config import Inspect
from ottla.log.disk import Disk
from ottla.model.config import Config
from ottla.model.ids import TopicPartition
from ottla.server.configs import Configs
from ottla.server.context import Intercept, Services
from ottla.server.coordination import Coordination
from ottla.server.directories import open_directories
from ottla.server.door import Door
from ottla.server.durability import Syncer
from ottla.server.listener import Endpoint, Listener
from ottla.server.listeners import advertised, listened
from ottla.server.metadata import MetadataHost
from ottla.server.net import Net, OsNet
from ottla.server.osdisk import OsDisk
from ottla.server.partitions import Partitions
from ottla.server.refusals import check_start
from ottla.server.sessions import Sessions
from ottla.server.spark_readers import SparkReaders
from ottla.server.system import lock_directory, open_files_max, raise_descriptor_limit
from ottla.server.upkeep import Upkeep
from ottla.server.waiters import Waiters

if TYPE_CHECKING:
    from ottla.server.contracts import Contracts
    from ottla.server.coordinators import Parts

log = logging.getLogger(__name__)

# Told while a partition is scanned after an unclean stop: the partition, bytes done, bytes in all.
Recovery = Callable[[TopicPartition, int, int], None]


@dataclass(frozen=True, slots=True)
class Ports:
    """The outside world: where disks, sockets, time, chance and threads come from. The simulator has its own."""

    disk: Callable[[str], Disk]
    net: Net
    now_ms: Callable[[], int]
    rng: random.Random
    executor: Executor | None
    lock: Callable[[str], Callable[[], None]] = lambda _: lambda: None  # makes a data directory ours; what undoes it
    intercept: Intercept | None = None  # a test's way to put itself before the handlers


def system_ports(values: Mapping[str, str] | None = None) -> Ports:
    """The real world, for a node with these settings."""
    configs = Configs(values or {})
    files_max = open_files_max(configs.broker.get("ottla.open.files.max"), len(configs.log_dirs()))
    return Ports(
        disk=lambda path: OsDisk(path, open_files_max=files_max),
        net=OsNet(),
        now_ms=lambda: time.time_ns() // 1_000_000,
        rng=random.SystemRandom(),
        executor=ThreadPoolExecutor(configs.broker.get("ottla.worker.threads"), thread_name_prefix="ottla-worker"),
        lock=lock_directory,
    )


class Node:
    def __init__(self, values: Mapping[str, str], ports: Ports, on_recovery: Recovery | None = None) -> None:
        """`values` are server properties by Kafka's names; what is not given has its default."""
        self.values = dict(values)
        self.ports = ports
        self._on_recovery = on_recovery or _tell_progress
        self.addresses: list[tuple[str, int]] = []
        self._stop_requested: asyncio.Event | None = None
        self._steps_back: list[Callable[[], Awaitable[None] | None]] = []  # how to undo the start, the last step last

    async def start(self) -> None:
        """Returns when clients may connect. A start that fails leaves everything as it was."""
        try:
            self._open()
            self._serve(asyncio.get_running_loop())
        except Exception:
            await self.stop()
            raise

    def _open(self) -> None:
        """From the settings to the partitions, recovered if the last stop was not clean."""
        ports = self.ports
        self._stop_requested = asyncio.Event()
        self.configs = Configs(self.values)
        self.configs.contracts = self._contract
        settings = self.configs.broker
        self._endpoints = listened(settings)
        check_start(self.configs, self._endpoints)
        self._steps_back.append(self._end_workers)
        for path in self.configs.log_dirs():
            self._steps_back.append(ports.lock(path))
        self.directories = open_directories(self.configs.log_dirs(), ports.disk)
        self._steps_back.append(self._close_disks)
        self.metadata = MetadataHost.open(self.directories, self.configs, ports)
        self._steps_back.append(self._close_untouched)
        self.configs.follow(self.metadata.state)
        self.partitions = Partitions(
            self.directories,
            self.configs.log_config,
            ports.now_ms,
            settings.get("fetch.max.bytes"),
            all_usable=len(self.directories) == len(self.configs.log_dirs()),
            node_id=self.metadata.node_id,
        )
        self.partitions.load(self.metadata.state)
        self.partitions.recover(self._on_recovery)
        self._steps_back[-1] = self._close_storage

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        self.services = self._services(loop)
        self._steps_back.append(self.services.syncer.idle)
        self._steps_back.append(self.services.coordination.close)
        self.partitions.on_change = self.services.waiters.notify
        self.door = Door(self.configs.broker)
        self._steps_back.append(self.door.close)
        for endpoint in self._endpoints:
            self._listen(endpoint, loop)
        self.upkeep = Upkeep(loop, self)
        self._steps_back.append(self.upkeep.stop)
        self.metadata.on_change = self._changed
        self.services.coordination.start(self.metadata.state)

    def _services(self, loop: asyncio.AbstractEventLoop) -> Services:
        settings = self.configs.broker
        waiters = Waiters(loop)
        addresses = {endpoint.name: (endpoint.host, endpoint.port) for endpoint in advertised(settings)}
        return Services(
            node_id=self.metadata.node_id,
            cluster_id=self.metadata.cluster_id,
            configs=self.configs,
            metadata=self.metadata,
            partitions=self.partitions,
            waiters=waiters,
            syncer=Syncer(loop, self.ports.executor, self.partitions, waiters.notify),
            sessions=Sessions(settings.get("max.incremental.fetch.session.cache.slots"), self.ports.rng),
            spark_readers=SparkReaders(),
            now_ms=self.ports.now_ms,
            advertised=addresses.get,
            coordination=Coordination(lambda: self._coordinators(loop)),
            intercept=self.ports.intercept,
        )

    def _coordinators(self, loop: asyncio.AbstractEventLoop) -> Parts:
        from ottla.server.coordinators import Parts

        return Parts(loop, self.services, self.ports.rng)

    def _contract(self, topic: str, config: Config) -> Inspect:
        """How the batches of a topic with a contract are looked at. Logs are opened before there are services, and
        most nodes never need any of it: both wait for the first batch."""
        made: list[Inspect] = []

        def inspect(*batch: Any) -> Any:
            if not made:
                made.append(self._contracts.of(topic, config))
            return made[0](*batch)

        return inspect

    @cached_property
    def _contracts(self) -> Contracts:
        from ottla.server.contracts import Contracts

        return Contracts(self.services)

    def _listen(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop) -> None:
        sock = self.ports.net.listen(endpoint.host, endpoint.port)
        listener = Listener(endpoint, sock, loop, self.services, self.door)
        self._steps_back.append(listener.close)
        self.addresses.append(listener.address)

    def _changed(self, changes: Any) -> None:
        self.configs.forget()
        self.partitions.apply(changes)
        self.door.configure(self.configs.broker)
        self.upkeep.follow(changes)
        self.services.coordination.tell(changes)

    def request_stop(self) -> None:
        """Makes `stopped` shut the node down; from the node's own loop."""
        if self._stop_requested is not None:
            self._stop_requested.set()

    async def stopped(self) -> None:
        """Waits for `request_stop`, then stops."""
        assert self._stop_requested is not None, "the node was not started"
        await self._stop_requested.wait()
        await self.stop()

    async def stop(self) -> None:
        """A clean stop: nothing is accepted any more, everything is on disk."""
        while self._steps_back:
            try:
                waiting = self._steps_back.pop()()
                if waiting is not None:
                    await waiting
            except Exception:
                log.exception("the stop goes on, but the next start will have to recover")

    def _close_storage(self) -> None:
        self.metadata.close()
        self.partitions.close()  # ends with the mark of a clean stop, which vouches for the metadata too

    def _close_untouched(self) -> None:
        """The start failed before a partition was opened: what was closed cleanly still is."""
        self.metadata.close()
        for directory in self.directories:
            if directory.clean:
                directory.mark_clean()

    def _close_disks(self) -> None:
        for directory in self.directories:
            directory.disk.close()

    def _end_workers(self) -> None:
        if self.ports.executor is not None:
            self.ports.executor.shutdown(wait=True)


def _tell_progress(partition: TopicPartition, done_bytes: int, total_bytes: int) -> None:
    log.info("recovering %s-%d: %d of %d bytes", *partition, done_bytes, total_bytes)


def run(values: Mapping[str, str], on_ready: Callable[[Node], None], on_recovery: Recovery | None = None) -> None:
    """Runs a node until SIGTERM or SIGINT; returns after a clean stop."""

    async def serve() -> None:
        raise_descriptor_limit()
        node = Node(values, system_ports(values), on_recovery)
        await node.start()
        # What a start leaves behind lives as long as the node: no collection needs to look at it again.
        gc.freeze()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, node.request_stop)
        on_ready(node)
        await node.stopped()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve())


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where it can be had."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
