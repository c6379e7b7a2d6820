"""Writer: what logs have appended while their disk makes writers wait is written by threads of that data directory.

As a rule a write is a copy into the page cache, done on the loop. When one took long (`limits.SLOW_WRITE_S`) the
directory is slow: its logs append in memory (`log.unwritten`), and ask for a worker here. One per log runs at a time,
so records are written in the order of their offsets; what is appended meanwhile is written by the next one. Then the
records count: high watermarks move, and whoever waits is told. Other directories are written to as ever, and nothing
else that clients ask for waits.

A write that fails (a full disk) cuts off what waited: its producers get a storage error, as if it had been refused.

What waits is a copy. The connection of the client that sent it is held (`api/unwritten_records.py`): it sends no more,
and its receive buffer, which counts as memory of requests, is as large as what waits for it.
"""

from __future__ import annotations

from typing import Any

from ottla.log.files.disk import File
from ottla.log.log import Log
from ottla.replica.partition import Partition
from ottla.server.storage.log_work import LogWork, error_of


class Writer(LogWork):
    failed_saying = "what was appended to {0.name} cannot be written: {1}"
    count = 0  # of jobs for workers so far

    def request(self, partition: Partition) -> None:
        """Something of it waits."""
        if partition not in self._running:
            self._start(partition)

    def _start(self, partition: Partition) -> None:
        self.count += 1
        log = partition.log
        executor = self._threads.of(log.directory.disk)
        future = self._loop.run_in_executor(executor, _write_all, log.unwritten.files())
        self._running[partition] = False
        future.add_done_callback(lambda done: self._finished(partition, log, done))

    def _finished(self, partition: Partition, log: Log, done: Any) -> None:
        del self._running[partition]
        try:
            error = error_of(done)
            if error is not None and partition.log is log:
                self._give_up(partition, error, partition.write_failed)
            else:  # of a log that the partition has left, nobody needs what was to be written
                partition.written()
                if partition.log.unwritten:
                    self._start(partition)
            self._changed(partition)
        finally:
            self._tell_idle()


def _write_all(files: list[File]) -> None:
    """Runs in a worker thread."""
    for file in files:
        file.write_waiting()
