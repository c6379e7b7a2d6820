"""How fetches of followers are answered: one fetch per leader and follower carries all of their partitions.

A fetch reads only the dirty partitions of its session (`follower_sessions.py`). It contains the follower's log end
offset of each partition it names; the high watermark and the ISR move while it is read. The answer is sent when there
are `min_bytes`, an error or a divergence, or when the time is over; and at once when the follower sends the next fetch
of the session before this one was answered: it has new partitions then.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Protocol

from ottla.cluster.state import ClusterState
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BrokerEpoch
from ottla.model.session_epochs import INITIAL_EPOCH
from ottla.replica.partition import READ_UNCOMMITTED, Partition
from ottla.server.fetch.answers import nothing_yet, refusal, told, whole
from ottla.server.fetch.engine import Fetch, FetchEngine
from ottla.server.fetch.fetch_reads import FetchReads
from ottla.server.fetch.fetch_sessions import (
    AskedPartition,
    FetchSession,
    FetchSessions,
    PartitionData,
    asked_partitions,
)
from ottla.server.fetch.follower_sessions import FollowerSession
from ottla.server.loop.later import Later
from ottla.server.loop.waiters import Waiter
from ottla.server.loop.watches import Watches
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

FollowerFetch = Fetch[AskedPartition, PartitionData, FetchResponse]


class SendQuota(Protocol):
    """leader.replication.throttled.rate: the limit for bytes sent to followers that are not in sync."""

    def holds_back(self, topic: str, index: int) -> bool: ...

    def sent(self, topic: str, index: int, size_bytes: int) -> None: ...


class Followers:
    """The dependencies that the fetches of all followers of a node share."""

    __slots__ = ("_make", "_sessions", "_steady_ms", "engine", "quota", "state")

    def __init__(
        self,
        engine: FetchEngine,
        sessions: FetchSessions,
        watches: Watches,
        quota: SendQuota,
        state: Callable[[], ClusterState],
        steady_ms: Callable[[], int],
    ) -> None:
        self.engine = engine
        self.quota = quota
        self.state = state
        self._sessions = sessions
        self._steady_ms = steady_ms
        self._make = partial(FollowerSession, waiters=engine.waiters, watches=watches)

    def open(self, request: FetchRequest, by_id: bool) -> FollowerSession:
        """Return the session of a full fetch. Its id is 0 if the fetch wants no session, or the table has no room."""
        entries, now_ms = asked_partitions(request, by_id).values(), self._steady_ms()
        if request.session_epoch == INITIAL_EPOCH:
            session = self._sessions.open(entries, by_id, now_ms, self._make)
            if session is not None:
                assert isinstance(session, FollowerSession), "it was just made"
                return session
        unnamed = self._make(0, by_id, now_ms)
        unnamed.begin(entries)
        return unnamed

    def answer(
        self,
        request: FetchRequest,
        session: FetchSession,
        is_full: bool,
        replica: tuple[int, BrokerEpoch],
        version: int,
    ) -> FetchResponse | Later[FetchResponse]:
        """Return the answer; `replica` is the follower's broker id and epoch."""
        assert isinstance(session, FollowerSession), "privileged sessions are of followers"
        session.pulse.heard_ms = self._steady_ms()
        session.end_wait()
        reads = FollowerReads(self, session, is_full, replica, version)
        return Fetch(self.engine, reads, request.max_bytes, request.min_bytes, request.max_wait_ms).answer()


class FollowerReads(FetchReads):
    __slots__ = ("_broker_epoch", "_followers", "_is_full", "_replica_id", "_session", "_version")

    def __init__(
        self,
        followers: Followers,
        session: FollowerSession,
        is_full: bool,
        replica: tuple[int, BrokerEpoch],
        version: int,
    ) -> None:
        super().__init__(followers.engine, session.by_id)
        self._followers = followers
        self._session = session
        self._is_full = is_full
        self._replica_id, self._broker_epoch = replica
        self._version = version

    # --- attempts

    def to_read(self, fetch: FollowerFetch, changed: Hashable | None) -> Sequence[AskedPartition]:
        self.urgent = False
        session = self._session
        if fetch.later is None:
            return session.look()
        again = session.look_again()
        for entry, (_, data) in fetch.found.items():
            if data.records and session.has(entry):
                again[entry] = None
        return tuple(again)

    def count(self) -> int:
        return len(self._session.partitions)

    def read(self, fetch: FollowerFetch, asked: AskedPartition, partition: Partition, left_bytes: int) -> PartitionData:
        """Read the partition; it stays dirty unless the follower has all of it."""
        ask, session = asked.ask, self._session
        if ask.partition_max_bytes < 0:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        is_held_back = self._is_held_back(partition)
        fetched = partition.fetch_as_follower(
            self._replica_id,
            self._broker_epoch,
            ask.fetch_offset,
            0 if is_held_back else min(ask.partition_max_bytes, left_bytes),
            session.pulse.heard_ms,
            log_start=ask.log_start_offset,
            current_leader_epoch=ask.current_leader_epoch,
            last_fetched_epoch=ask.last_fetched_epoch,
            at_least_one=fetch.size_bytes == 0 and not is_held_back,
            pulse=session.pulse if session.key else None,
            patient=fetch.patient,
        )
        session.watch(asked, partition)
        if fetched.diverging is not None and fetched.diverging[0] >= 0:
            self.urgent = True
        elif partition.log.written_offset <= ask.fetch_offset:
            session.dirty.pop(asked, None)
        return told(asked.index, fetched, READ_UNCOMMITTED)

    def _is_held_back(self, partition: Partition) -> bool:
        """Return whether the quota allows no more bytes now. A follower that is in sync is never throttled, because it
        would fall out of the ISR.
        """
        if partition.in_sync is None or self._replica_id in partition.in_sync.isr:
            return False
        return self._followers.quota.holds_back(partition.topic, partition.index)

    def nothing_yet(self, asked: AskedPartition, partition: Partition) -> PartitionData:
        self._session.watch(asked, partition)
        return nothing_yet(asked.index, partition, READ_UNCOMMITTED)

    def refuse(
        self, fetch: FollowerFetch, asked: AskedPartition, partition: Partition | None, error: ApiError
    ) -> PartitionData:
        self.urgent = True
        self._session.unwatch(asked)
        return refusal(asked.index, error.code)

    # --- waiting

    def wait_for(self, fetch: FollowerFetch) -> Sequence[Hashable]:
        return (self._session,) if fetch.wait_ms > 0 else ()

    def waits(self, fetch: FollowerFetch, waiter: Waiter) -> None:
        assert fetch.later is not None, "it waits"
        fetch.later.on_abandon = self._give_up
        self._session.wait(waiter)

    def _give_up(self) -> None:
        """End the wait, because the connection is closed."""
        if self._session.waiter is not None:
            self._session.waiter.drop()
        self._end()

    def _end(self) -> None:
        session = self._session
        session.waiter = None
        if session.key == 0:
            session.close()

    # --- the answer

    def respond(self, fetch: FollowerFetch) -> FetchResponse:
        session, quota = self._session, self._followers.quota
        news = []
        for asked, (partition, data) in fetch.found.items():
            if asked.news(data) or self._is_full:
                news.append((asked, data))
            if data.records:
                session.served(asked)
                assert partition is not None, "its records come from there"
                quota.sent(partition.topic, partition.index, len(data.records))
        self._end()
        return whole(news, self.by_id, session.key, self._version, self._followers.state)
