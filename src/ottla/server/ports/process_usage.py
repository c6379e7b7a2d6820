"""What the process takes of its machine, as the system tells it."""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

_PROC = "/proc/self"
_PAGE_BYTES = resource.getpagesize()
_KIB = 1_024


class ProcessUsage(NamedTuple):
    """What the process uses now; values that the system does not tell are None."""

    cpu_s: float
    resident_bytes: int
    virtual_bytes: int | None
    open_files: int | None
    open_files_max: int
    threads: int
    started_s: float | None  # since 1970
    disk_read_bytes: int | None
    disk_written_bytes: int | None
    collections: tuple[int, ...]  # of Python's garbage collector, by generation


def process_usage() -> ProcessUsage:
    """Read the usage. Takes some milliseconds in a process with very many files, so it is called in a worker."""
    times = os.times()
    resident, virtual = _memory()
    files = None
    with suppress(OSError):
        files = len(os.listdir(f"{_PROC}/fd")) - 1  # one is that of the listing
    return ProcessUsage(
        times.user + times.system,
        resident,
        virtual,
        files,
        resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        threading.active_count(),
        _started_s(),
        *_disk_bytes(),
        tuple(each["collections"] for each in gc.get_stats()),
    )


def thread_busy() -> Callable[[], float]:
    """Return a function that tells for how many seconds the calling thread has used a CPU or, where the system tells
    it, waited for one while others had it; it may be called in any thread.
    """
    clock = time.pthread_getcpuclockid(threading.get_ident())
    path = f"{_PROC}/task/{threading.get_native_id()}/schedstat"

    def waited_s() -> float:
        with open(path, encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9

    def busy_s() -> float:
        waited = 0.0
        with suppress(OSError, ValueError, IndexError):
            waited = waited_s()
        return time.clock_gettime(clock) + waited

    return busy_s


def _memory() -> tuple[int, int | None]:
    try:
        with open(f"{_PROC}/statm", encoding="ascii") as file:
            virtual, resident = file.read().split()[:2]
    except OSError:
        # The largest that it was; macOS counts bytes.
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * _KIB, None
    return int(resident) * _PAGE_BYTES, int(virtual) * _PAGE_BYTES


def _disk_bytes() -> tuple[int | None, int | None]:
    """The bytes that were read from disks and written to them."""
    try:
        with open(f"{_PROC}/io", encoding="ascii") as file:
            told = dict(line.split(": ") for line in file.read().splitlines())
        return int(told["read_bytes"]), int(told["write_bytes"])
    except (OSError, ValueError, KeyError):
        return None, None


def _started_s() -> float | None:
    try:
        with open(f"{_PROC}/stat", encoding="utf-8", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])  # the name before it may hold anything
        with open("/proc/uptime", encoding="ascii") as file:
            up_s = float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - up_s + ticks / os.sysconf("SC_CLK_TCK")
