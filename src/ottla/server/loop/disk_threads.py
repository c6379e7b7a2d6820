"""Threads of each data directory: a disk that is slow holds up those who need it, and no other disk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from ottla.log.files.disk import Disk


class DiskThreads:
    """So many for each, begun when they are first needed. Where the world gives none (`Ports.threads`), `others` do."""

    def __init__(self, threads: Callable[[int], Executor] | None, count: int, others: Executor | None) -> None:
        self._threads = threads
        self._count = count
        self._others = others
        self._executors: dict[Disk, Executor] = {}

    def of(self, disk: Disk) -> Executor | None:
        executor = self._executors.get(disk)
        if executor is None:
            if self._threads is None:
                return self._others
            executor = self._executors[disk] = self._threads(self._count)
        return executor

    def close(self) -> None:
        """What has not begun is not done any more; the rest is waited for."""
        for executor in self._executors.values():
            executor.shutdown(wait=True, cancel_futures=True)
