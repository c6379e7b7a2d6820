"""LivePartition: a share partition that is in use on this node, with the timer of its acquisition locks and delays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.machine.kit import ClockSteps
from ottla.model.errors import ApiError
from ottla.replica.partition import Partition
from ottla.server.loop.runtime import Runtime
from ottla.server.shares.delivery_counts import DeliveryCounts
from ottla.server.shares.share_rules import GroupRules, ShareRules
from ottla.shares.partition.partition import SharePartition
from ottla.shares.partition.terms import Rules, Transition
from ottla.shares.state.partition import SharePartitionId


class LivePartition:
    """`state` is None until it is loaded; `error` says why it cannot be loaded, or why it was dropped.

    `expired(partition, change)` is called when acquisition locks have expired; `changed(partition)` wakes waiting
    fetches.
    """

    def __init__(
        self,
        id: SharePartitionId,
        partition: Partition,
        rules: ShareRules,
        deliveries: DeliveryCounts,
        runtime: Runtime,
        *,
        expired: Callable[[LivePartition, Transition], object],
        changed: Callable[[LivePartition], None],
    ) -> None:
        self.id = id
        self.partition = partition
        # The leader epoch in which the state was read. Another leader may have read it since, even if this node leads
        # again by now: then the state here is outdated, and the share coordinator refuses its changes.
        self.leader_epoch = partition.leader_epoch
        self.state: SharePartition | None = None
        self.error: ApiError | None = None
        self.state_epoch = 0
        self.deliveries = deliveries
        self._rules = rules
        self._runtime = runtime
        self._expired = expired
        self._changed = changed
        self.closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._clock_steps = ClockSteps(runtime.clocks.moment())

    @property
    def rules(self) -> GroupRules:
        return self._rules.of(self.id.group_id)

    def ready(self, now_ms: int) -> SharePartition:
        """Return the state, updated with the current rules and log start."""
        state = self.state
        assert state is not None, "it is loaded"
        by_ms = self._clock_steps.since(self._runtime.clocks.moment())
        if by_ms:
            self._timer_ms += by_ms
            state.clock_set(by_ms)
        rules = self.rules.records
        if rules is not state.rules:
            again = rules.inspects and (rules.key_ordered, rules.delayed) != (
                state.rules.key_ordered,
                state.rules.delayed,
            )
            state.rules = rules
            if again:
                state.look_again()
        state.advance(self.partition.log.log_start_offset)
        return state

    # --- the timer

    def wake_at(self, deadline_ms: int | None) -> None:
        """Check locks and delays at this time at the latest."""
        if deadline_ms is None or self.closed:
            return
        # An overdue timer that has not fired means that the clock was set forward: the timer would fire too late.
        now_ms = self._runtime.now_ms()
        if self._timer is not None and now_ms < self._timer_ms <= deadline_ms:
            return
        self._disarm()
        self._timer_ms = deadline_ms
        self._timer = self._runtime.loop.call_later(max(0, deadline_ms - now_ms) / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        now_ms = self._runtime.now_ms()
        if self.state is None:
            return
        state = self.ready(now_ms)
        over = state.expire(now_ms)
        if over is not None:
            self._expired(self, over)
        self.arm(now_ms)
        self._changed(self)

    def arm_after(self, rules: Rules, now_ms: int) -> None:
        """Set the timer after a change: new locks expire after old ones, so only backoffs and delays can need an
        earlier time.
        """
        if self._timer is None or rules.backoff_ms > 0 or rules.inspects:
            self.arm(now_ms)

    def arm(self, now_ms: int) -> None:
        """Set the timer for the next lock or delay that ends."""
        if self.state is not None:
            self.wake_at(self.state.next_lock_ms())
            self.wake_at(self.state.next_due_ms(now_ms))

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """Stop the timer."""
        self.closed = True
        self._disarm()
