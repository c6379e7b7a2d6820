"""MetricSources: the rooms of a node that its metrics are collected from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.stalls import Stalls
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.quotas.client_quotas import ClientQuotas
from ottla.server.security.node_security import NodeSecurity
from ottla.server.settings.configs import Configs
from ottla.server.storage.storage import Storage
from ottla.server.telemetry.client_telemetry import ClientTelemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSources:
    """`is_open` returns whether all listeners of the node accept connections."""

    runtime: Runtime
    configs: Configs
    stalls: Stalls
    security: NodeSecurity
    storage: Storage
    member: QuorumMember
    peer_requests: PeerRequests
    coordinators: CoordinatorsOnDemand
    connections: ConnectionLimits
    quotas: ClientQuotas
    listeners: Sequence[str]
    telemetry: ClientTelemetry | None
    is_open: Callable[[], bool]
    is_broker: bool
    is_controller: bool
