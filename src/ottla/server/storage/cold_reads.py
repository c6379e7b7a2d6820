"""Cold reads: data that is not in the page cache is read by threads, while the loop serves other requests.

A slice of a log on its way to a socket, and a look-up of an old offset, raise `Cold` (`log/files/disk.py`) if they
would have to wait for the disk. A thread then reads the range once and discards the bytes: the range is in the page
cache now, and the request that needed it is tried again. Each data directory has its own threads, so that a slow disk
does not delay a fast one. There is at most one read per sending connection; look-ups are bounded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from functools import partial

from ottla.log.files.disk import Cold, File
from ottla.model import limits
from ottla.replica.partition import Partition
from ottla.server.loop.disk_threads import DiskThreads

log = logging.getLogger(__name__)


class ColdReads:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, threads: DiskThreads, notify: Callable[[Partition], None]
    ) -> None:
        self._loop = loop
        self._threads = threads
        self._notify = notify
        # For each range that is being read: the callbacks of the requests that wait for it.
        self._waiting: dict[tuple[File, int], dict[Hashable, Callable[[], None]]] = {}
        self.count = 0  # the number of ranges read so far

    def warm(self, cold: Cold, who: Hashable, then: Callable[[], None]) -> bool:
        """Read the range in a thread and call `then` afterwards; if reading fails, the next attempt raises the error.

        Return False if the range is being read already for another request.
        """
        place = cold.file, cold.position
        waiting = self._waiting.get(place)
        if waiting is not None:
            waiting[who] = then
            return False
        self._waiting[place] = {who: then}
        executor = self._threads.of(cold.file.disk)
        reading = self._loop.run_in_executor(executor, cold.file.warm, cold.position, cold.size_bytes)
        reading.add_done_callback(partial(self._done, place))
        return True

    def look_up(self, cold: Cold, partition: Partition) -> bool:
        """Read the range, then notify all waiters of the partition; return whether a new read was started."""
        if len(self._waiting) >= limits.COLD_LOOKUPS_MAX:
            return False
        return self.warm(cold, partition, partial(self._changed, partition))

    def _changed(self, partition: Partition) -> None:
        self._notify(partition)
        partition.neighbours.grew(partition, hurry=True)

    def _done(self, place: tuple[File, int], reading: asyncio.Future[None]) -> None:
        self.count += 1
        if not reading.cancelled() and (error := reading.exception()) is not None:
            log.warning("cannot read ahead: %s", error)
        for then in self._waiting.pop(place).values():
            try:
                then()
            except Exception:  # the callbacks of the other requests must still run
                log.exception("what was read ahead was of no use")
