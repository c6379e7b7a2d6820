"""Rooms: all parts of a node, built bottom to top: each room is given the ones below it.

Nothing is sent, and no connection is accepted, before `Node` starts the rooms stage by stage.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from ottla.model.settings.node import PROCESS_ROLES
from ottla.replica.partition import Partition
from ottla.server.api.context import ClientConnection, ClientViews, Context, Facades, Peer
from ottla.server.api.outcomes import handle_as_controller
from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
from ottla.server.fetch.fetches import Fetches
from ottla.server.groups.outside_commits import OutsideCommits
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.stages import Stage
from ottla.server.loop.stalls import Stalls
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.peers.peers import Peers, bootstrap_addresses
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.quotas.client_quotas import ClientQuotas
from ottla.server.quotas.connection_rates import ConnectionRates
from ottla.server.replication.replication import Replication
from ottla.server.schemas.contracts import Contracts
from ottla.server.security.audit.sinks import audit_writer
from ottla.server.security.audit.writer import AuditWriter
from ottla.server.security.node_security import NodeSecurity
from ottla.server.security.peer_security import towards_brokers, towards_controllers
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import inter_broker_listener
from ottla.server.settings.listeners import advertised, listened
from ottla.server.settings.metrics_listener import metrics_address
from ottla.server.settings.otel_place import otel_place
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.storage import Storage
from ottla.server.tenants.tenants import Tenants

if TYPE_CHECKING:
    from ottla.server.api.watching.seen_requests import RequestLog
    from ottla.server.coordinators.all_coordinators import AllCoordinators
    from ottla.server.dead_letters.dead_letters import DeadLetters
    from ottla.server.metrics.node_metrics import NodeMetrics
    from ottla.server.otel.otel_export import OtelExport
    from ottla.server.telemetry.client_telemetry import ClientTelemetry

# A module that is imported when it is first needed.
_COORDINATORS = "ottla.server.coordinators.all_coordinators"


class Rooms:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        security: NodeSecurity,
        directories: Sequence[DataDirectory],
        *,
        is_broker: bool,
        connections_max: int,
    ) -> None:
        """Read the metadata journal."""
        self.runtime = runtime
        self.configs = configs
        memory = RequestMemory.of(configs.broker)
        self.quotas = ClientQuotas(runtime, configs.broker)
        self.security = security
        self.otel = self._otel()
        self.peers = Peers(f"node-{configs.node_id}", security=lambda: towards_brokers(configs.node))
        self.controllers = Peers(f"node-{configs.node_id}", security=lambda: towards_controllers(configs.node))
        self.member = QuorumMember(
            runtime,
            configs,
            directories,
            self.controllers,
            handle_here=lambda request: handle_as_controller(self._facades, request),
        )
        self.metadata = self.member.metadata
        for directory in directories:
            directory.disk.keep_reserve()
        self.storage = Storage(
            runtime,
            configs,
            memory,
            directories,
            self.metadata.node_id,
            isr_may_change=self._isr_may_change,
        )
        self.peer_requests = PeerRequests(
            self.peers, lambda: self.metadata.state, inter_broker_listener(configs.broker)
        )
        self.tenants = Tenants(runtime, configs.broker, self.storage, self.peer_requests, self.metadata)
        self.coordinators = CoordinatorsOnDemand(self._coordinators, lambda: self._load(_COORDINATORS))
        self.contracts = Contracts(
            runtime,
            self.storage,
            self.metadata,
            self.peer_requests,
            dead_letters=lambda: self._dead_letters,
            load=self._load,
        )
        self.replication = Replication(runtime, configs, self.storage, self.peers, self.member) if is_broker else None
        self.fetches = None if self.replication is None else self._fetches(self.replication)
        self.connections = ConnectionLimits(configs.broker, memory, connections_max)
        listeners = [address.name for address in listened(configs.broker)]
        self.connection_rates = ConnectionRates(
            configs.node, listeners, inter_broker_listener(configs.broker), runtime.steady_ms
        )
        self.telemetry = self._telemetry() if is_broker else None
        self._facades: Facades = self._for_handlers()

    def stages(self) -> Iterator[Stage]:
        """Yield the stages that close the rooms, the last one first. The storage and the journal are not among them."""
        replication = self.replication
        yield Stage("connections to other brokers", undo=self.peers.close)
        yield Stage("connections to controllers", undo=self.controllers.close)
        if self.telemetry is not None:
            yield Stage("telemetry of clients", undo=self.telemetry.close)
        yield Stage("tasks in the background", undo=self.runtime.tasks.close)
        yield Stage("the liveness of brokers", undo=self.member.liveness.close)
        yield Stage("work for the disks", undo=self.storage.finish_work)
        yield Stage("requests to other nodes", undo=self.peer_requests.close)
        yield Stage("coordinators", undo=self.coordinators.close)
        yield Stage("work in slices", undo=self.runtime.slices.close)
        if self.otel is not None and self.otel.tracer is not None:
            yield Stage("the last spans", undo=self.otel.tracer.close)
        yield Stage("replication", undo=None if replication is None else replication.close)
        yield Stage("watches of requests", undo=self._close_request_log)
        yield Stage("connections of clients", undo=self.connections.close)

    def new_context(self, peer: Peer, client: ClientConnection) -> Context:
        return Context(self._facades, peer, client)

    def _for_handlers(self) -> Facades:
        addresses = {endpoint.name: (endpoint.host, endpoint.port) for endpoint in advertised(self.configs.broker)}
        return Facades(
            runtime=self.runtime,
            configs=self.configs,
            storage=self.storage,
            member=self.member,
            coordinators=self.coordinators,
            contracts=self.contracts,
            quotas=self.quotas,
            tenants=self.tenants,
            security=self.security,
            advertised=addresses.get,
            replication=self.replication,
            fetches=self.fetches,
            clients=ClientViews(self.telemetry, lambda: self._request_log),
        )

    def _fetches(self, replication: Replication) -> Fetches:
        """Return the room in which clients and other brokers read the partitions of this node."""
        commits = OutsideCommits(lambda: self.coordinators.all.groups, self.peer_requests, lambda: self.metadata.state)
        return Fetches(
            self.runtime,
            self.configs,
            self.storage,
            state=lambda: self.metadata.state,
            quota=replication.quotas.leader,
            commit=commits.commit,
        )

    def _isr_may_change(self, partition: Partition) -> None:
        assert self.replication is not None, "it is a broker"
        self.replication.consider(partition)

    # --- parts that are made when they are first needed

    def _load(self, module: str) -> Future[ModuleType] | None:
        """Have a worker import a module that will be needed soon, which takes a tenth of a second; None if it is
        imported already.
        """
        if self.runtime.executor is None or module in sys.modules:
            return None
        return self.runtime.executor.submit(import_module, module)

    @cached_property
    def audit_writer(self) -> AuditWriter | None:
        """What writes the audit log, if it is on."""
        audit = self.security.audit
        if audit is None:
            return None
        listener, node_id = inter_broker_listener(self.configs.broker), self.metadata.node_id

        def bootstrap() -> str:
            return ",".join(map(str, bootstrap_addresses(self.metadata.state, listener, node_id)))

        return audit_writer(audit, self.configs, self.runtime, bootstrap, self.member.create_topic)

    def metrics(self, stalls: Stalls, is_open: Callable[[], bool]) -> NodeMetrics | None:
        """Return the metrics of the node, if they are on; `is_open` tells whether all listeners accept connections."""
        place = metrics_address(self.configs.broker)
        if place is None and self.otel is None:
            return None
        from ottla.server.metrics.node_metrics import NodeMetrics  # a node that measures nothing never needs it
        from ottla.server.metrics.sources import MetricSources

        sources = MetricSources(
            runtime=self.runtime,
            configs=self.configs,
            stalls=stalls,
            security=self.security,
            storage=self.storage,
            member=self.member,
            peer_requests=self.peer_requests,
            coordinators=self.coordinators,
            connections=self.connections,
            contracts=self.contracts,
            dead_letters=lambda: self.__dict__.get("_dead_letters"),  # made when it is first needed
            fetches=self.fetches,
            quotas=self.quotas,
            listeners=[address.name for address in listened(self.configs.broker)],
            telemetry=self.telemetry,
            otel=self.otel,
            is_open=is_open,
            is_broker=self.replication is not None,
            is_controller="controller" in self.configs.broker[PROCESS_ROLES],
        )
        return NodeMetrics(place, sources)

    def _otel(self) -> OtelExport | None:
        """Return the way to the OpenTelemetry collector, if there is one."""
        place = otel_place(self.configs.broker)
        if place is None:
            return None
        from ottla.server.otel.otel_export import OtelExport  # few nodes have one

        settings, node_id = self.configs.broker, self.configs.node_id
        return OtelExport(self.runtime, settings, place, node_id, lambda: self.metadata.cluster_id)

    def _telemetry(self) -> ClientTelemetry | None:
        """Return what takes the metrics of clients, if this node tells metrics."""
        if metrics_address(self.configs.broker) is None and self.otel is None:
            return None
        from ottla.server.telemetry.client_telemetry import ClientTelemetry

        return ClientTelemetry(self.runtime, self.configs, self.metadata)

    def _coordinators(self) -> AllCoordinators:
        from ottla.server.coordination.runtime import CoordinatorRuntime
        from ottla.server.coordinators.all_coordinators import AllCoordinators

        return AllCoordinators(
            CoordinatorRuntime(self.runtime, self.storage, self.metadata, self.member.create_topic),
            self.configs,
            self.peer_requests,
            self.member.producer_ids,
            self.member.create_topics,
            self._dead_letters,
        )

    @cached_property
    def _request_log(self) -> RequestLog:
        from ottla.server.api.watching.watched_requests import WatchedRequests  # only when somebody asks

        return WatchedRequests(self.runtime, self.connections)

    def _close_request_log(self) -> None:
        watched = self.__dict__.get("_request_log")  # made when it is first needed
        if watched is not None:
            watched.close()

    @cached_property
    def _dead_letters(self) -> DeadLetters:
        from ottla.server.dead_letters.dead_letters import DeadLetters

        return DeadLetters(
            self.runtime,
            self.configs,
            self.storage,
            self.metadata,
            self.peer_requests,
            create_topic=self.member.create_topic,
            admit=self.tenants.check_letters,
        )
