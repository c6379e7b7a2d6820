"""Liveness: the active controller hears of a broker's end long before its session expires.

When the connection that a broker sends its heartbeats over breaks, or a new controller takes over, the broker's
listener is looked at: a machine that refuses the connection is there, but the process is gone, and the broker is fenced
at once.
That is always safe: one that lives after all is unfenced by its next heartbeat. A machine that does not answer at all
says nothing; the session time-out decides.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.client.address import Address
from ottla.cluster.commands.fence import FenceBroker
from ottla.model import limits
from ottla.server.peers.peers import Reach, probe

if TYPE_CHECKING:
    from ottla.server.api.context import Context, Services

log = logging.getLogger(__name__)

# A process that is killed loses its sockets one after the other: who still listens is looked at again.
_LOOKS_MS = (0, 10, 50, 250, 1_000)


class Liveness:
    """`services` is complete before anybody is heard."""

    services: Services

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._looking: dict[int, asyncio.Task[None]] = {}  # broker → the look at its listener

    def heard(self, broker_id: int, epoch: int, context: Context) -> None:
        """A broker, or somebody who says so, sent a heartbeat over this connection."""
        broker = self.services.metadata.state.brokers.get(broker_id)
        if broker is not None and broker.epoch == epoch:
            context.when_closed["liveness", broker_id] = lambda: self.look_at(broker_id)

    def active(self, active: bool) -> None:
        """This node became the active controller, or is it no longer."""
        if active and not self.services.quorum.is_alone:
            for broker in self.services.metadata.state.brokers.values():
                if not broker.fenced:
                    self.look_at(broker.id)

    def look_at(self, broker_id: int) -> None:
        services = self.services
        broker = services.metadata.state.brokers.get(broker_id)
        if (
            broker is None
            or broker.fenced
            or not broker.endpoints
            or broker_id == services.node_id
            or broker_id in self._looking
            or not services.controller.active
        ):
            return
        names = [end for end in broker.endpoints if end.name == services.inter_broker_listener]
        end = (names or broker.endpoints)[0]
        task = self._loop.create_task(self._look(broker_id, broker.epoch, Address(end.host, end.port)))
        self._looking[broker_id] = task
        task.add_done_callback(lambda _: self._looking.pop(broker_id, None))

    async def _look(self, broker_id: int, epoch: int, address: Address) -> None:
        for pause_ms in _LOOKS_MS:
            await asyncio.sleep(pause_ms / 1000)
            reach = await probe(address, limits.PROBE_MS)
            if not self.services.controller.active:
                return
            if reach is Reach.REFUSES:
                log.warning("broker %d is gone: nobody listens at %s", broker_id, address)
                self.services.controller.submit(FenceBroker(broker_id, epoch))
                return

    async def close(self) -> None:
        tasks = list(self._looking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
