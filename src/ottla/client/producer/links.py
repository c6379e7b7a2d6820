"""A producer's connection to one broker, and a watch for missing answers.

A dead broker (a stopped process, a machine without power) neither answers nor refuses, and a request to it waits until
it times out. So a broker that owes answers and has given none for a second is reported, and again every second: the
sender may then find out that other brokers lead the partitions by now, and close the connection.
"""

import asyncio
from collections.abc import Callable

from ottla.client.connection import Connection

SILENCE_MS = 1_000


class Link:
    __slots__ = ("_answers", "_on_silence", "_seen", "_watch", "connection", "in_flight", "is_silent", "preparing")

    def __init__(self, on_silence: Callable[[], None]) -> None:
        self.connection: Connection | None = None
        self.in_flight = 0
        self.preparing: asyncio.Task[None] | None = None
        self.is_silent = False
        self._on_silence = on_silence
        self._answers = self._seen = 0
        self._watch: asyncio.TimerHandle | None = None

    def sent(self) -> None:
        self.in_flight += 1
        if self._watch is None:
            self._seen = self._answers
            self._watch = asyncio.get_running_loop().call_later(SILENCE_MS / 1000, self._look)

    def answered(self) -> None:
        self.in_flight -= 1
        self._answers += 1
        self.is_silent = False

    def abandon(self) -> None:
        """Close the connection, so that requests in flight fail at once."""
        if self.connection is not None:
            self.connection.close()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()

    def _look(self) -> None:
        self._watch = None
        if self.in_flight == 0:
            return
        self.is_silent = self._answers == self._seen
        self._seen = self._answers
        self._watch = asyncio.get_running_loop().call_later(SILENCE_MS / 1000, self._look)
        if self.is_silent:
            self._on_silence()
