"""Rooms: everything a node consists of, built bottom to top: each room is given the ones below it.

Nothing is sent, and no client let in, before `Node` starts the rooms stage by stage.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla.replica.partition import Partition
from ottla.server.api.context import ClientConnection, Context, Peer, Services
from ottla.server.api.outcomes import handle_as_controller
from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
from ottla.server.fetch.fetches import Fetches
from ottla.server.groups.outside_commits import OutsideCommits
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.stages import Stage
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.peers.peers import Peers
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.replication.replication import Replication
from ottla.server.schemas.contracts import Contracts
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import inter_broker_listener
from ottla.server.settings.listeners import advertised
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.storage import Storage

if TYPE_CHECKING:
    from ottla.server.coordinators.all_coordinators import AllCoordinators
    from ottla.server.dead_letters.dead_letters import DeadLetters

# Imported when they are first needed.
_COORDINATORS = "ottla.server.coordinators.all_coordinators"


class Rooms:
    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        directories: Sequence[DataDirectory],
        *,
        is_broker: bool,
        connections_max: int,
        directory_lost: Callable[[DataDirectory], None],
    ) -> None:
        """Reads the metadata journal; `directory_lost` is told of a data directory that went offline."""
        self.runtime = runtime
        self.configs = configs
        memory = RequestMemory.of(configs.broker)
        self.peers = Peers(f"node-{configs.node_id}")
        self.member = QuorumMember(
            runtime,
            configs,
            directories,
            self.peers,
            handle_here=lambda request: handle_as_controller(self.services, request),
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
            directory_lost=directory_lost,
        )
        self.services = self._services()
        if is_broker:
            self._replicate()
        self.connections = ConnectionLimits(configs.broker, memory, connections_max)

    def stages(self) -> Iterator[Stage]:
        """How the rooms are closed, the last one first. The storage and the journal are not among them."""
        replication = self.services.replication
        yield Stage("connections to other nodes", undo=self.peers.close)
        yield Stage("tasks in the background", undo=self.runtime.tasks.close)
        yield Stage("the liveness of brokers", undo=self.member.liveness.close)
        yield Stage("work for the disks", undo=self.storage.finish_work)
        yield Stage("requests to other nodes", undo=self.services.peer_requests.close)
        yield Stage("coordinators", undo=self.services.coordinators.close)
        yield Stage("work in slices", undo=self.runtime.slices.close)
        yield Stage("replication", undo=None if replication is None else replication.close)
        yield Stage("connections of clients", undo=self.connections.close)

    def new_context(self, peer: Peer, client: ClientConnection) -> Context:
        return Context(self.services, peer, client)

    def _services(self) -> Services:
        settings = self.configs.broker
        runtime, storage = self.runtime, self.storage
        addresses = {endpoint.name: (endpoint.host, endpoint.port) for endpoint in advertised(settings)}
        peer_requests = PeerRequests(self.peers, lambda: self.metadata.state, inter_broker_listener(settings))
        contracts = Contracts(
            runtime, storage, self.metadata, peer_requests, dead_letters=lambda: self._dead_letters, load=self._load
        )
        return Services(
            node_id=self.metadata.node_id,
            cluster_id=self.metadata.cluster_id,
            configs=self.configs,
            metadata=self.metadata,
            quorum=self.member.quorum,
            controller=self.member.controller,
            member=self.member,
            liveness=self.member.liveness,
            peers=self.peers,
            peer_requests=peer_requests,
            inter_broker_listener=inter_broker_listener(settings),
            runtime=runtime,
            storage=storage,
            partitions=storage.partitions,
            waiters=storage.waiters,
            executor=runtime.executor,
            cold=storage.cold,
            writer=storage.writer,
            syncer=storage.syncer,
            looking=storage.looking,
            contracts=contracts,
            clocks=runtime.clocks,
            now_ms=runtime.now_ms,
            steady_ms=runtime.steady_ms,
            clock_s=runtime.clock_s,
            rng=runtime.rng,
            advertised=addresses.get,
            coordinators=CoordinatorsOnDemand(self._coordinators, lambda: self._load(_COORDINATORS)),
            slices=runtime.slices,
        )

    def _replicate(self) -> None:
        """How other brokers read this one's partitions, and this one theirs."""
        replication = self.services.replication = Replication(
            self.runtime, self.configs, self.storage, self.peers, self.member
        )
        services = self.services
        commits = OutsideCommits(lambda: services.groups, services.peer_requests, lambda: self.metadata.state)
        services.fetches = Fetches(
            self.runtime,
            self.configs,
            self.storage,
            state=lambda: self.metadata.state,
            quota=replication.quotas.leader,
            commit=commits.commit,
        )

    def _isr_may_change(self, partition: Partition) -> None:
        assert self.services.replication is not None, "it is a broker"
        self.services.replication.consider(partition)

    # --- what is made when it is first needed

    def _load(self, module: str) -> Future[Any] | None:
        """A worker imports what will soon be needed here, which takes a tenth of a second. None: it is there."""
        if self.runtime.executor is None or module in sys.modules:
            return None
        return self.runtime.executor.submit(import_module, module)

    def _coordinators(self) -> AllCoordinators:
        from ottla.server.coordination.runtime import CoordinatorRuntime
        from ottla.server.coordinators.all_coordinators import AllCoordinators

        services = self.services
        return AllCoordinators(
            CoordinatorRuntime(self.runtime, self.storage, self.metadata, self.member.create_topic),
            self.configs,
            services.peer_requests,
            self.member.producer_ids,
            self.member.create_topics,
            self._dead_letters,
        )

    @cached_property
    def _dead_letters(self) -> DeadLetters:
        from ottla.server.dead_letters.dead_letters import DeadLetters

        return DeadLetters(
            self.runtime,
            self.configs,
            self.storage,
            self.metadata,
            self.services.peer_requests,
            create_topics=self.member.create_topics,
        )
