"""Waiters: the one place where answers wait until a partition changes.

A waiter is an attempt that is tried again whenever one of its partitions changes (data appended, high watermark or log
start moved, partition deleted) and a last time when its deadline passes. Produce with acks=all and long-polling fetches
wait here; a change of a partition without waiters costs one dictionary look-up. A waiter is removed as soon as it is
answered or its connection is closed. An attempt that raises closes its own connection; the code that reported the
change never gets the exception. An attempt may itself change a partition (hand out records, close a connection that
takes no answers): it is then not tried again recursively, but in the next turn of the loop.

The few waiters that a partition usually has are tried at once. If there are thousands, some are tried in each turn of
the loop, in the order of their arrival; a change of the partition meanwhile leads to one more round.

A fetch that waits for many partitions takes memory, which it reserves (`server/loop/request_memory.py`). If no memory
is left it does not wait, and if other requests need its memory its wait ends early.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol

from ottla.model import limits
from ottla.server.loop.request_memory import RequestMemory

log = logging.getLogger(__name__)

# Called with the key that changed, or with None at the deadline; returns True if the waiter is answered.
Attempt = Callable[[Hashable | None], bool]


class WaitingAnswer(Protocol):
    """The part of a `Later` that its waiter needs."""

    on_abandon: Callable[[], None] | None

    def fail(self) -> None: ...


class Waiter:
    """A handle to a waiting answer, with which its wait can be ended early."""

    __slots__ = ("_waiters", "attempt", "cost", "hurried", "keys", "later", "reserved_bytes", "timer", "trying")

    def __init__(self, waiters: Waiters, later: WaitingAnswer, keys: tuple[Hashable, ...], attempt: Attempt) -> None:
        self._waiters = waiters
        self.later = later
        self.keys = keys
        self.attempt = attempt
        # the cost of one attempt, relative to a waiter with few keys
        self.cost = 1 + len(keys) // limits.WAITED_PARTITIONS_FREE
        self.timer: asyncio.TimerHandle | None = None  # None again once the waiter is removed
        self.trying = False
        self.hurried = False
        self.reserved_bytes = 0

    def shrink(self) -> None:
        """End the wait soon because another request needs the memory of this waiter."""
        self._waiters.hurry(self)

    def end(self) -> None:
        """End the wait now, with a last attempt."""
        self._waiters.expire(self)

    def drop(self) -> None:
        """Remove the waiter without a last attempt."""
        self._waiters.drop(self)


class Waiters:
    def __init__(self, loop: asyncio.AbstractEventLoop, memory: RequestMemory | None = None) -> None:
        self._loop = loop
        self._memory = memory
        self._by_key: dict[Hashable, dict[Waiter, None]] = {}
        self.count = 0
        self.waited_for = 0  # the number of keys of all waiters together
        # changed keys, and their waiters that were not tried yet
        self._rounds: deque[tuple[Hashable, Iterator[Waiter]]] = deque()
        # for the keys in `_rounds`: whether they changed since their round began
        self._changed_again: dict[Hashable, bool] = {}
        self._hurried: deque[Waiter] = deque()
        self._soon: set[Hashable] = set()  # keys to notify in the next turn
        self._tried = 0  # the cost of the attempts in this turn of the loop
        self._is_turn_due = False

    def watch(
        self,
        later: WaitingAnswer,
        keys: Iterable[Hashable],
        attempt: Attempt,
        timeout_ms: int,
        *,
        may_be_hurried: bool = False,
    ) -> Waiter:
        """Call `attempt`, which sets `later`, when one of `keys` changes; the caller has just tried it without success.

        An attempt that `may_be_hurried` can be ended early without harm; with many keys, it reserves memory for them.
        """
        waiter = Waiter(self, later, tuple(keys), attempt)
        later.on_abandon = waiter.drop
        for key in waiter.keys:
            self._by_key.setdefault(key, {})[waiter] = None
        # If there are too many waiters already, or no memory is left, a new waiter gets its last attempt in the next
        # turn.
        wait_ms = min(timeout_ms, limits.WAIT_MS_MAX)
        self.waited_for += len(waiter.keys)
        if self.count >= limits.WAITERS_MAX or self.waited_for > limits.WAITED_FOR_MAX:
            wait_ms = 0
        if may_be_hurried and len(waiter.keys) > limits.WAITED_PARTITIONS_FREE and not self._reserve(waiter):
            wait_ms = 0
        self.count += 1
        waiter.timer = self._loop.call_later(wait_ms / 1000, self.expire, waiter)
        return waiter

    def _reserve(self, waiter: Waiter) -> bool:
        size_bytes = len(waiter.keys) * limits.WAITED_PARTITION_BYTES
        if self._memory is None or not self._memory.reserve(size_bytes, waiter):
            return self._memory is None
        waiter.reserved_bytes = size_bytes
        self._memory.holders[waiter] = None
        return True

    def hurry(self, waiter: Waiter) -> None:
        """End the wait of `waiter`, with a last attempt, in one of the next turns of the loop."""
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
        """Call `notify` in the next turn of the loop, once for all changes until then."""
        if key not in self._soon:
            self._soon.add(key)
            self._loop.call_soon(self._notify_now, key)

    def _notify_now(self, key: Hashable) -> None:
        self._soon.discard(key)
        self.notify(key)

    def _try_some(self, key: Hashable, left: Iterator[Waiter]) -> bool:
        """Try as many waiters as the budget of this turn allows; return whether all were tried."""
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
                self._rounds.append((key, left))  # behind the rounds of the other keys
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
