"""PasswordTurns: the order in which requests have their passwords checked by brokers, so that a flood of wrong
passwords does not delay other clients.

Rules:
- The number of checks under way is bounded: in all, for one client address, and for one user from all addresses.
- Each address has a queue of bounded length, and addresses take turns.
- If too many requests wait in all queues together, the newest request of the longest queue is refused for a new one. If
  no queue is longer than that of the new request, the new request is refused.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from ottla.model import limits


class TooBusy(Exception):
    """Too many passwords are being checked; the client may try again soon."""


class _Waiter(NamedTuple):
    host: str
    user: str
    granted: asyncio.Future[None]


class PasswordTurns:
    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[_Waiter]] = OrderedDict()  # by address; the first is served next
        self._waiting = 0
        self._under_way = 0
        self._of_host: Counter[str] = Counter()  # under way
        self._of_user: Counter[str] = Counter()  # under way

    @asynccontextmanager
    async def turn(self, host: str, user: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it. Raises TooBusy."""
        waiter = self._wait(host, user)
        self._serve()
        try:
            await waiter.granted
        except asyncio.CancelledError:
            if waiter in self._queues.get(host, ()):
                self._leave(waiter)
            elif not waiter.granted.cancelled() and waiter.granted.exception() is None:
                self._end(waiter)
            raise
        try:
            yield
        finally:
            self._end(waiter)

    def _wait(self, host: str, user: str) -> _Waiter:
        length = len(self._queues.get(host, ()))
        if length >= limits.PASSWORD_CHECKS_WAITING_PER_HOST_MAX:
            raise TooBusy
        if self._waiting >= limits.PASSWORD_CHECKS_WAITING_MAX:
            longest = max(self._queues.values(), key=len)
            if len(longest) <= length + 1:
                raise TooBusy
            newest = longest[-1]
            self._leave(newest)
            if not newest.granted.done():
                newest.granted.set_exception(TooBusy())
        waiter = _Waiter(host, user, asyncio.get_running_loop().create_future())
        self._queues.setdefault(host, deque()).append(waiter)
        self._waiting += 1
        return waiter

    def _leave(self, waiter: _Waiter) -> None:
        queue = self._queues[waiter.host]
        queue.remove(waiter)
        self._waiting -= 1
        if not queue:
            del self._queues[waiter.host]

    def _serve(self) -> None:
        while self._under_way < limits.PASSWORD_CHECKS_AT_ONCE_MAX:
            waiter = self._next()
            if waiter is None:
                return
            self._leave(waiter)
            if waiter.host in self._queues:
                self._queues.move_to_end(waiter.host)
            self._under_way += 1
            self._of_host[waiter.host] += 1
            self._of_user[waiter.user] += 1
            waiter.granted.set_result(None)

    def _next(self) -> _Waiter | None:
        for host, queue in self._queues.items():
            if self._of_host[host] < limits.PASSWORD_CHECKS_PER_HOST_MAX:
                for waiter in queue:
                    if not waiter.granted.done() and self._of_user[waiter.user] < limits.PASSWORD_CHECKS_PER_USER_MAX:
                        return waiter
        return None

    def _end(self, waiter: _Waiter) -> None:
        self._under_way -= 1
        for counts, key in ((self._of_host, waiter.host), (self._of_user, waiter.user)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]
        self._serve()
