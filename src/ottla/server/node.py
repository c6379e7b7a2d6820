"""Node: a broker, a controller or both in one process, composed from its parts; the only place that knows them all.

Start: data directories, the metadata journal, its place in the quorum, the partitions (recovered if the last stop was
not clean), then the listeners; only then is the node ready. A node that is the only voter has decided everything it
needs by itself when `start` returns; any other one waits for the quorum, and a broker registers with the active
controller. Stop goes the other way round and ends with the mark of a clean stop.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla.cluster.entities import TopicDeleted
from ottla.log.files.disk import StorageError
from ottla.machine.stepped import in_one_go
from ottla.model.settings.log import NUM_RECOVERY_THREADS_PER_DATA_DIR
from ottla.model.settings.node import PROCESS_ROLES
from ottla.model.settings.own import OTTLA_STALL_LIMIT_MS
from ottla.replica.partition import Partition
from ottla.server.api import dispatch
from ottla.server.api.context import ClientConnection, Context, Peer, Services
from ottla.server.api.dispatcher import Dispatcher, Intercept
from ottla.server.api.forwarding import Forwarding
from ottla.server.api.outcomes import handle_as_controller
from ottla.server.coordinators.on_demand import CoordinatorsOnDemand
from ottla.server.fetch.fetches import Fetches
from ottla.server.groups.outside_commits import OutsideCommits
from ottla.server.loop.periodic_jobs import PeriodicJobs
from ottla.server.loop.request_memory import RequestMemory
from ottla.server.loop.slices import Steps
from ottla.server.loop.stalls import Stalls
from ottla.server.loop.workers import in_worker
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.net.listener import Listener
from ottla.server.net.request_in_frame import request_in_frame
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.peers.peers import Peers
from ottla.server.ports.ports import Ports
from ottla.server.quorum.broker_lifecycle import Lifecycle
from ottla.server.quorum.quorum_member import NOT_CLEAN, QuorumMember
from ottla.server.replication.replication import Replication
from ottla.server.schemas.contracts import Contracts
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import controller_names, inter_broker_listener, registered_endpoints
from ottla.server.settings.listeners import ListenerAddress, advertised, listened
from ottla.server.settings.start_refusals import check_start
from ottla.server.storage.directories import DataDirectory, open_directories
from ottla.server.storage.recovery import Watch, recover
from ottla.server.storage.storage import Storage
from ottla.server.storage.vacancy import check_vacant

if TYPE_CHECKING:
    from ottla.server.coordinators.all_coordinators import AllCoordinators
    from ottla.server.dead_letters.dead_letters import DeadLetters

log = logging.getLogger(__name__)

# Imported when they are first needed.
_COORDINATORS = "ottla.server.coordinators.all_coordinators"

TIDY_MS = 1_000
METADATA_MS = 10_000


class Node:
    def __init__(
        self,
        values: Mapping[str, str],
        ports: Ports,
        on_recovery: Watch | None = None,
        intercept: Intercept | None = None,
    ) -> None:
        """`values` are server properties by Kafka's names; what is not given has its default. `intercept` is a test's
        way to put itself before the handlers."""
        self.values = dict(values)
        self.ports = ports
        self._on_recovery = on_recovery
        self._intercept = intercept
        self.stalls = Stalls()
        self.addresses: list[tuple[str, int]] = []
        self._client_listeners = 0
        self._stop_requested: asyncio.Event | None = None
        self.lifecycle: Lifecycle | None = None
        self.storage_lost = False  # why it asked for its own stop
        self._is_recovering = False
        self._loaded = False  # whether partitions were opened, so that closing them is what makes the stop clean
        self._sockets: dict[ListenerAddress, Any] = {}  # bound, but nobody is let in yet
        self._steps_back: list[Callable[[], Awaitable[None] | None]] = []  # how to undo the start, the last step last

    async def start(self) -> None:
        """Returns when clients may connect. A start that fails leaves everything as it was."""
        try:
            loop = asyncio.get_running_loop()
            self.runtime = self.ports.runtime(loop)
            check_vacant(Configs(self.values).log_dirs(), self.ports.disk)
            if "controller.quorum.bootstrap.servers" in self.values:
                await self._find_cluster()
            self._open()
            self._compose(loop)
            if self.is_broker and self.is_controller and self.member.alone:
                self._start_alone(loop)
            else:
                await self._join(loop)
        except BaseException:
            await self.stop()
            raise

    async def _find_cluster(self) -> None:
        """A fresh node that joins others is of their cluster."""
        from ottla.server.quorum.joining import cluster_to_join

        cluster_id = await cluster_to_join(Configs(self.values), self.ports.disk)
        if cluster_id is not None:
            self.values["ottla.cluster.id"] = cluster_id

    # --- the parts

    def _open(self) -> None:
        """From the settings to the metadata journal."""
        ports = self.ports
        self._stop_requested = self._stop_requested or asyncio.Event()
        self.configs = Configs(self.values)
        settings = self.configs.broker
        roles = settings[PROCESS_ROLES]
        self.is_broker, self.is_controller = "broker" in roles, "controller" in roles
        self._endpoints = listened(settings)
        check_start(self.configs, self._endpoints)
        self._steps_back.append(self._end_workers)
        for path in self.configs.log_dirs():
            self._steps_back.append(ports.lock(path))
        self.directories = open_directories(self.configs.log_dirs(), ports.disk)
        self._steps_back.append(self._close_disks)
        if "controller.quorum.bootstrap.servers" in self.values:
            from ottla.server.quorum.joining import begin_cluster

            begin_cluster(self.configs, self.directories, ports.now_ms(), ports.rng)
        self.peers = Peers(f"node-{self.configs.node_id}")
        self.member = QuorumMember(
            self.runtime,
            self.configs,
            self.directories,
            self.peers,
            handle_here=lambda request: handle_as_controller(self.services, request),
        )
        self.metadata = self.member.metadata
        for directory in self.directories:
            directory.disk.keep_reserve()
        self._memory = RequestMemory.of(settings)
        self.storage = Storage(
            self.runtime,
            self.configs,
            self._memory,
            self.directories,
            self.metadata.node_id,
            isr_may_change=self._isr_may_change,
            directory_lost=self._directory_lost,
        )
        self.partitions = self.storage.partitions
        self._steps_back.append(self._close_storage)
        self._steps_back.append(self.peers.close)

    def _compose(self, loop: asyncio.AbstractEventLoop) -> None:
        self.services = self._services(loop)
        self._steps_back.append(self.runtime.tasks.close)
        self._steps_back.append(self.member.liveness.close)
        self._steps_back.append(self.storage.finish_work)
        self._steps_back.append(self.services.peer_requests.close)
        self._steps_back.append(self.services.coordinators.close)
        self._steps_back.append(self.runtime.slices.close)
        if self.is_broker:
            self._replicate(loop)
        self.metadata.changes.add(self._settings_changed)
        self.metadata.reloads.add(self._reloaded)
        self.metadata.failures.add(self.request_stop)
        self.connections = ConnectionLimits(self.configs.broker, self._memory, self.ports.connections_max)
        self._steps_back.append(self.connections.close)

    def _services(self, loop: asyncio.AbstractEventLoop) -> Services:
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

    def _replicate(self, loop: asyncio.AbstractEventLoop) -> None:
        """How other brokers read this one's partitions, and this one theirs."""
        replication = self.services.replication = Replication(loop, self.services, self.ports.executor)
        self._steps_back.append(replication.close)
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

    def _load(self, module: str) -> Future[Any] | None:
        """A worker imports what will soon be needed here, which takes a tenth of a second. None: it is there."""
        if self.ports.executor is None or module in sys.modules:
            return None
        return self.ports.executor.submit(import_module, module)

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

    # --- starting alone: all of it in one turn of the loop

    def _start_alone(self, loop: asyncio.AbstractEventLoop) -> None:
        self.member.start_alone()
        self._steps_back.append(self.member.quorum.stop)
        self._follow_configs()
        self._loaded = True
        in_one_go(self.storage.changes.loading(self.metadata.state))
        self._recover_logs()
        for endpoint in self._endpoints:
            self._listen(endpoint, loop)
        self.lifecycle = self.member.lifecycle(self.partitions, self.member.broker)
        self._begin(loop)
        self.lifecycle.registered(self.metadata.state.brokers[self.metadata.node_id].epoch)
        self._steps_back.append(self.lifecycle.leave)
        self.member.controller.begin_to_serve()

    # --- starting with others

    async def _join(self, loop: asyncio.AbstractEventLoop) -> None:
        """The quorum forms through the controllers' listeners, so those come first."""
        names = controller_names(self.configs.broker)
        theirs = [endpoint for endpoint in self._endpoints if endpoint.name in names]
        ours = [endpoint for endpoint in self._endpoints if endpoint.name not in names]
        for endpoint in theirs:
            self._listen(endpoint, loop)
        for endpoint in ours:
            self._bind(endpoint)
        member = self.member
        member.quorum.start()
        self._steps_back.append(member.quorum.stop)
        member.controller.begin_to_serve()
        member.controller.start_timers()
        self._follow_configs()
        if not self.is_broker:  # a broker waits for whoever registers it, and not for ever
            await self.metadata.until(lambda: member.quorum.leader_id >= 0)
        if self.is_controller:
            self.runtime.tasks.spawn(member.register_controller())
        if self.is_broker:
            await self._join_as_broker(loop, ours)
        else:
            self._loaded = True
            self._begin(loop)

    async def _join_as_broker(self, loop: asyncio.AbstractEventLoop, endpoints: list[ListenerAddress]) -> None:
        ports = {endpoint.name: sock.getsockname()[1] for endpoint, sock in self._sockets.items()}
        broker = self.member.broker
        broker = broker._replace(endpoints=registered_endpoints(broker.endpoints, ports))
        self.lifecycle = self.member.lifecycle(self.partitions, broker)
        self._steps_back.append(self.lifecycle.stop)
        await self.lifecycle.register()
        # Now everything is known that was decided before, so what has no place in the metadata has none at all.
        self._follow_configs()
        self._loaded = True
        in_one_go(self.storage.changes.loading(self.metadata.state))
        await self._recover(loop)
        for endpoint in endpoints:
            self._listen(endpoint, loop)
        self._begin(loop)
        in_one_go(self.metadata.changes.release())
        await self.lifecycle.unfence()
        self._steps_back.append(self.lifecycle.leave)

    async def _recover(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a worker, which must be alone with the partitions: they hear what changes meanwhile afterwards."""
        loaded = self.metadata.state
        self.metadata.changes.hold()
        self._is_recovering = True
        await in_worker(loop, self.ports.executor, self._recover_logs)
        self._is_recovering = False
        if self.metadata.state is not loaded:  # a snapshot took its place
            self.metadata.changes.drop_held()
            self._follow_configs()
            in_one_go(self.storage.changes.loading(self.metadata.state))

    def _recover_logs(self) -> None:
        threads = self.configs.broker[NUM_RECOVERY_THREADS_PER_DATA_DIR]
        recover(self.partitions, self.ports.threads, threads, now_ms=self.ports.now_ms, watch=self._on_recovery)

    # --- running

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Everything that goes on by itself."""
        limit_ms = self.configs.broker[OTTLA_STALL_LIMIT_MS]
        if self.ports.watch is not None and limit_ms:
            self._steps_back.append(self.ports.watch(loop, self.stalls, limit_ms, request_in_frame))
        self.storage.start()
        self._steps_back.append(self.storage.upkeep.stop)
        self._begin_jobs(loop)
        self.member.controller.start_timers()
        if self.services.replication is not None:
            assert self.lifecycle is not None, "a broker has one"
            for follow in (
                self.storage.changes.following,
                self.services.replication.following,
                self.storage.upkeep.follow,
                self.services.coordinators.tell,
                self.services.contracts.follow,
                self.lifecycle.follow,
            ):
                self.metadata.changes.add(follow)
            self.services.replication.start(self.metadata.state)
            self.services.coordinators.start(self.metadata.state)

    def _begin_jobs(self, loop: asyncio.AbstractEventLoop) -> None:
        """What is done by the clock, beside the upkeep of the storage."""
        jobs = PeriodicJobs(loop)
        self._steps_back.append(jobs.stop)
        if self.services.fetches is not None:
            jobs.every("spark readers", TIDY_MS, self.services.fetches.spark_readers.commit)
        jobs.every("connections", TIDY_MS, lambda: self.connections.tidy(loop, self.runtime.slices))
        jobs.every("metadata", METADATA_MS, lambda: self.member.snapshots.upkeep(self.runtime.now_ms()))

    def _bind(self, endpoint: ListenerAddress) -> Any:
        sock = self._sockets[endpoint] = self.ports.net.listen(endpoint.host, endpoint.port)
        self._steps_back.append(sock.close)
        return sock

    def _listen(self, endpoint: ListenerAddress, loop: asyncio.AbstractEventLoop) -> None:
        sock = self._sockets.get(endpoint) or self._bind(endpoint)
        controller = endpoint.name in controller_names(self.configs.broker)
        if controller:
            dispatcher = Dispatcher(dispatch.controller_route, None, self._intercept)
        else:
            dispatcher = Dispatcher(dispatch.route, Forwarding(self.member.link, self.peers), self._intercept)
        listener = Listener(
            endpoint,
            sock,
            self.runtime,
            self.storage.cold,
            self.connections,
            dispatcher,
            self._new_context,
            controller=controller,
        )
        self._steps_back.append(listener.close)
        # Those for clients come first: they are what is told to people.
        self.addresses.insert(len(self.addresses) if controller else self._client_listeners, listener.address)
        self._client_listeners += not controller

    def _new_context(self, peer: Peer, client: ClientConnection) -> Context:
        return Context(self.services, peer, client)

    def _follow_configs(self) -> None:
        """Settings come from the state that there is now."""
        self.configs.follow(self.metadata.state)
        self.connections.configure(self.configs.broker)

    def _settings_changed(self, _: Any) -> None:
        self.configs.forget()
        self.connections.configure(self.configs.broker)

    def _reloaded(self) -> Steps:
        """A snapshot took the place of the state: everybody looks at all of it."""
        if self._is_recovering:
            return  # `_recover` does it afterwards
        state = self.metadata.state
        self._follow_configs()
        if self.services.replication is not None and self._loaded:
            changes = self.storage.changes
            gone = changes.gone_from(state)
            yield from changes.loading(state)
            self.storage.upkeep.follow(map(TopicDeleted, gone))
            yield from self.services.replication.reloading(state)
            self.services.coordinators.reload(state)

    # --- stopping

    def _isr_may_change(self, partition: Partition) -> None:
        assert self.services.replication is not None, "it is a broker"
        self.services.replication.consider(partition)

    def _directory_lost(self, _: DataDirectory) -> None:
        if self.lifecycle is None:
            return  # a node that is alone recovers
        self.lifecycle.hurry()
        if all(directory.offline for directory in self.directories):
            log.error("no data directory of this node works any more: it leaves the cluster until one does")
            self.storage_lost = True
            self.request_stop()

    def request_stop(self) -> None:
        """Makes `stopped` shut the node down; from the node's own loop."""
        if self._stop_requested is not None:
            self._stop_requested.set()

    async def stopped(self) -> None:
        """Waits for `request_stop`, then stops."""
        assert self._stop_requested is not None, "the node was not started"
        await self._stop_requested.wait()
        await self.stop()

    async def stop(self) -> None:
        """A clean stop: nothing is accepted any more, everything is on disk."""
        while self._steps_back:
            try:
                waiting = self._steps_back.pop()()
                if waiting is not None:
                    await waiting
            except StorageError as error:
                log.error("the stop goes on, but the next start will have to recover: %s", error)
            except Exception:
                log.exception("the stop goes on, but the next start will have to recover")

    def _close_storage(self) -> None:
        self.member.close()
        broker = self.metadata.state.brokers.get(self.metadata.node_id)
        if self._loaded:
            for directory in self.directories:
                directory.broker_epoch = broker.epoch if broker is not None else NOT_CLEAN
            self.storage.close()  # ends with the mark of a clean stop, which vouches for the metadata too
            return
        for directory in self.directories:  # nothing was touched: what was closed cleanly still is
            if directory.clean:
                directory.mark_clean()

    def _close_disks(self) -> None:
        for directory in self.directories:
            directory.disk.close()

    def _end_workers(self) -> None:
        if self.ports.executor is not None:
            self.ports.executor.shutdown(wait=True)
