"""The way of a producer to one broker, and an eye on it.

A broker that is dead to the world (a stopped process, a machine without power) neither answers nor refuses, and
a request waits for it until it times out. So whoever owes answers and gives none for a second is reported, and again
every second: the owner may then find out that others lead by now, and give the connection up.
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
        """Wait no longer for what is under way."""
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
