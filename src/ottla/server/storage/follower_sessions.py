"""Followers: the fetch sessions of other brokers, and which of a session's partitions have something new.

A partition that changed tells the sessions that read it; a session remembers which of its partitions are dirty: changed
since it looked, named by the last request, or not given completely. A fetch looks at those alone, so an idle fetch over
thousands of partitions costs nothing per partition. A fetch that waits is tried again once per turn of the loop,
whatever changed in it.

This is also where replicas hear of the cluster around them (`replica.neighbours`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ottla.replica.isr import Pulse
from ottla.replica.partition import Partition
from ottla.server.fetch.sessions import Key, Session, Wanted
from ottla.wire.messages.records.fetch import FetchRequest

if TYPE_CHECKING:
    from ottla.cluster.state import ClusterState

_LAG_MS_MAX = 30_000


class LeaderQuota(Protocol):
    """leader.replication.throttled.rate: what this node sends to followers that are not in sync."""

    def holds_back(self, topic: str, index: int) -> bool: ...

    def sent(self, topic: str, index: int, size_bytes: int) -> None: ...


class FollowerSession(Session):
    """What one broker reads here; of an unnamed session (id 0) only while its one fetch lasts."""

    __slots__ = ("_followers", "_is_waking", "_missed", "dirty", "fresh", "on_nudge", "on_wake", "pulse", "watched")

    def __init__(self, session_id: int, by_id: bool, now_ms: int, followers: Followers) -> None:
        super().__init__(session_id, by_id, now_ms)
        self.is_privileged = True
        self.pulse = Pulse(now_ms)
        self.dirty: dict[Key, None] = {}  # the longest unserved first
        self.fresh: dict[Key, None] = {}  # of those, what changed since the fetch that waits looked
        self.watched: dict[Key, Partition] = {}
        # Of the fetch that waits: something changed; answer at once.
        self.on_wake: Callable[[], None] | None = None
        self.on_nudge: Callable[[], None] | None = None
        self._followers = followers
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
            self._followers.watch(partition, self, key)

    def unwatch(self, key: Key) -> None:
        partition = self.watched.pop(key, None)
        if partition is not None:
            self._followers.unwatch(partition, self)

    def close(self) -> None:
        for key in tuple(self.watched):
            self.unwatch(key)

    def mark(self, key: Key, loop: Any, *, hurry: bool) -> None:
        self.dirty[key] = self.fresh[key] = None
        if not hurry:
            return
        if self.on_wake is None:
            self._missed = True
        elif not self._is_waking:
            self._is_waking = True
            loop.call_soon(self._wake)

    def begin_to_look(self) -> None:
        """A fetch looks at all that is dirty."""
        self.fresh.clear()
        self._missed = False

    def wait(self, on_wake: Callable[[], None], on_nudge: Callable[[], None], loop: Any) -> None:
        """A fetch waits from now on. What changed while it looked (its own acknowledgements may let others write here)
        wakes it at once."""
        self.on_wake, self.on_nudge = on_wake, on_nudge
        if self._missed and not self._is_waking:
            self._is_waking = True
            loop.call_soon(self._wake)

    def _wake(self) -> None:
        self._is_waking = False
        if self.on_wake is not None:
            self.on_wake()


class Followers:
    """The neighbours of every partition of a node."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.lag_ms_max = _LAG_MS_MAX
        self.quota: LeaderQuota | None = None
        self._watching: dict[Partition, dict[FollowerSession, Key]] = {}
        self.loop: Any = None
        self.steady_ms: Callable[[], int] = lambda: 0
        self._state: Callable[[], ClusterState] | None = None
        self._notify: Callable[[Partition], None] = _ignore
        self._consider: Callable[[Partition], None] = _ignore
        self._sync: Callable[[Partition], None] = _ignore
        self._write: Callable[[Partition], None] | None = None
        self.on_sealed: Callable[[Partition], None] = _ignore

    def attach(
        self,
        *,
        loop: Any,
        notify: Callable[[Partition], None],
        state: Callable[[], ClusterState],
        consider: Callable[[Partition], None],
        lag_ms_max: int,
        steady_ms: Callable[[], int],
        sync: Callable[[Partition], None] | None = None,
        write: Callable[[Partition], None] | None = None,
        quota: LeaderQuota | None = None,
    ) -> None:
        """The node serves: whom to tell what. Before, partitions are opened and nobody waits for them."""
        self.loop, self._notify, self._state, self._consider = loop, notify, state, consider
        self.steady_ms = steady_ms
        self.lag_ms_max, self.quota, self._sync = lag_ms_max, quota, sync or _ignore
        self._write = write

    # --- what replicas ask and tell

    def broker_epoch(self, broker_id: int) -> int | None:
        broker = self._state().brokers.get(broker_id) if self._state is not None else None
        return broker.epoch if broker is not None and not broker.fenced else None

    def may_join(self, broker_id: int) -> bool:
        broker = self._state().brokers.get(broker_id) if self._state is not None else None
        return broker is not None and broker.active

    def moved(self, partition: Partition) -> None:
        self._notify(partition)

    def grew(self, partition: Partition, *, hurry: bool) -> None:
        watching = self._watching.get(partition)
        if watching:
            for session, key in watching.items():
                session.mark(key, self.loop, hurry=hurry)

    def must_sync(self, partition: Partition) -> None:
        self._sync(partition)

    def writes_later(self) -> bool:
        return self._write is not None

    def must_write(self, partition: Partition) -> None:
        assert self._write is not None, "nothing waits before there is somebody to write it"
        self._write(partition)

    def sealed(self, partition: Partition) -> None:
        self.on_sealed(partition)

    def isr_may_change(self, partition: Partition) -> None:
        self._consider(partition)

    # --- sessions

    def session(self, session_id: int, by_id: bool, now_ms: int) -> FollowerSession:
        return FollowerSession(session_id, by_id, now_ms, self)

    def watch(self, partition: Partition, session: FollowerSession, key: Key) -> None:
        self._watching.setdefault(partition, {})[session] = key

    def unwatch(self, partition: Partition, session: FollowerSession) -> None:
        watching = self._watching.get(partition)
        if watching is not None:
            watching.pop(session, None)
            if not watching:
                del self._watching[partition]

    def gone(self, partition: Partition) -> None:
        """The partition was removed or is served no more: who reads it must hear of that."""
        self.grew(partition, hurry=True)


def _ignore(_: Partition) -> None:
    """Until the node serves."""
