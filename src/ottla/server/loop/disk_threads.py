"""Worker threads per data directory, so that a slow disk delays only the work that needs this disk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from ottla.log.files.disk import Disk


class DiskThreads:
    """`count` threads for each data directory, started at first use.

    In an environment without threads (`Ports.threads` is None, as in the simulator), the executor `others` does the
    work.
    """

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
        """Cancel work that has not started, and wait for work that is running."""
        for executor in self._executors.values():
            executor.shutdown(wait=True, cancel_futures=True)
