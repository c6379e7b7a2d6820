"""A node's requests that are in flight: one per destination at a time, and a pause after a failed one."""

from __future__ import annotations

from typing import NamedTuple

from ottla.raft.config import RaftConfig
from ottla.wire.message import Request, Response


class OnItsWay(NamedTuple):
    destination: int
    request: Request[Response]
    deadline_ms: int


class InflightRequests:
    def __init__(self, config: RaftConfig) -> None:
        self._config = config
        self._next_number = 0
        self._busy: dict[int, int] = {}  # destination → number
        self._sent: dict[int, OnItsWay] = {}
        self._ready_ms: dict[int, int] = {}  # destinations that pause → until when

    def is_ready(self, destination: int, now_ms: int) -> bool:
        return destination not in self._busy and self._ready_ms.get(destination, 0) <= now_ms

    def is_busy(self, destination: int) -> bool:
        return destination in self._busy

    def is_failing(self, destination: int) -> bool:
        """Whether the last request to this destination failed or was of no use."""
        return destination in self._ready_ms

    def wake_ms(self, destination: int, now_ms: int) -> int:
        """Return when something may change for this destination."""
        number = self._busy.get(destination)
        if number is not None:
            return self._sent[number].deadline_ms
        return max(self._ready_ms.get(destination, 0), now_ms + 1)

    def sent(self, destination: int, request: Request[Response], now_ms: int) -> int:
        """Note a request that is sent; return its number."""
        number = self._next_number
        self._next_number += 1
        self._busy[destination] = number
        self._sent[number] = OnItsWay(destination, request, now_ms + self._config.request_timeout_ms)
        return number

    def answered(self, number: int) -> OnItsWay | None:
        """End a request that was answered; None if its answer is not expected any more."""
        found = self._end(number)
        if found is not None:
            self._ready_ms.pop(found.destination, None)
        return found

    def failed(self, number: int, now_ms: int) -> OnItsWay | None:
        found = self._end(number)
        if found is not None:
            self.pause(found.destination, now_ms)
        return found

    def pause(self, destination: int, now_ms: int) -> None:
        self._ready_ms[destination] = now_ms + self._config.retry_backoff_ms

    def unpause(self, destination: int) -> None:
        self._ready_ms.pop(destination, None)

    def overdue(self, now_ms: int) -> list[int]:
        return [number for number, each in self._sent.items() if each.deadline_ms <= now_ms]

    def forget(self) -> None:
        """Forget all requests: the role has changed, and their answers are of no interest."""
        self._busy.clear()
        self._sent.clear()
        self._ready_ms.clear()

    def _end(self, number: int) -> OnItsWay | None:
        found = self._sent.pop(number, None)
        if found is not None and self._busy.get(found.destination) == number:
            del self._busy[found.destination]
        return found
