"""Fetch sessions (KIP-227): the partitions of a consumer or follower are remembered, so that each fetch names only
changes.

A full fetch (epoch 0) may open a session with its answer; incremental fetches (epoch 1, 2, …) add, change or forget
partitions and are answered only with partitions that have news. Epoch -1 closes a session or fetches without one, and a
session without partitions is closed too. The table is bounded: a new session may replace one that has been idle, or a
smaller, older one; a follower's session may replace any consumer's. The number of partitions of all sessions together
is bounded, too, and so are the names of their topics. A reader that gets no session is served all the same, and names
all partitions with every fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from random import Random

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TOPIC_NAME_CHARS_MAX
from ottla.model.session_epochs import FINAL_EPOCH, INITIAL_EPOCH
from ottla.server.fetch.sessions import Session, SessionTable
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

# The shortest time between two searches of a full table, because clients without a session ask with every fetch.
_SEARCH_MS = 1_000

FetchPartition = FetchRequest.Topic.Partition
PartitionData = FetchResponse.FetchableTopicResponse.PartitionData
Key = tuple[str | bytes, int]


class AskedPartition:
    """One partition of a fetch, and the values that its session last sent."""

    __slots__ = ("ask", "index", "told_high_watermark", "told_log_start", "topic")

    def __init__(self, topic: str | bytes, ask: FetchPartition) -> None:
        self.topic = topic  # by name up to version 12, by id since
        self.index = ask.partition
        self.ask = ask
        self.told_high_watermark = -1
        self.told_log_start = -1

    def news(self, data: PartitionData) -> bool:
        """Return whether an incremental answer must include `data`; remember the values that are sent."""
        if (
            data.records
            or data.error_code
            or data.high_watermark != self.told_high_watermark
            or data.log_start_offset != self.told_log_start
            or data.diverging_epoch.epoch >= 0
            or data.preferred_read_replica >= 0
        ):
            # After an error the next successful answer is always news.
            self.told_high_watermark = -1 if data.error_code else data.high_watermark
            self.told_log_start = -1 if data.error_code else data.log_start_offset
            return True
        return False


class FetchSession(Session[int, Key, AskedPartition]):
    """The session of a consumer; `key` is its id."""

    __slots__ = ("by_id", "counted", "created_ms", "is_privileged", "used_ms")

    def __init__(self, session_id: int, by_id: bool, now_ms: int) -> None:
        super().__init__(session_id)
        self.by_id = by_id
        self.created_ms = self.used_ms = now_ms
        self.is_privileged = False
        self.counted = 0  # its number of partitions as included in the table's total

    def begin(self, entries: Iterable[AskedPartition]) -> None:
        """Take over the partitions of the full fetch that opened the session."""
        self.partitions = {(entry.topic, entry.index): entry for entry in entries}

    def change(self, request: FetchRequest) -> tuple[list[AskedPartition], list[AskedPartition]]:
        """Apply the partitions that an incremental request names and forgets; return both lists."""
        partitions = self.partitions
        named = []
        for key, entry in asked_partitions(request, self.by_id).items():
            known = partitions.setdefault(key, entry)
            known.ask = entry.ask
            named.append(known)
        forgotten = []
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                gone = partitions.pop((topic.topic_id if self.by_id else topic.topic, index), None)
                if gone is not None:
                    forgotten.append(gone)
        return named, forgotten

    def served(self, entry: AskedPartition) -> None:
        """Move a partition that got data to the end, so that all partitions get their turn under max_bytes."""
        # A later pipelined request may have removed the partition while this one waited.
        if len(self.partitions) > 1 and self.partitions.pop((entry.topic, entry.index), None) is not None:
            self.partitions[entry.topic, entry.index] = entry


class FetchSessions(SessionTable[int, FetchSession]):
    not_found = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    wrong_epoch = ErrorCode.INVALID_FETCH_SESSION_EPOCH

    def __init__(self, slots: int, rng: Random) -> None:
        super().__init__()
        self._slots = slots
        self._rng = rng
        self._partitions = 0  # the number of partitions of all sessions
        self.evicted = 0  # sessions that made room for others
        self._searched_ms = -_SEARCH_MS
        self._searched_for = 0

    def enter(self, request: FetchRequest, by_id: bool, now_ms: int) -> FetchSession | None:
        """Return the session that an incremental fetch continues; None for a full fetch. Raises KIP-227's errors."""
        session_id, epoch = request.session_id, request.session_epoch
        if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self.drop(session_id)
            return None
        session = self.find(session_id, epoch)
        if session.by_id != by_id:
            raise ApiError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if not session.is_privileged and is_too_large(request):
            self.drop(session_id)  # the session would be too large; its client starts again with a full fetch
            raise ApiError(self.not_found)
        session.change(request)
        self._count(session)
        if not session.partitions:
            self.drop(session_id)
            return None
        has_too_many = not session.is_privileged and session.counted > limits.FETCH_SESSION_PARTITIONS_MAX
        if has_too_many or not self._make_room(session, now_ms):
            self.drop(session_id)
            raise ApiError(self.not_found)
        self.continued(session_id)
        session.used_ms = now_ms
        return session

    def open(
        self,
        entries: Iterable[AskedPartition],
        by_id: bool,
        now_ms: int,
        make: Callable[[int, bool, int], FetchSession] = FetchSession,
    ) -> FetchSession | None:
        """Open a session with the partitions of a full fetch, in this order; None if the table has no room."""
        wanted = list(entries)
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._rng.getrandbits(31)
        session = make(session_id, by_id, now_ms)
        if not session.is_privileged and len(wanted) > limits.FETCH_SESSION_PARTITIONS_MAX:
            return None
        session.begin(wanted)
        if len(self._sessions) >= self._slots and not self._evict(session, now_ms):
            return None
        self._count(session)
        if not self._make_room(session, now_ms):
            self._partitions -= session.counted
            return None
        self._sessions[session_id] = session
        return session

    def left(self, session: FetchSession) -> None:
        self._partitions -= session.counted

    def _count(self, session: FetchSession) -> None:
        self._partitions += len(session.partitions) - session.counted
        session.counted = len(session.partitions)

    def _drop_for_another(self, session: FetchSession) -> None:
        self.evicted += 1
        self.drop(session.key)

    def _make_room(self, session: FetchSession, now_ms: int) -> bool:
        """Drop sessions that were idle for long until the total of partitions is small enough; return whether it is."""
        while self._partitions > limits.FETCH_SESSIONS_PARTITIONS_MAX:
            others = (each for each in self._sessions.values() if each is not session)
            if session.is_privileged:
                others = (each for each in others if not each.is_privileged)
            oldest = next(others, None)
            if oldest is None or not (
                session.is_privileged or now_ms - oldest.used_ms > limits.FETCH_SESSION_EVICTION_MS
            ):
                return False
            self._drop_for_another(oldest)
        return True

    def _evict(self, newcomer: FetchSession, now_ms: int) -> bool:
        """Make room by dropping a session that is stale, or of a lower kind, or both older and smaller; return whether
        there is one.
        """
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > limits.FETCH_SESSION_EVICTION_MS:
            self._drop_for_another(oldest)
            return True
        size = len(newcomer.partitions)
        if now_ms - self._searched_ms < _SEARCH_MS and size <= self._searched_for and not newcomer.is_privileged:
            return False
        settled_ms = now_ms - limits.FETCH_SESSION_EVICTION_MS
        lower = [each for each in self._sessions.values() if newcomer.is_privileged and not each.is_privileged]
        settled = [
            session
            for session in self._sessions.values()
            if session.created_ms < settled_ms
            and len(session.partitions) < size
            and session.is_privileged <= newcomer.is_privileged
        ]
        smallest = min(lower or settled, key=lambda session: len(session.partitions), default=None)
        if smallest is not None:
            self._drop_for_another(smallest)
            return True
        self._searched_ms, self._searched_for = now_ms, size
        return False


