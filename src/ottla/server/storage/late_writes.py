"""Writer: writes what logs have appended while their disk is slow, in threads of that data directory.

Normally a write is a copy into the page cache, done on the loop. After a write that took long (`limits.SLOW_WRITE_S`)
the directory is slow: its logs append in memory (`log.unwritten`) and request a worker here. One worker per log runs at
a time, so records are written in the order of their offsets; records appended meanwhile are written by the next one.
Written records count towards the high watermark, and the waiters of the partition are notified. Other directories are
written to on the loop as before, and other requests do not wait.

If a write fails (a full disk), the waiting records are truncated: their producers get a storage error, as if the append
had been refused.

Waiting records are copies. The connection of the client that sent them is held (`api/unwritten_records.py`): it reads
no more requests, and its receive buffer, which counts as request memory, is as large as the records that wait.
"""

from __future__ import annotations

import asyncio

from ottla.log.files.disk import File
from ottla.log.log import Log
from ottla.replica.partition import Partition
from ottla.server.storage.log_work import LogWork, error_of


class Writer(LogWork):
    failed_saying = "what was appended to {0.name} cannot be written: {1}"
    count = 0  # the number of jobs given to workers so far

    def request(self, partition: Partition) -> None:
        """Have the waiting records of the partition written."""
        if partition not in self._running:
            self._start(partition)

    def _start(self, partition: Partition) -> None:
        self.count += 1
        log = partition.log
        executor = self._threads.of(log.directory.disk)
        future = self._loop.run_in_executor(executor, _write_all, log.unwritten.files())
        self._running[partition] = False
        future.add_done_callback(lambda done: self._finished(partition, log, done))

    def _finished(self, partition: Partition, log: Log, done: asyncio.Future[None]) -> None:
        del self._running[partition]
        try:
            error = error_of(done)
            if error is not None and partition.log is log:
                self._give_up(partition, error, partition.write_failed)
            else:  # a failed write does not matter if the partition has another log by now
                partition.written()
                if partition.log.unwritten:
                    self._start(partition)
            self._changed(partition)
        finally:
            self._tell_idle()


def _write_all(files: list[File]) -> None:
    """Write what waits; runs in a worker thread."""
    for file in files:
        file.write_waiting()
