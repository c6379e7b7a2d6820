"""Sending: the requests of consensus to other nodes, and their answers.

If no connection can be opened for a request, no process listens there: consensus is told that the node is unreachable.
So the death of a leader's process starts an election within milliseconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ottla.client.address import Address
from ottla.client.errors import ClientError, NotConnected
from ottla.raft.effects import Send
from ottla.raft.events import Answered, Event, Unanswered, Unreachable
from ottla.server.peers.peers import Peers
from ottla.wire.messages.quorum.fetch_snapshot import FetchSnapshotRequest
from ottla.wire.messages.records.fetch import FetchRequest

log = logging.getLogger(__name__)

# A fetch may wait for records on the other node, which answers one connection in order: fetches have their own.
_READING = (FetchRequest, FetchSnapshotRequest)


class Sending:
    def __init__(self, loop: asyncio.AbstractEventLoop, peers: Peers, step: Callable[[Event], None]) -> None:
        self._loop = loop
        self._peers = peers
        self._step = step
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def send(self, effect: Send) -> None:
        if self._closed:
            return
        task = self._loop.create_task(self._ask(effect))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _ask(self, effect: Send) -> None:
        address = Address(effect.address.host, effect.address.port)
        purpose = "quorum-fetch" if isinstance(effect.request, _READING) else "quorum"
        event: Event = Unanswered(effect.number)
        gone = False
        try:
            response = await self._peers.ask(address, effect.request, timeout_ms=effect.timeout_ms, purpose=purpose)
            event = Answered(effect.number, response)
        except NotConnected as error:
            gone = True
            log.debug("node %d: %s", effect.node_id, error)
        except ClientError as error:
            log.debug("node %d: %s", effect.node_id, error)
        if self._closed:
            return
        self._step(event)
        if gone:
            self._step(Unreachable(effect.node_id))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("what another node says cannot be followed", exc_info=task.exception())

    async def idle(self, timeout_ms: int) -> None:
        """Wait until no request is under way, or until the timeout."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_ms / 1000)

    def close(self) -> None:
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
