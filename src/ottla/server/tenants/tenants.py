"""Tenants: the tenants of the cluster as this node limits and measures them: the bytes that they store, their
connections, and their traffic.

Rules:
- A leader refuses batches of a tenant that is over its storage limit. It looks at the partitions that it leads every
  second, and asks the other brokers every ten seconds (`stored_bytes`). So a tenant may exceed the limit by what is
  written in that time.
- Traffic is measured for each broker by itself, once a second (`traffic`).
- Connections are counted for each broker by itself, once the client has proven who it is.
"""

from __future__ import annotations

import logging
from collections import Counter

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.setting import UNLIMITED
from ottla.model.tenancy.tenants import TenantLimits, check_letters, tenant_in, tenants_in
from ottla.security.principal import Principal
from ottla.server.loop.runtime import Runtime
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.storage.storage import Storage
from ottla.server.tenants.stored_bytes import StoredBytes
from ottla.server.tenants.traffic import Traffic

log = logging.getLogger(__name__)


class Tenants:
    def __init__(
        self,
        runtime: Runtime,
        settings: Config,
        storage: Storage,
        requests: PeerRequests,
        metadata: MetadataHost,
    ) -> None:
        self.full: dict[str, str] | None = None  # tenants that may not write, and why; None if all may: almost always
        self.traffic = Traffic(settings)
        self._runtime = runtime
        self._stored = StoredBytes(runtime, storage, requests, metadata, self.traffic)
        self._limits: dict[str, TenantLimits] = {}
        self._connections: Counter[str] = Counter()

    def follow(self, node: NodeConfig) -> None:
        """Take over the limits, because the settings have changed."""
        self._limits = tenants_in(node.dynamic_default, node.broker)

    # --- connections

    def admit(self, principal: Principal) -> str | None:
        """Count a connection of this principal, or return why there may be no more of its tenant.

        Connections count without a limit, too, because one may be set while they last.
        """
        tenant = tenant_in(principal.name)
        allowed = self._limits[tenant].connections if tenant in self._limits else UNLIMITED
        if allowed != UNLIMITED and self._connections[tenant] >= allowed:
            return f"Tenant {tenant} has {allowed} connections to this broker, and may have no more."
        self._connections[tenant] += 1
        return None

    def leave(self, principal: Principal) -> None:
        """Stop counting a connection that was admitted."""
        tenant = tenant_in(principal.name)
        if self._connections[tenant] > 1:
            self._connections[tenant] -= 1
        else:
            del self._connections[tenant]

    # --- storage

    def check_write(self, topic: str) -> None:
        """Raise POLICY_VIOLATION if the tenant of this topic is over its storage limit."""
        why = None if self.full is None else self.full.get(tenant_in(topic))
        if why is not None:
            raise ApiError(ErrorCode.POLICY_VIOLATION, why)

    def check_letters(self, target: str, *sources: str) -> None:
        """Raise POLICY_VIOLATION if dead letters of these sources may not go to the topic `target`, or if its tenant is
        over its storage limit.
        """
        if self._limits:
            check_letters(target, sources, self._limits)
        self.check_write(target)

    async def measure(self) -> None:
        """Measure the traffic of all tenants, and the storage of those that have a limit."""
        tenants = set(self._limits)
        allowed = {name: each.storage_bytes for name, each in self._limits.items() if each.storage_bytes != UNLIMITED}
        used = await self._stored.count(tenants, allowed)
        self.traffic.end_look(tenants, self._runtime.steady_ms())
        over = {name: _told(name, used[name], limit) for name, limit in allowed.items() if used[name] > limit}
        for name in over.keys() - (self.full or {}).keys():
            log.warning("%s", over[name])
        self.full = over or None

    async def ask_others(self) -> None:
        """Ask the other brokers what tenants with a storage limit store in the partitions that they lead."""
        await self._stored.ask()


def _told(tenant: str, used: int, limit: int) -> str:
    return (
        f"Tenant {tenant} has stored {used} bytes, allowed are {limit}: it can write again when records or topics are "
        "deleted, or when retention has removed some."
    )
