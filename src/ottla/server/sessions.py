"""Fetch sessions (KIP-227): what a consumer or follower reads, remembered, so that each fetch names only changes.

A full fetch (epoch 0) may open a session; incremental fetches (epoch 1, 2, …) add, change or forget partitions and
are answered only with partitions that have news. Epoch -1 closes a session or fetches without one. The table is
bounded: a new session may take the place of one that has been idle, or of a smaller, older one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.wire.messages.fetch import FetchRequest

FINAL_EPOCH = -1
INITIAL_EPOCH = 0

FetchPartition = FetchRequest.Topic.Partition


class Wanted:
    """One partition that a fetch asks for, and what its session last told about it."""

    __slots__ = ("ask", "index", "told_high_watermark", "told_log_start", "topic")

    def __init__(self, topic: str | bytes, ask: FetchPartition) -> None:
        self.topic = topic  # by name up to version 12, by id since
        self.index = ask.partition
        self.ask = ask
        self.told_high_watermark = -1
        self.told_log_start = -1

    def news(self, data: Any) -> bool:
        """Whether an incremental answer must carry `data`; remembers what is told."""
        if (
            data.records
            or data.error_code
            or data.high_watermark != self.told_high_watermark
            or data.log_start_offset != self.told_log_start
            or data.diverging_epoch.epoch >= 0
            or data.preferred_read_replica >= 0
        ):
            # After an error the next good answer is news again, whatever it says.
            self.told_high_watermark = -1 if data.error_code else data.high_watermark
            self.told_log_start = -1 if data.error_code else data.log_start_offset
            return True
        return False


class Session:
    __slots__ = ("by_id", "created_ms", "epoch", "id", "used_ms", "wanted")

    def __init__(self, session_id: int, by_id: bool, now_ms: int) -> None:
        self.id = session_id
        self.by_id = by_id
        self.epoch = 1
        self.created_ms = self.used_ms = now_ms
        self.wanted: dict[tuple[str | bytes, int], Wanted] = {}

    def add(self, entries: Iterable[Wanted]) -> None:
        for entry in entries:
            known = self.wanted.get((entry.topic, entry.index))
            if known is not None:
                known.ask = entry.ask
            elif len(self.wanted) < limits.FETCH_SESSION_PARTITIONS_MAX:
                self.wanted[entry.topic, entry.index] = entry

    def forget(self, topic: str | bytes, index: int) -> None:
        self.wanted.pop((topic, index), None)

    def served(self, entry: Wanted) -> None:
        """Moves a partition that got data to the end, so that all get their turn under max_bytes."""
        if len(self.wanted) > 1:
            self.wanted[entry.topic, entry.index] = self.wanted.pop((entry.topic, entry.index))


class Sessions:
    def __init__(self, slots: int, rng: Any) -> None:
        self._slots = slots
        self._rng = rng
        self._sessions: dict[int, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, by_id: bool, now_ms: int) -> Session | None:
        """The session a request runs in; None for a fetch without one. Raises what KIP-227 says on a mismatch."""
        if request.session_epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._sessions.pop(request.session_id, None)
            if request.session_epoch == FINAL_EPOCH or not request.topics:
                return None
            return self._create(request, by_id, now_ms)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise ApiError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.by_id != by_id:
            del self._sessions[session.id]
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if session.epoch != request.session_epoch:
            raise ApiError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.epoch = 1 if session.epoch == limits.INT32_MAX else session.epoch + 1
        session.used_ms = now_ms
        session.add(asked(request, by_id))
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.forget(topic.topic_id if by_id else topic.topic, index)
        return session

    def _create(self, request: FetchRequest, by_id: bool, now_ms: int) -> Session | None:
        entries = list(asked(request, by_id))
        if len(self._sessions) >= self._slots and not self._evict(len(entries), now_ms):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._rng.getrandbits(31)
        session = self._sessions[session_id] = Session(session_id, by_id, now_ms)
        session.add(entries)
        return session

    def _evict(self, size: int, now_ms: int) -> bool:
        """Makes room for a session of `size` partitions, if one is stale or both older and smaller."""
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.used_ms)
        if now_ms - oldest.used_ms > limits.FETCH_SESSION_EVICTION_MS:
            del self._sessions[oldest.id]
            return True
        smallest = min(self._sessions.values(), key=lambda session: (len(session.wanted), session.used_ms))
        settled = now_ms - smallest.created_ms > limits.FETCH_SESSION_EVICTION_MS
        if settled and len(smallest.wanted) < size:
            del self._sessions[smallest.id]
            return True
        return False


def asked(request: FetchRequest, by_id: bool) -> Iterator[Wanted]:
    """The partitions a request names, in its order."""
    for topic in request.topics:
        name = topic.topic_id if by_id else topic.topic
        for partition in topic.partitions:
            yield Wanted(name, partition)