def names_more_than(request: FetchRequest, most: int) -> bool:
    """Return whether a request names more partitions, or more topics, with or without partitions."""
    topics = request.topics
    return len(topics) > most or sum(len(topic.partitions) for topic in topics) > most


def is_too_large(request: FetchRequest) -> bool:
    """Return whether no session of a consumer may hold what the request names: too many partitions, or a topic whose
    name takes more memory than that of any topic that exists.
    """
    return names_more_than(request, limits.FETCH_SESSION_PARTITIONS_MAX) or any(
        len(topic.topic) > TOPIC_NAME_CHARS_MAX or not topic.topic.isascii() for topic in request.topics
    )


def asked_partitions(request: FetchRequest, by_id: bool) -> dict[Key, AskedPartition]:
    """Return the partitions a request names, in its order; for one that is named twice the last entry counts."""
    found: dict[Key, AskedPartition] = {}
    for topic in request.topics:
        _add(found, topic.topic_id if by_id else topic.topic, topic.partitions)
    return found


def asked_partitions_in_steps(request: FetchRequest, by_id: bool) -> Generator[None, None, dict[Key, AskedPartition]]:
    """Do the same as `asked_partitions` in slices, for very many partitions."""
    found: dict[Key, AskedPartition] = {}
    added = 0
    for topic in request.topics:
        for begin in range(0, max(1, len(topic.partitions)), limits.ELEMENTS_PER_STEP):
            some = topic.partitions[begin : begin + limits.ELEMENTS_PER_STEP]
            _add(found, topic.topic_id if by_id else topic.topic, some)
            added += 1 + len(some)
            if added >= limits.ELEMENTS_PER_STEP:
                added = 0
                yield
    return found


def _add(found: dict[Key, AskedPartition], topic: str | bytes, partitions: Iterable[FetchPartition]) -> None:
    for partition in partitions:
        found[topic, partition.partition] = AskedPartition(topic, partition)
