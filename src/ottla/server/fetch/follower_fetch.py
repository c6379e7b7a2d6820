"""Fetches of followers: one per leader and follower carries all of their partitions, and looks only at the dirty ones.

A fetch says up to where the follower has each partition it names; what that moves (high watermark, ISR) moves while it
is read. The answer leaves when there are `min_bytes`, an error or a divergence, or when the time is over; and at once
when the follower sends the next fetch of the session before this one was answered: it has new partitions then.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ottla.log.files.disk import Cold, StorageError
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.replica.partition import READ_UNCOMMITTED, Partition
from ottla.server.api.context import Context
from ottla.server.fetch.answers import PartitionData, find, nothing_yet, refusal, told, whole
from ottla.server.fetch.follower_sessions import FollowerSession
from ottla.server.fetch.sessions import INITIAL_EPOCH, Key, Session, Wanted, asked
from ottla.server.loop.later import Answer, Later
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

_SESSION = "the session of a follower"  # what to close with its connection


def fetch_as_follower(
    request: FetchRequest, session: Session | None, by_id: bool, replica: tuple[int, int], context: Context
) -> Answer[FetchResponse]:
    """`session` is the one an incremental request runs in."""
    now_ms = context.steady_ms()
    is_full = session is None
    if session is None:
        session = _opened(request, by_id, now_ms, context)
    if not isinstance(session, FollowerSession):
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])  # a consumer's
    session.pulse.heard_ms = now_ms
    context.is_nudged = session.id != 0
    if session.on_nudge is not None:
        session.on_nudge()
    return _Fetch(request, session, is_full, replica, context).answer()


def _opened(request: FetchRequest, by_id: bool, now_ms: int, context: Context) -> Session:
    make = partial(FollowerSession, watches=context.services.storage.watches, loop=context.services.slices.loop)
    entries = asked(request, by_id).values()
    if request.session_epoch == INITIAL_EPOCH:
        sessions = context.services.sessions
        # A follower has one session per connection, and begins a new one with every connection.
        before = context.when_closed.pop(_SESSION, None)
        if before is not None:
            before()
        session = sessions.open(entries, by_id, now_ms, make)
        if session is not None:
            context.when_closed[_SESSION] = partial(sessions.drop, session.id)
            return session
    unnamed = make(0, by_id, now_ms)
    unnamed.begin(entries)
    return unnamed


class _Fetch:
    """One fetch while it is being answered."""

    def __init__(
        self,
        request: FetchRequest,
        session: FollowerSession,
        is_full: bool,
        replica: tuple[int, int],
        context: Context,
    ) -> None:
        self._request = request
        self._session = session
        self._is_full = is_full
        self._replica_id, self._broker_epoch = replica
        self._context = context
        self._version = context.request_version
        self._max_bytes = min(request.max_bytes, context.partitions.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._found: dict[Key, tuple[Wanted, PartitionData]] = {}
        replication = context.services.replication
        self._quota = None if replication is None else replication.quotas.leader
        self._size_bytes = 0
        self._is_urgent = False
        self._cold_tries = 0
        self._later: Later[FetchResponse] | None = None
        self._timer: Any = None

    def answer(self) -> Answer[FetchResponse]:
        session = self._session
        session.begin_to_look()
        self._look_at(tuple(session.dirty))
        if self._is_enough or self._request.max_wait_ms <= 0:
            return self._respond()
        self._later = Later()
        self._later.on_abandon = self._stop_waiting
        session.wait(self._wake, self._finish)
        wait_ms = min(self._request.max_wait_ms, limits.WAIT_MS_MAX)
        self._timer = self._context.services.slices.loop.call_later(wait_ms / 1000, self._finish)
        return self._later

    @property
    def _is_enough(self) -> bool:
        return self._is_urgent or self._size_bytes >= self._min_bytes

    def _wake(self) -> None:
        """Something changed: answers if that is enough."""
        self._look_again()
        if self._is_enough:
            self._reply()

    def _finish(self) -> None:
        """Answers with what there is."""
        self._look_again()
        self._reply()

    def _reply(self) -> None:
        assert self._later is not None, "it waits"
        self._stop_waiting()
        self._later.set(self._respond())

    def _look_again(self) -> None:
        """At what changed, and at what was found some time ago: it may lie in files that are about to go."""
        session = self._session
        fresh = session.fresh
        fresh.update((key, None) for key, (_, data) in self._found.items() if data.records)
        keys = tuple(key for key in fresh if key in session.wanted)
        fresh.clear()
        self._look_at(keys)

    def _stop_waiting(self) -> None:
        session = self._session
        session.on_wake = session.on_nudge = None
        self._timer.cancel()
        if session.id == 0:
            session.close()

    def _look_at(self, keys: tuple[Key, ...]) -> None:
        session = self._session
        for key in keys:
            before = self._found.get(key)
            if before is not None:
                self._size_bytes -= len(before[1].records)  # type: ignore[arg-type]  # never None here
        for key in keys:
            wanted = session.wanted[key]
            data = self._look(key, wanted, max(self._max_bytes - self._size_bytes, 0), self._size_bytes == 0)
            self._found[key] = wanted, data
            self._size_bytes += len(data.records)  # type: ignore[arg-type]

    def _look(self, key: Key, wanted: Wanted, left: int, first: bool) -> PartitionData:
        """What one partition has to say; it stays dirty unless there is nothing more to say."""
        session = self._session
        partition = None
        try:
            partition = find(self._context, wanted, session.by_id)
            data = self._read(partition, wanted, left, first)
        except Cold as cold:
            assert partition is not None, "finding it reads nothing"
            session.watch(key, partition)
            self._cold_tries += self._context.services.cold.look_up(cold, partition)
            return nothing_yet(wanted.index, partition, READ_UNCOMMITTED)
        except ApiError as error:
            code = error.code
        except StorageError as error:
            assert partition is not None, "finding it reads nothing"
            self._context.partitions.storage_failed(partition, error)
            code = ErrorCode.KAFKA_STORAGE_ERROR
        else:
            session.watch(key, partition)
            if data.diverging_epoch.epoch >= 0:
                self._is_urgent = True
            elif partition.log.written_offset <= wanted.ask.fetch_offset:
                session.dirty.pop(key, None)
            return data
        self._is_urgent = True
        session.unwatch(key)
        return refusal(wanted.index, code)

    def _read(self, partition: Partition, wanted: Wanted, left: int, first: bool) -> PartitionData:
        ask = wanted.ask
        if ask.partition_max_bytes < 0:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        max_bytes = min(ask.partition_max_bytes, left)
        if self._is_held_back(partition):
            max_bytes, first = 0, False
        fetched = partition.fetch_as_follower(
            self._replica_id,
            self._broker_epoch,
            ask.fetch_offset,
            max_bytes,
            self._session.pulse.heard_ms,
            log_start=ask.log_start_offset,
            current_leader_epoch=ask.current_leader_epoch,
            last_fetched_epoch=ask.last_fetched_epoch,
            at_least_one=first,
            pulse=self._session.pulse if self._session.id else None,
            patient=self._cold_tries > limits.COLD_TRIES_MAX * len(self._session.wanted),
        )
        return told(wanted.index, fetched, READ_UNCOMMITTED)

    def _is_held_back(self, partition: Partition) -> bool:
        """Replication of those who are in sync is never throttled: that would throw them out."""
        quota = self._quota
        if quota is None or partition.in_sync is None or self._replica_id in partition.in_sync.isr:
            return False
        return quota.holds_back(partition.topic, partition.index)

    def _respond(self) -> FetchResponse:
        session = self._session
        quota = self._quota
        news = []
        for key, (wanted, data) in self._found.items():
            if wanted.news(data) or self._is_full:
                news.append((wanted, data))
            if data.records:
                session.served(wanted)
                partition = session.watched.get(key)
                if quota is not None and partition is not None:
                    quota.sent(partition.topic, partition.index, len(data.records))
        if session.id == 0:
            session.close()
        return whole(news, session.by_id, session.id, self._version, self._context, follower=True)
