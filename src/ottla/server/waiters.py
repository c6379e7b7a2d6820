"""Waiters: the one place where answers wait for partitions to move.

A waiter is an attempt that is tried again whenever one of its partitions changes (data appended, high watermark or
log start moved) and a last time when its deadline passes. Produce with acks=all, long-polling fetches and
DeleteRecords all wait here; a change nobody waits for costs one dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

# Called with expired=False on every change, with True at the deadline; True means it is done with.
Attempt = Callable[[bool], bool]


class _Waiter:
    __slots__ = ("attempt", "keys", "timer")

    def __init__(self, keys: tuple[Hashable, ...], attempt: Attempt) -> None:
        self.keys = keys
        self.attempt = attempt
        self.timer: Any = None


class Waiters:
    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._by_key: dict[Hashable, dict[_Waiter, None]] = {}
        self.count = 0

    def watch(self, keys: Iterable[Hashable], attempt: Attempt, timeout_ms: int) -> None:
        """Parks `attempt` on `keys`; the caller has just tried it in vain."""
        waiter = _Waiter(tuple(keys), attempt)
        for key in waiter.keys:
            self._by_key.setdefault(key, {})[waiter] = None
        self.count += 1
        waiter.timer = self._loop.call_later(timeout_ms / 1000, self._expire, waiter)

    def notify(self, key: Hashable) -> None:
        waiting = self._by_key.get(key)
        if waiting:
            for waiter in tuple(waiting):
                if waiter.timer is not None and waiter.attempt(False):
                    self._drop(waiter)

    def _expire(self, waiter: _Waiter) -> None:
        if waiter.timer is not None:
            self._drop(waiter)
            waiter.attempt(True)

    def _drop(self, waiter: _Waiter) -> None:
        waiter.timer.cancel()
        waiter.timer = None
        self.count -= 1
        for key in waiter.keys:
            waiting = self._by_key.get(key)
            if waiting is not None:
                waiting.pop(waiter, None)
                if not waiting:
                    del self._by_key[key]
