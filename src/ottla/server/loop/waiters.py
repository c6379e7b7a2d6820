"""Waiters: the one place where answers wait for partitions to move.

A waiter is an attempt that is tried again whenever one of its partitions changes (data appended, high watermark or
log start moved, partition deleted) and a last time when its deadline passes. Produce with acks=all and long-polling
fetches wait here; a change that nothing waits for costs one dictionary look-up. A waiter is gone as soon as it is
answered or its connection is; one that fails loses its own connection and never disturbs whoever made the change. An
attempt may change something itself (hand out records, close a connection that takes no answers): it is not tried again
meanwhile, but in the next turn of the loop.

The few that usually wait for a partition are tried at once. Where thousands do, some are tried in each turn of the
loop, in the order they came; what changes meanwhile leads to one more round.

A poll of many partitions takes memory while it waits, which it reserves (`server/loop/request_memory.py`). Where there
is none it does not wait, and when other requests need it its time is over.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from ottla.model import limits
from ottla.server.loop.later import Later
from ottla.server.loop.request_memory import RequestMemory

log = logging.getLogger(__name__)

# Called with the key that changed, and with None at the deadline; True means it is done with.
Attempt = Callable[[Any], bool]


class Waiter:
    """An answer that waits, for the one that may end the wait early."""

    __slots__ = ("_waiters", "attempt", "cost", "hurried", "keys", "later", "reserved_bytes", "timer", "trying")

    def __init__(self, waiters: Waiters, later: Later[Any], keys: tuple[Hashable, ...], attempt: Attempt) -> None:
        self._waiters = waiters
        self.later = later
        self.keys = keys
        self.attempt = attempt
        self.cost = 1 + len(keys) // limits.PARKED_KEYS_FREE  # of one try, compared with others
        self.timer: Any = None  # None again once it is done with
        self.trying = False
        self.hurried = False
        self.reserved_bytes = 0

    def shrink(self) -> None:
        """Somebody else needs its memory."""
        self._waiters.hurry(self)

    def end(self) -> None:
        """Its time is over now."""
        self._waiters.expire(self)

    def drop(self) -> None:
        """It is forgotten without a last try."""
        self._waiters.drop(self)


class Waiters:
    def __init__(self, loop: Any, memory: RequestMemory | None = None) -> None:
        self._loop = loop
        self._memory = memory
        self._by_key: dict[Hashable, dict[Waiter, None]] = {}
        self.count = 0
        self.waited_for = 0  # keys of all of them together
        self._rounds: deque[tuple[Hashable, Iterator[Waiter]]] = deque()  # changed keys, and who was not tried yet
        self._changed_again: dict[Hashable, bool] = {}  # of those keys
        self._hurried: deque[Waiter] = deque()
        self._soon: set[Hashable] = set()  # keys to notify in the next turn
        self._tried = 0  # how much was done since the last turn
        self._is_turn_due = False

    def watch(
        self,
        later: Later[Any],
        keys: Iterable[Hashable],
        attempt: Attempt,
        timeout_ms: int,
        *,
        may_be_hurried: bool = False,
    ) -> Waiter:
        """Parks `attempt`, which sets `later`, on `keys`; the caller has just tried it in vain.

        One that may be hurried has no harm from an early end of its time: it reserves the memory of many keys.
        """
        waiter = Waiter(self, later, tuple(keys), attempt)
        later.on_abandon = waiter.drop
        for key in waiter.keys:
            self._by_key.setdefault(key, {})[waiter] = None
        # Where too many wait already, or there is no memory, the newcomer gets its last try in the next turn.
        wait_ms = min(timeout_ms, limits.WAIT_MS_MAX)
        self.waited_for += len(waiter.keys)
        if self.count >= limits.WAITERS_MAX or self.waited_for > limits.WAITED_FOR_MAX:
            wait_ms = 0
        if may_be_hurried and len(waiter.keys) > limits.PARKED_KEYS_FREE and not self._reserve(waiter):
            wait_ms = 0
        self.count += 1
        waiter.timer = self._loop.call_later(wait_ms / 1000, self.expire, waiter)
        return waiter

    def _reserve(self, waiter: Waiter) -> bool:
        size_bytes = len(waiter.keys) * limits.PARKED_KEY_BYTES
        if self._memory is None or not self._memory.reserve(size_bytes, waiter):
            return self._memory is None
        waiter.reserved_bytes = size_bytes
        self._memory.holders[waiter] = None
        return True

    def hurry(self, waiter: Waiter) -> None:
        """Its time is over, in one of the next turns of the loop."""
        if not waiter.hurried:
            waiter.hurried = True
            self._hurried.append(waiter)
            self._next_turn()

    def notify(self, key: Hashable) -> None:
        waiting = self._by_key.get(key)
        if not waiting:
            return
        if key in self._changed_again:
            self._changed_again[key] = True
            return
        if len(waiting) == 1 and self._tried < limits.WAITERS_TRIED_PER_TURN:
            (waiter,) = waiting
            self._tried += waiter.cost
            self._changed(waiter, key)
            return
        left = iter(tuple(waiting))
        if not self._try_some(key, left):
            self._changed_again[key] = False
            self._rounds.append((key, left))
            self._next_turn()

    def notify_soon(self, key: Hashable) -> None:
        """`notify` in the next turn of the loop, once for all changes until then."""
        if key not in self._soon:
            self._soon.add(key)
            self._loop.call_soon(self._notify_now, key)

    def _notify_now(self, key: Hashable) -> None:
        self._soon.discard(key)
        self.notify(key)

    def _try_some(self, key: Hashable, left: Iterator[Waiter]) -> bool:
        """Tries as many as this turn of the loop has time for; whether those were all."""
        while self._tried < limits.WAITERS_TRIED_PER_TURN:
            waiter = next(left, None)
            if waiter is None:
                return True
            self._tried += waiter.cost
            self._changed(waiter, key)
        return False

    def _next_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_turn_due = False
        self._tried = 0
        while self._hurried and self._tried < limits.WAITERS_TRIED_PER_TURN:
            waiter = self._hurried.popleft()
            self._tried += waiter.cost
            self.expire(waiter)
        if self._hurried:
            self._next_turn()
        while self._rounds:
            key, left = self._rounds.popleft()
            if not self._try_some(key, left):
                self._rounds.append((key, left))  # the other keys have their turn first
                self._next_turn()
                return
            if self._changed_again.pop(key):
                self.notify(key)

    def _changed(self, waiter: Waiter, key: Hashable) -> None:
        if waiter.timer is None:
            return
        if waiter.trying:
            self._loop.call_soon(self._changed, waiter, key)
        elif self._try(waiter, key):
            self.drop(waiter)

    def expire(self, waiter: Waiter) -> None:
        if waiter.timer is not None:
            self.drop(waiter)
            self._try(waiter, None)

    def _try(self, waiter: Waiter, changed: Hashable | None) -> bool:
        waiter.trying = True
        try:
            return waiter.attempt(changed)
        except Exception:
            log.exception("an answer that waited could not be given")
            waiter.later.fail()
            return True
        finally:
            waiter.trying = False

    def drop(self, waiter: Waiter) -> None:
        if waiter.timer is None:
            return
        waiter.timer.cancel()
        waiter.timer = None
        self.count -= 1
        self.waited_for -= len(waiter.keys)
        if waiter.reserved_bytes and self._memory is not None:
            del self._memory.holders[waiter]
            self._memory.release(waiter.reserved_bytes, waiter)
        for key in waiter.keys:
            waiting = self._by_key.get(key)
            if waiting is not None:
                waiting.pop(waiter, None)
                if not waiting:
                    del self._by_key[key]
