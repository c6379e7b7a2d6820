"""The fetch sessions of followers, which know the partitions with something new.

A partition that changed tells the sessions that watch it (`loop/watches.py`); a session remembers which of its
partitions are dirty: changed since they were read, named by the last request, or not sent completely. A fetch reads
only those, so an idle fetch over thousands of partitions costs nothing per partition. A waiting fetch is tried again at
most once per turn of the loop, however many partitions changed: it waits for the session itself (`loop/waiters.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.replica.isr import Pulse
from ottla.replica.partition import Partition
from ottla.server.fetch.fetch_sessions import AskedPartition, FetchSession
from ottla.server.loop.waiters import Waiter, Waiters
from ottla.server.loop.watches import Watches
from ottla.wire.messages.records.fetch import FetchRequest


class FollowerSession(FetchSession):
    """The partitions that one broker fetches; a session with id 0 lasts only as long as its one fetch."""

    __slots__ = ("_missed", "_waiters", "_watches", "dirty", "fresh", "pulse", "waiter", "watched")

    def __init__(self, session_id: int, by_id: bool, now_ms: int, waiters: Waiters, watches: Watches) -> None:
        super().__init__(session_id, by_id, now_ms)
        self.is_privileged = True
        self.pulse = Pulse(now_ms)
        self.dirty: dict[AskedPartition, None] = {}  # the partition that was served longest ago comes first
        # the dirty partitions that changed since the waiting fetch read them
        self.fresh: dict[AskedPartition, None] = {}
        self.watched: dict[AskedPartition, Partition] = {}
        self.waiter: Waiter | None = None  # the waiting fetch
        self._waiters = waiters
        self._watches = watches
        self._missed = False  # whether there was an urgent change while no fetch waited

    def begin(self, entries: Iterable[AskedPartition]) -> None:
        super().begin(entries)
        self.dirty = dict.fromkeys(self.partitions.values())

    def change(self, request: FetchRequest) -> tuple[list[AskedPartition], list[AskedPartition]]:
        named, forgotten = super().change(request)
        for entry in named:
            self.dirty[entry] = None
        for entry in forgotten:
            self.dirty.pop(entry, None)
            self.fresh.pop(entry, None)
            self.unwatch(entry)
        return named, forgotten

    def has(self, entry: AskedPartition) -> bool:
        """Return whether the partition is still part of the session."""
        return self.partitions.get((entry.topic, entry.index)) is entry

    def served(self, entry: AskedPartition) -> None:
        """Move a partition that got data to the end, so that all partitions get their turn under max_bytes."""
        if entry in self.dirty:
            del self.dirty[entry]
            self.dirty[entry] = None

    def watch(self, entry: AskedPartition, partition: Partition) -> None:
        known = self.watched.get(entry)
        if known is not partition:
            if known is not None:
                self.unwatch(entry)
            self.watched[entry] = partition
            self._watches.watch(partition, self, entry)

    def unwatch(self, entry: AskedPartition) -> None:
        partition = self.watched.pop(entry, None)
        if partition is not None:
            self._watches.unwatch(partition, self)

    def close(self) -> None:
        for entry in tuple(self.watched):
            self.unwatch(entry)

    def mark(self, what: AskedPartition, *, hurry: bool) -> None:
        self.dirty[what] = self.fresh[what] = None
        if not hurry:
            return
        if self.waiter is None:
            self._missed = True
        else:
            self._waiters.notify_soon(self)

    def look(self) -> tuple[AskedPartition, ...]:
        """Return the partitions that a new fetch has to read."""
        self.fresh.clear()
        self._missed = False
        return tuple(self.dirty)

    def look_again(self) -> dict[AskedPartition, None]:
        """Return the partitions that changed since the waiting fetch read them."""
        fresh, self.fresh = self.fresh, {}
        return fresh

    def wait(self, waiter: Waiter) -> None:
        """Note that a fetch waits. Changes during its first attempt (its own acknowledgements may lead to appends here)
        wake it at once.
        """
        self.waiter = waiter
        if self._missed:
            self._waiters.notify_soon(self)

    def end_wait(self) -> None:
        """Answer the waiting fetch with what there is, because the follower has sent its next fetch."""
        if self.waiter is not None:
            self.waiter.end()
