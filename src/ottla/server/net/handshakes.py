"""Handshakes: the TLS handshakes under way on one listener, bounded in number, time and work per turn.

When there are too many, an idle one makes room for a new one (`Handshake.is_idle`): that of the address that has the
most of them, and its oldest. An address with many handshakes loses one to another address at once, however busy they
are; of few ones, only those are given up that have kept the node waiting: for a moment if the client has not said hello
yet, for some round trips later. So neither silent connections nor those that send a byte from time to time keep others
out for long, a client that has just connected is not given up before it could say hello, and a burst of good clients is
not slowed down. If none can be given up, new connections wait in the kernel's queue, the oldest first.

A client with IPv6 has many addresses, so all addresses of a /64 network count as one.

A step of a handshake costs about a millisecond of CPU. Steps that are due wait in a queue, of which some are taken per
turn of the loop, so that a burst of new clients does not delay connected ones. If steps take longer, as with a large
RSA key, further ones are taken by workers; such a connection needs a `TlsPipe` of its own.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from ottla.model import limits
from ottla.security.address_holder import holder_of
from ottla.server.loop.runtime import Runtime
from ottla.server.net.handshake import Done, Handshake
from ottla.server.net.tls_pipe import TlsPipe
from ottla.server.net.tls_socket import TlsSocket

log = logging.getLogger(__name__)

# Called with the address of a client that was refused, or that refused this node, and the reason.
OnRefused: TypeAlias = Callable[[str, str], None]


class Handshakes:
    def __init__(
        self, runtime: Runtime, on_refused: OnRefused, on_left: Callable[[], None] = lambda: None, listener: str = ""
    ) -> None:
        """`on_left` is called when a handshake has ended."""
        self.listener = listener
        self.on_refused = on_refused
        self._on_left = on_left
        self._runtime = runtime
        self._loop = runtime.loop
        self._count = 0
        self._by_holder: dict[str, dict[Handshake, None]] = {}  # the oldest first
        self._due: deque[Handshake] = deque()
        self._turn_is_coming = False
        self._in_workers = 0  # steps that workers take, because one took too long for the loop
        self._slowness = 0  # of the steps that the loop took last
        self._waiting: dict[Callable[[], None], None] = {}  # listeners that stopped accepting
        self._closed = False
        self._pipe: TlsPipe | None = None  # of all connections whose handshakes need no workers

    def __len__(self) -> int:
        return self._count

    @property
    def full(self) -> bool:
        """Whether there are as many handshakes as there may be, and none of them can be given up for another one."""
        return self._count >= limits.TLS_HANDSHAKES_MAX and self._most_idle() is None

    @property
    def has_idle(self) -> bool:
        """Whether one of the handshakes can be given up."""
        return self._most_idle() is not None

    def refuses(self, address: str) -> str | None:
        """Return why a handshake with `address` is refused, or None. Others are given up for it if that is needed."""
        holder = holder_of(address)
        own = self._by_holder.get(holder, {})
        if len(own) >= limits.TLS_HANDSHAKES_PER_ADDRESS_MAX and not _give_up(_first_idle(own, at_once=False)):
            return f"{limits.TLS_HANDSHAKES_PER_ADDRESS_MAX} handshakes with {holder} are under way"
        if self._count >= limits.TLS_HANDSHAKES_MAX and not self.give_up_one(holder):
            return f"{limits.TLS_HANDSHAKES_MAX} handshakes are under way"
        return None

    def give_up_one(self, holder: str = "") -> bool:
        """Give up a handshake for another one, of this holder; return whether there was an idle one."""
        return _give_up(self._most_idle(holder))

    def _most_idle(self, newcomer: str = "") -> Handshake | None:
        """Return the handshake that makes room for another one of `newcomer`, if there is one."""
        for holder, own in sorted(self._by_holder.items(), key=lambda each: -len(each[1])):
            has_many = holder != newcomer and len(own) > limits.TLS_HANDSHAKES_PER_ADDRESS_FAIR
            found = _first_idle(own, at_once=has_many)
            if found is not None:
                return found
        return None

    def when_there_is_room(self, resume: Callable[[], None]) -> None:
        self._waiting[resume] = None

    def begin(self, raw: socket.socket, address: str, context: ssl.SSLContext, done: Done) -> None:
        """Take over an accepted, non-blocking socket; `done` gets it when the handshake has succeeded."""
        secured = partial(TlsSocket, raw, context, self._runtime.clock_s)
        handshake = Handshake(self, self._loop, raw, secured, address, done)
        self._count += 1
        self._by_holder.setdefault(holder_of(address), {})[handshake] = None
        handshake.wait_for("reader")

    def due(self, handshake: Handshake) -> None:
        self._due.append(handshake)
        self._come_again()

    def left(self, handshake: Handshake) -> None:
        holder = holder_of(handshake.address)
        own = self._by_holder[holder]
        del own[handshake]
        self._count -= 1
        if not own:
            del self._by_holder[holder]
        waiting, self._waiting = self._waiting, {}
        for resume in waiting:
            resume()
        self._on_left()

    def close(self) -> None:
        self._closed = True
        for handshake in [each for own in self._by_holder.values() for each in own]:
            handshake.end("the node is stopping")

    def _come_again(self) -> None:
        if self._due and not self._turn_is_coming and not self._closed:
            self._turn_is_coming = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_is_coming = False
        for _ in range(min(limits.TLS_HANDSHAKE_STEPS_PER_TURN, len(self._due))):
            handshake = self._due.popleft()
            for_worker = self._in_workers > 0 and self._runtime.executor is not None
            if handshake.needs_pipe and not self._begin(handshake, for_worker):
                continue
            if for_worker and not handshake.stays_on_loop:
                self._in_workers -= 1
                handshake.in_worker = True
                task = self._runtime.tasks.spawn(self._step_in_worker(handshake))
                task.add_done_callback(partial(self._stepped_in_worker, handshake))
                continue
            began_s = self._runtime.clock_s()
            outcome = handshake.step()
            self._note_step((self._runtime.clock_s() - began_s) * 1000)
            self._go_on(handshake, outcome)
        self._come_again()

    def _note_step(self, took_ms: float) -> None:
        """Decide from the steps that the loop has taken whether workers take the next ones."""
        weight = limits.TLS_HANDSHAKE_SLOW_STEP_WEIGHT
        if took_ms <= limits.TLS_HANDSHAKE_STEP_MS_MAX:
            self._slowness = max(0, self._slowness - 1)
        elif self._slowness >= weight:
            self._in_workers = limits.TLS_HANDSHAKE_STEPS_IN_WORKERS  # then it is tried again
        else:
            self._slowness += weight

    def _begin(self, handshake: Handshake, for_worker: bool) -> bool:
        if self._pipe is None:
            self._pipe = TlsPipe()
        try:
            handshake.begin(self._pipe.own() if for_worker else self._pipe)
        except (OSError, ValueError):  # the TLS settings do not fit together
            log.exception("a TLS handshake with %s could not begin", handshake.address)
            handshake.discard()
            return False
        return True

    def _go_on(self, handshake: Handshake, outcome: str) -> None:
        try:
            handshake.stepped(outcome)
        except Exception:  # a bug of the server: this client is lost, and all others go on
            log.exception("the connection of %s could not begin", handshake.address)
            handshake.discard()

    async def _step_in_worker(self, handshake: Handshake) -> str:
        return await self._runtime.in_worker(handshake.step)

    def _stepped_in_worker(self, handshake: Handshake, task: asyncio.Task[str]) -> None:
        if task.cancelled() or task.exception() is not None:  # the node is stopping
            handshake.discard()
        else:
            self._go_on(handshake, task.result())


def _first_idle(handshakes: dict[Handshake, None], *, at_once: bool) -> Handshake | None:
    return next((each for each in handshakes if each.is_idle(at_once=at_once)), None)


def _give_up(handshake: Handshake | None) -> bool:
    if handshake is None:
        return False
    handshake.end("others wait, and its client does not go on")
    return True
