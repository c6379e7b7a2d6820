"""Turns: callers that have to wait take their places per topic, and are served in the order in which they came.

A record whose caller waits (for room in the buffer, for the topic's metadata) must not be overtaken by one that came
later: records of one partition are appended in the order of the calls, also where a thousand tasks send at once.
"""

import asyncio
from types import TracebackType


class Turns(dict[str, "_Line"]):
    """Who waits, by topic. `topic in turns` says whether somebody does: a newcomer then has to wait as well."""

    def of(self, topic: str) -> "_Line":
        """`async with turns.of(topic):` is entered when all who came before have left it."""
        line = self.get(topic)
        if line is None:
            line = self[topic] = _Line(self, topic)
        return line


class _Line:
    __slots__ = ("_count", "_lock", "_topic", "_turns")

    def __init__(self, turns: Turns, topic: str) -> None:
        self._turns = turns
        self._topic = topic
        self._lock = asyncio.Lock()  # serves those who wait in the order in which they came
        self._count = 0  # who is in it or waits

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
            del self._turns[self._topic]
