"""Ports: the outside world of a node: where disks, sockets, time, chance and threads come from."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

from ottla.log.files.disk import Disk
from ottla.model import limits
from ottla.model.settings.own import OTTLA_OPEN_FILES_MAX, OTTLA_WORKER_THREADS
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.stalls import Stalls
from ottla.server.loop.watchdog import RequestOf, watch
from ottla.server.ports.os_disk import OsDisk
from ottla.server.ports.sockets import Net, OsNet
from ottla.server.ports.system import connections_max, lock_directory, open_files_max
from ottla.server.settings.configs import Configs

# Watches a loop from outside: the loop, where stalls are counted, how many milliseconds are one, what names the request
# that a frame works for; returns what ends it.
Watch: TypeAlias = Callable[[asyncio.AbstractEventLoop, Stalls, int, RequestOf], Callable[[], None]]


class Ports(NamedTuple):
    """The simulator has its own."""

    disk: Callable[[str], Disk]
    net: Net
    now_ms: Callable[[], int]
    rng: random.Random
    executor: Executor | None
    lock: Callable[[str], Callable[[], None]] = lambda _: lambda: None  # makes a data directory ours; what undoes it
    watch: Watch | None = None  # who sees what holds up the event loop
    threads: Callable[[int], Executor] | None = None  # so many of one's own
    clock_s: Callable[[], float] = float  # goes on within a turn of the event loop, unlike the loop's; stands still
    connections_max: int = limits.CONNECTIONS_MAX  # for which there are descriptors

    def runtime(self, loop: asyncio.AbstractEventLoop) -> Runtime:
        """What the parts of a node on this loop run on."""
        return Runtime(
            loop,
            now_ms=self.now_ms,
            rng=self.rng,
            executor=self.executor,
            threads=self.threads,
            clock_s=self.clock_s,
        )


def system_ports(values: Mapping[str, str] | None = None) -> Ports:
    """The real world, for a node with these settings."""
    configs = Configs(values or {})
    open_files = configs.broker[OTTLA_OPEN_FILES_MAX]
    files_max = open_files_max(open_files, len(configs.log_dirs()))
    return Ports(
        disk=lambda path: OsDisk(path, open_files_max=files_max),
        net=OsNet(),
        now_ms=lambda: time.time_ns() // 1_000_000,
        rng=random.SystemRandom(),
        executor=ThreadPoolExecutor(configs.broker[OTTLA_WORKER_THREADS], thread_name_prefix="ottla-worker"),
        lock=lock_directory,
        threads=lambda count: ThreadPoolExecutor(count, thread_name_prefix="ottla-disk"),
        watch=watch,
        clock_s=time.monotonic,
        connections_max=connections_max(open_files),
    )
