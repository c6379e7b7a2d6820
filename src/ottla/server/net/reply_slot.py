"""ReplySlot: the place of one reply in the order of a connection's replies, and the making of a reply that waits.

The component that makes an answer may keep its slot for long. So a slot that needs no answer any more does not refer to
its connection, nor to the work for the answer: both are freed without the garbage collector.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ottla.server.api.dispatch import Part, Route
from ottla.server.api.forwarding.forwarded_answer import Forwarded
from ottla.server.api.request_counts import Phase, RouteCounts
from ottla.server.loop.later import NO_ANSWER, Disconnect, Large, Later, Sliced
from ottla.server.loop.runtime import Runtime
from ottla.wire.message import Response

if TYPE_CHECKING:
    from ottla.server.api.context import Context
    from ottla.server.api.slow_requests import SlowRequests

log = logging.getLogger(__name__)

# What an answer that waits is set to; NO_ANSWER, too.
Reply: TypeAlias = Response | Large[Response] | Forwarded


class SlotOwner(Protocol):
    """The connection that a slot belongs to."""

    runtime: Runtime
    context: Context
    begun_s: float  # when the request that is being handled was begun
    slow: SlowRequests | None  # logs slow requests

    def fill(self, slot: ReplySlot, parts: list[Part]) -> None:
        """Store a reply in its slot; it is sent when those before it are."""

    def keep_turn(self, task: asyncio.Future[Reply]) -> None:
        """Handle no other request until `task` is done."""

    def encoding(self, steps: Generator[None, None, list[Part]]) -> Awaitable[list[Part]]:
        """Return the parts of a large answer, which are made in slices."""

    def fail(self, error: BaseException) -> None:
        """Close the connection because a request failed."""

    def close(self) -> None: ...


class ReplySlot:
    __slots__ = ("_begun_s", "_local_s", "_owner", "_ready_s", "correlation_id", "counts", "give_up", "parts", "route")

    def __init__(self, route: Route, correlation_id: int, owner: SlotOwner) -> None:
        self._owner: SlotOwner | None = owner
        self._begun_s = owner.begun_s
        self.counts = counts_of(route, owner.context)
        is_timed = owner.slow is not None or self.counts is not None
        # how long the handler took: the slot is made when it has returned
        self._local_s = owner.runtime.clock_s() - owner.begun_s if is_timed else 0.0
        self._ready_s = 0.0  # when the reply was ready, if it is behind others
        self.route = route
        self.correlation_id = correlation_id
        self.parts: list[Part] | None = None
        self.give_up: Callable[[], object] | None = None  # stops the work for a reply that nobody needs any more

    def wait_for(self, answer: Large[Response] | Later[Reply] | Awaitable[Reply]) -> None:
        """Fill this slot with the reply when the answer is known."""
        assert self._owner is not None, "its connection is open"
        if isinstance(answer, Later):
            self.give_up = answer.abandon
            answer.then(self.answered, self.failed)
            return
        if isinstance(answer, Large):
            self.answered(answer)
            return
        if isinstance(answer, Sliced):
            task = self._owner.runtime.slices.begin(answer.making)
            self.give_up = None if answer.changes else task.cancel
            self._owner.keep_turn(task)
        else:
            task = asyncio.ensure_future(answer, loop=self._owner.runtime.loop)
            self.give_up = task.cancel
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Future[Reply]) -> None:
        if task.cancelled():
            self.failed()
        elif (error := task.exception()) is None:
            self.answered(task.result())
        elif self._owner is not None:
            self._owner.fail(error)
        elif not isinstance(error, Disconnect):
            log.error("a request of a client that has left failed", exc_info=error)

    def answered(self, response: Reply) -> None:
        owner = self._owner
        if owner is None:
            return
        if self.counts is not None:
            told = response.response if isinstance(response, Large) else response
            self.counts.answered(told, owner.runtime.clock_s() - self._begun_s, self._local_s)
        if owner.slow is not None:
            total_s = owner.runtime.clock_s() - self._begun_s
            owner.slow.answered(self.route, owner.context, self._local_s, total_s)
        if isinstance(response, Large):
            self._encode(response, owner)
        else:
            self._write(lambda: self._parts_of(response), owner)

    def _encode(self, answer: Large[Response], owner: SlotOwner) -> None:
        making = owner.encoding(self.route.reply_in_steps(answer.response, self.correlation_id))
        task = asyncio.ensure_future(making, loop=owner.runtime.loop)
        self.give_up = task.cancel
        task.add_done_callback(self._encoded)

    def _encoded(self, task: asyncio.Future[list[Part]]) -> None:
        if self._owner is not None and not task.cancelled():
            self._write(task.result, self._owner)

    def _write(self, made: Callable[[], list[Part]], owner: SlotOwner) -> None:
        try:
            parts = made()
        except Exception:
            # The caller that set the answer (a producer's append, say) must not get this exception.
            log.exception("an answer (%s) could not be written", self.route.endpoint.name)
            owner.close()
        else:
            owner.fill(self, parts)

    def store(self, parts: list[Part], clock_s: Callable[[], float], *, is_next: bool) -> None:
        """Keep the reply until those before it are sent; `is_next`: nothing is before it. Nothing more is to be done
        for it.
        """
        self.parts = parts
        self.leave()
        if self.counts is not None and not is_next:
            self._ready_s = clock_s()

    def release(self, clock_s: Callable[[], float]) -> list[Part] | None:
        """Give up the reply, because those before it are sent; return None if there is none yet."""
        parts, self.parts = self.parts, None
        if self._ready_s and self.counts is not None:
            self.counts.took_long(Phase.HELD, clock_s() - self._ready_s)
        return parts

    def failed(self) -> None:
        if self._owner is not None:
            self._owner.close()

    def leave(self) -> None:
        """Let go of the connection and of the work for the reply."""
        self._owner = self.give_up = None

    def _parts_of(self, response: Response | Forwarded) -> list[Part]:
        """Return the reply as it is sent."""
        if response is NO_ANSWER:
            return []
        if isinstance(response, Forwarded):
            return [response.frame()]
        return self.route.reply(response, self.correlation_id)


def counts_of(route: Route, context: Context) -> RouteCounts | None:
    """Return what counts a client's requests by this route; followers' fetches are counted by themselves."""
    counts = route.counts
    return counts.followers or counts if counts is not None and context.is_follower else counts


def emptied(slots: deque[ReplySlot]) -> list[Callable[[], object]]:
    """Empty the slots of a connection; return what stops the work for their replies."""
    stops = [slot.give_up for slot in slots if slot.give_up is not None]
    for slot in slots:
        slot.leave()
    slots.clear()
    return stops
