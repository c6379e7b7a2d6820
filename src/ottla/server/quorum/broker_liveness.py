"""Liveness: detects on the active controller that a broker's process is gone, long before its session expires.

When the connection that a broker sends its heartbeats over breaks, or a new controller takes over, the controller tries
to connect to the broker's listener. If the connection is refused, the machine is up but the process is gone, and the
broker is fenced at once. That is always safe: a broker that is up after all is unfenced by its next heartbeat. If the
machine does not answer at all, the broker's state is unknown, and the session timeout decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable

from ottla.client.address import Address
from ottla.cluster.commands.fence import FenceBroker
from ottla.model import limits
from ottla.model.ids import BrokerEpoch
from ottla.server.peers.peers import Reach, probe
from ottla.server.quorum.active_controller import ActiveController
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.quorum import Quorum

log = logging.getLogger(__name__)

# A killed process loses its sockets one after the other: a listener that still accepts connections is probed again.
_LOOKS_MS = (0, 10, 50, 250, 1_000)


class Liveness:
    """Probes brokers only while this node is the active controller."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        quorum: Quorum,
        metadata: MetadataHost,
        controller: ActiveController,
        inter_broker_listener: str,
    ) -> None:
        self._loop = loop
        self._quorum = quorum
        self._metadata = metadata
        self._controller = controller
        self._listener = inter_broker_listener
        self._looking: dict[int, asyncio.Task[None]] = {}  # broker → the task that probes its listener
        controller.activity.add(self._activated)

    def heard(self, broker_id: int, epoch: BrokerEpoch, when_closed: dict[Hashable, Callable[[], None]]) -> None:
        """Note a heartbeat of this broker on a connection: when the connection closes, the broker is probed."""
        broker = self._metadata.state.brokers.get(broker_id)
        if broker is not None and broker.epoch == epoch:
            when_closed["liveness", broker_id] = lambda: self.look_at(broker_id)

    def _activated(self, active: bool) -> None:
        if active and not self._quorum.is_alone:
            for broker in self._metadata.state.brokers.values():
                if not broker.fenced:
                    self.look_at(broker.id)

    def look_at(self, broker_id: int) -> None:
        """Probe the broker's listener, and fence the broker if its machine refuses the connection."""
        broker = self._metadata.state.brokers.get(broker_id)
        if (
            broker is None
            or broker.fenced
            or not broker.endpoints
            or broker_id == self._metadata.node_id
            or broker_id in self._looking
            or not self._controller.active
        ):
            return
        names = [end for end in broker.endpoints if end.name == self._listener]
        end = (names or broker.endpoints)[0]
        task = self._loop.create_task(self._look(broker_id, broker.epoch, Address(end.host, end.port)))
        self._looking[broker_id] = task
        task.add_done_callback(lambda _: self._looking.pop(broker_id, None))

    async def _look(self, broker_id: int, epoch: BrokerEpoch, address: Address) -> None:
        for pause_ms in _LOOKS_MS:
            await asyncio.sleep(pause_ms / 1000)
            reach = await probe(address, limits.PROBE_MS)
            if not self._controller.active:
                return
            if reach is Reach.REFUSES:
                log.warning("broker %d is gone: nobody listens at %s", broker_id, address)
                self._controller.submit(FenceBroker(broker_id, epoch))
                return

    async def close(self) -> None:
        tasks = list(self._looking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
