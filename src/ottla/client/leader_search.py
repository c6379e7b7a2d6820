"""Looking up leaders: of partitions whose leader is not known, or could not be reached.

Rules:
- One search serves all partitions of a fetcher: each Metadata request names all topics that are due. Each partition
  leaves the search by itself, and has its own count of tries: one without a leader, or of a topic that does not exist,
  holds up no other.
- The leader of a partition whose leader failed is looked up at once, and once more after a moment if it is the same.
- An error that is not transient is reported (`failed`). A topic (or partition) that does not exist may be created
  again: a `patient` search waits for it, and logs that once. Any other search reports it after as many tries as
  `api_timeout_ms` allow.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from ottla.client.cluster import Cluster
from ottla.client.consumer.fetched import FetchCursor
from ottla.client.errors import ClientError
from ottla.client.metadata import NoPartition
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

_MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class LeaderSearch:
    """The cursors whose leaders are being looked up; they are busy meanwhile."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        patient: bool,
        found: Callable[[FetchCursor], None],
        failed: Callable[[FetchCursor, Exception], None],
    ) -> None:
        self._cluster = cluster
        self._patient = patient
        self._found = found
        self._failed = failed
        self._due_s: dict[FetchCursor, float] = {}
        self._looked: dict[FetchCursor, None] = {}  # looked up at least once since the failure
        self._missing: dict[str | TopicPartition, None] = {}  # topics and partitions that were logged as missing
        self._joined = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __bool__(self) -> bool:
        return bool(self._due_s)

    def add(self, cursor: FetchCursor) -> None:
        """Look up the leader of the cursor's partition; `cursor.failure` says why, if it was known before."""
        cursor.busy = True
        self._due_s[cursor] = 0.0
        self._joined.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._search())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for cursor in self._due_s:
            cursor.busy = False
        self._due_s.clear()

    async def _search(self) -> None:
        loop = asyncio.get_running_loop()
        while self._due_s:
            self._joined.clear()
            now_s = loop.time()
            due = [cursor for cursor, at_s in self._due_s.items() if at_s <= now_s]
            if due:
                try:
                    await self._look(self._without_those_given_up(due))
                except Exception as defect:  # the cursors' owners have to be told, or they would wait for ever
                    for cursor in [each for each in due if each in self._due_s]:
                        self._give_up(cursor, defect)
                continue
            try:
                async with asyncio.timeout(min(self._due_s.values()) - now_s):
                    await self._joined.wait()
            except TimeoutError:
                pass

    def _without_those_given_up(self, cursors: Iterable[FetchCursor]) -> list[FetchCursor]:
        options = self._cluster.options
        left: list[FetchCursor] = []
        for cursor in cursors:
            if cursor.is_dropped:
                self._leave(cursor)
                continue
            if cursor.failure is not None:
                cursor.retries += 1
                if not self._patient and cursor.retries * options.retry_backoff_max_ms > options.api_timeout_ms:
                    self._give_up(cursor, cursor.failure)
                    continue
            left.append(cursor)
        return left

    async def _look(self, cursors: list[FetchCursor]) -> None:
        """Request metadata of all their topics at once; each cursor has its own outcome."""
        if not cursors:
            return
        topics = dict.fromkeys(cursor.partition.topic for cursor in cursors)
        codes: dict[str, ErrorCode] = {}
        failure: Exception | None = None
        try:
            _, codes = await self._cluster.refresh(topics)
        except (ClientError, ApiError) as error:
            failure = error
        for cursor in cursors:
            try:
                if failure is not None:
                    raise failure
                self._settle(cursor, self._leader_of(cursor, codes))
            except (ClientError, ApiError) as error:
                self._not_found(cursor, error)

    def _leader_of(self, cursor: FetchCursor, codes: dict[str, ErrorCode]) -> tuple[int, int]:
        name, index = cursor.partition
        code = codes.get(name, ErrorCode.NONE)
        info = self._cluster.metadata.topics.get(name)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or (info is None and not code):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        if code or info is None:
            raise ApiError(code)
        self._missing.pop(name, None)
        leader = info.leader(index)
        self._missing.pop(cursor.partition, None)
        return leader

    def _settle(self, cursor: FetchCursor, leader: tuple[int, int]) -> None:
        if cursor.failure is None or cursor in self._looked or leader != cursor.tried:
            cursor.failure = None
            self._leave(cursor)
            self._found(cursor)
        else:
            self._look_again(cursor)

    def _not_found(self, cursor: FetchCursor, error: ClientError | ApiError) -> None:
        topic = cursor.partition.topic
        is_missing = isinstance(error, ApiError) and error.code in _MISSING
        is_new = self._cluster.metadata.is_new(topic, asyncio.get_running_loop().time())
        # If no broker answered, `refresh` has waited long enough for a search that is not patient.
        is_over = not self._patient and (isinstance(error, ClientError) or (is_missing and not is_new))
        if is_over or not self._cluster.passes(error):
            self._give_up(cursor, error)
            return
        missing = cursor.partition if isinstance(error, NoPartition) else topic
        if is_missing and not is_new and missing not in self._missing:
            self._missing[missing] = None
            log.warning("%s; it is read when it is there", error)
        cursor.failure = error
        self._look_again(cursor)

    def _look_again(self, cursor: FetchCursor) -> None:
        self._looked[cursor] = None
        wait_ms = self._cluster.options.seeking_ms(cursor.retries or 1)
        self._due_s[cursor] = asyncio.get_running_loop().time() + wait_ms / 1000

    def _give_up(self, cursor: FetchCursor, error: Exception) -> None:
        cursor.failure = None
        self._leave(cursor)
        self._failed(cursor, error)

    def _leave(self, cursor: FetchCursor) -> None:
        del self._due_s[cursor]
        self._looked.pop(cursor, None)
