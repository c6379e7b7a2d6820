"""Ports: the interfaces to the outside world of a node: disks, sockets, time, randomness and threads."""

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
from ottla.server.ports.cpu_wait import waited_for_cpu_s
from ottla.server.ports.os_disk import OsDisk
from ottla.server.ports.sockets import Net, OsNet
from ottla.server.ports.system import connections_max, lock_directory, open_files_max
from ottla.server.settings.configs import Configs

# Starts a watchdog for a loop. Arguments: the loop, the counter of stalls, the milliseconds that make a stall, the
# function that names the request of a stack frame. Returns a callable that stops the watchdog.
Watch: TypeAlias = Callable[[asyncio.AbstractEventLoop, Stalls, int, RequestOf], Callable[[], None]]


class Ports(NamedTuple):
    """The ports of one node; the simulator passes its own."""

    disk: Callable[[str], Disk]
    net: Net
    now_ms: Callable[[], int]
    rng: random.Random
    executor: Executor | None
    lock: Callable[[str], Callable[[], None]] | None = (
        None  # locks a data directory; returns a callable that unlocks it
    )
    watch: Watch | None = None  # starts the watchdog of the event loop
    threads: Callable[[int], Executor] | None = None  # makes an executor with a given number of threads
    # advances within a turn of the event loop, unlike the loop's; the default is constant
    clock_s: Callable[[], float] = float
    # how long the calling thread has waited for a CPU; the default is constant
    waited_s: Callable[[], float] = float
    connections_max: int = limits.CONNECTIONS_MAX  # the number of connections for which there are descriptors

    def runtime(self, loop: asyncio.AbstractEventLoop) -> Runtime:
        """Return the runtime of a node on this loop."""
        return Runtime(
            loop,
            now_ms=self.now_ms,
            rng=self.rng,
            executor=self.executor,
            threads=self.threads,
            clock_s=self.clock_s,
            waited_s=self.waited_s,
        )


def system_ports(values: Mapping[str, str] | None = None) -> Ports:
    """Return the ports to the real operating system, for a node with these settings."""
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
        waited_s=waited_for_cpu_s,
        connections_max=connections_max(open_files),
    )
