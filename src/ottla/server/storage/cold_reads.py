"""Cold reads: what is not in memory any more is read by threads, while the loop serves everybody else.

A slice on its way to a socket, and a look-up of an old offset, find out that they would have to wait for the disk
(`log.disk.Cold`). The range is read once, by a thread, and thrown away: it is in the page cache then, and whoever
needed it tries again. Each data directory has threads of its own, so that a slow disk does not hold up a fast one.
Those that send are as many as there are connections; look-ups are bounded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from ottla.log.files.disk import Cold, File
from ottla.model import limits
from ottla.replica.partition import Partition
from ottla.server.loop.disk_threads import DiskThreads

log = logging.getLogger(__name__)


class ColdReads:
    def __init__(self, loop: Any, threads: DiskThreads, notify: Callable[[Partition], None]) -> None:
        self._loop = loop
        self._threads = threads
        self._notify = notify
        # Who waits for a range, and how to tell them.
        self._waiting: dict[tuple[File, int], dict[Hashable, Callable[[], None]]] = {}
        self.count = 0  # of ranges that were read so far

    def warm(self, cold: Cold, who: Hashable, then: Callable[[], None]) -> bool:
        """Calls `then` when the range has been read, or could not be: the next try will say why.

        Whether nobody else has asked for it already.
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
        """Has all who wait for the partition look at it again when the range has been read; whether that begins now."""
        if len(self._waiting) >= limits.COLD_LOOKUPS_MAX:
            return False
        return self.warm(cold, partition, partial(self._changed, partition))

    def _changed(self, partition: Partition) -> None:
        self._notify(partition)
        partition.neighbours.grew(partition, hurry=True)

    def _done(self, place: tuple[File, int], reading: Any) -> None:
        self.count += 1
        if not reading.cancelled() and (error := reading.exception()) is not None:
            log.warning("cannot read ahead: %s", error)
        for then in self._waiting.pop(place).values():
            try:
                then()
            except Exception:  # the others who wait have done nothing wrong
                log.exception("what was read ahead was of no use")
