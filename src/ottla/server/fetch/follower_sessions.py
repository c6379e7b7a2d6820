"""Followers: the fetch sessions of other brokers, and which of a session's partitions have something new.

A partition that changed tells the sessions that read it; a session remembers which of its partitions are dirty: changed
since it looked, named by the last request, or not given completely. A fetch looks at those alone, so an idle fetch over
thousands of partitions costs nothing per partition. A fetch that waits is tried again once per turn of the loop,
whatever changed in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ottla.replica.isr import Pulse
from ottla.replica.partition import Partition
from ottla.server.fetch.sessions import Key, Session, Wanted
from ottla.server.loop.watches import Watches
from ottla.wire.messages.records.fetch import FetchRequest


class FollowerSession(Session):
    """What one broker reads here; of an unnamed session (id 0) only while its one fetch lasts."""

    __slots__ = (
        "_is_waking",
        "_loop",
        "_missed",
        "_watches",
        "dirty",
        "fresh",
        "on_nudge",
        "on_wake",
        "pulse",
        "watched",
    )

    def __init__(self, session_id: int, by_id: bool, now_ms: int, watches: Watches, loop: Any) -> None:
        super().__init__(session_id, by_id, now_ms)
        self.is_privileged = True
        self.pulse = Pulse(now_ms)
        self.dirty: dict[Key, None] = {}  # the longest unserved first
        self.fresh: dict[Key, None] = {}  # of those, what changed since the fetch that waits looked
        self.watched: dict[Key, Partition] = {}
        # Of the fetch that waits: something changed; answer at once.
        self.on_wake: Callable[[], None] | None = None
        self.on_nudge: Callable[[], None] | None = None
        self._watches = watches
        self._loop = loop
        self._is_waking = False
        self._missed = False  # something changed in a hurry while no fetch waited

    def begin(self, entries: Iterable[Wanted]) -> None:
        self.wanted = {(entry.topic, entry.index): entry for entry in entries}
        self.dirty = dict.fromkeys(self.wanted)

    def change(self, request: FetchRequest) -> list[Key]:
        named = super().change(request)
        for key in named:
            if key in self.wanted:
                self.dirty[key] = None
            else:
                self.dirty.pop(key, None)
                self.unwatch(key)
        return named

    def served(self, entry: Wanted) -> None:
        """Moves a partition that got data to the end, so that all get their turn under max_bytes."""
        key = entry.topic, entry.index
        if key in self.dirty:
            del self.dirty[key]
            self.dirty[key] = None

    def watch(self, key: Key, partition: Partition) -> None:
        known = self.watched.get(key)
        if known is not partition:
            if known is not None:
                self.unwatch(key)
            self.watched[key] = partition
            self._watches.watch(partition, self, key)

    def unwatch(self, key: Key) -> None:
        partition = self.watched.pop(key, None)
        if partition is not None:
            self._watches.unwatch(partition, self)

    def close(self) -> None:
        for key in tuple(self.watched):
            self.unwatch(key)

    def mark(self, what: Key, *, hurry: bool) -> None:
        self.dirty[what] = self.fresh[what] = None
        if not hurry:
            return
        if self.on_wake is None:
            self._missed = True
        elif not self._is_waking:
            self._is_waking = True
            self._loop.call_soon(self._wake)

    def begin_to_look(self) -> None:
        """A fetch looks at all that is dirty."""
        self.fresh.clear()
        self._missed = False

    def wait(self, on_wake: Callable[[], None], on_nudge: Callable[[], None]) -> None:
        """A fetch waits from now on. What changed while it looked (its own acknowledgements may let others write here)
        wakes it at once."""
        self.on_wake, self.on_nudge = on_wake, on_nudge
        if self._missed and not self._is_waking:
            self._is_waking = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        if self.on_wake is not None:
            self.on_wake()
