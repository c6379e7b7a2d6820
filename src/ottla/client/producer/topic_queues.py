"""Callers of the producer that have to wait queue up per topic, and are served in order of arrival.

A record whose caller waits (for room in the buffer, for the topic's metadata) must not be overtaken by a later one:
records of one partition are appended in the order of the calls, also if a thousand tasks send at once.
"""

import asyncio
from types import TracebackType


class TopicQueues(dict[str, "_TopicQueue"]):
    """The waiting callers by topic. If `topic in queues`, a new caller has to wait as well."""

    def of(self, topic: str) -> "_TopicQueue":
        """Return the queue of a topic; `async with queues.of(topic):` is entered when all earlier callers have left."""
        queue = self.get(topic)
        if queue is None:
            queue = self[topic] = _TopicQueue(self, topic)
        return queue


class _TopicQueue:
    __slots__ = ("_count", "_lock", "_queues", "_topic")

    def __init__(self, queues: TopicQueues, topic: str) -> None:
        self._queues = queues
        self._topic = topic
        self._lock = asyncio.Lock()  # wakes waiting callers in order of arrival
        self._count = 0  # callers inside or waiting

    async def __aenter__(self) -> None:
        self._count += 1
        try:
            await self._lock.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        self._leave()

    def _leave(self) -> None:
        self._count -= 1
        if not self._count:
            del self._queues[self._topic]
