"""MetricSources: the rooms of a node that its metrics are collected from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
from ottla.server.dead_letters.dead_letters import DeadLetters
from ottla.server.fetch.fetches import Fetches
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.stalls import Stalls
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.otel.otel_export import OtelExport
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.quotas.client_quotas import ClientQuotas
from ottla.server.schemas.contracts import Contracts
from ottla.server.security.node_security import NodeSecurity
from ottla.server.settings.configs import Configs
from ottla.server.storage.storage import Storage
from ottla.server.telemetry.client_telemetry import ClientTelemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSources:
    """`dead_letters` returns what writes them, if it was needed already; `is_open` whether all listeners of the node
    accept connections.
    """

    runtime: Runtime
    configs: Configs
    stalls: Stalls
    security: NodeSecurity
    storage: Storage
    member: QuorumMember
    peer_requests: PeerRequests
    coordinators: CoordinatorsOnDemand
    connections: ConnectionLimits
    contracts: Contracts
    dead_letters: Callable[[], DeadLetters | None]
    fetches: Fetches | None
    quotas: ClientQuotas
    listeners: Sequence[str]
    telemetry: ClientTelemetry | None
    otel: OtelExport | None
    is_open: Callable[[], bool]
    is_broker: bool
    is_controller: bool
