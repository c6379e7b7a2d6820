"""Node: a broker, a controller or both in one process; starts and stops its rooms (`rooms.py`) in order.

A start opens the data directories, the metadata journal, the quorum, the partitions (recovered if the last stop was not
clean), then the listeners; only then is the node ready. A node that is the only voter has decided everything it needs
by itself when `start` returns; any other node waits for the quorum, and a broker registers with the active controller.
A stop does the reverse and ends with writing the clean-shutdown marker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from ottla.cluster.entities import TopicDeleted
from ottla.machine.stepped import in_one_go
from ottla.model.settings.log import NUM_RECOVERY_THREADS_PER_DATA_DIR
from ottla.model.settings.node import PROCESS_ROLES
from ottla.model.settings.own import OTTLA_STALL_LIMIT_MS
from ottla.server.api import dispatch
from ottla.server.api.dispatcher import Dispatcher, Intercept
from ottla.server.api.forwarding import Forwarding
from ottla.server.loop.periodic_jobs import PeriodicJobs
from ottla.server.loop.slices import Steps
from ottla.server.loop.stages import Stage, Stages
from ottla.server.loop.stalls import Stalls
from ottla.server.net.listener import Listener
from ottla.server.net.request_in_frame import request_in_frame
from ottla.server.ports.ports import Ports
from ottla.server.ports.sockets import ListeningSocket
from ottla.server.quorum.quorum_member import NOT_CLEAN
from ottla.server.rooms import Rooms
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import controller_names, registered_endpoints
from ottla.server.settings.listeners import ListenerAddress, listened
from ottla.server.settings.start_refusals import check_start
from ottla.server.storage.directories import DataDirectory, open_directories
from ottla.server.storage.recovery import Watch, recover
from ottla.server.storage.vacancy import check_vacant

log = logging.getLogger(__name__)

_BOOTSTRAP = "controller.quorum.bootstrap.servers"
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
        """`values` are server properties with Kafka's names; missing ones have their defaults. `intercept` lets a test
        answer in place of the handlers.
        """
        self.values = dict(values)
        self.ports = ports
        self._on_recovery = on_recovery
        self._intercept = intercept
        self.stalls = Stalls()
        self.addresses: list[tuple[str, int]] = []
        self._client_listeners = 0
        self._stop_requested: asyncio.Event | None = None
        self.storage_lost = False  # whether the node stops because all data directories failed
        self._is_recovering = False
        self._loaded = False  # whether partitions were loaded, so that a clean stop has to close them
        self._locks: dict[str, Callable[[], None]] = {}
        self._sockets: dict[ListenerAddress, ListeningSocket] = {}  # bound, perhaps not accepting connections yet
        self._listeners: dict[ListenerAddress, Listener] = {}
        self._stop_watching: Callable[[], None] | None = None
        self._stages = Stages()

    async def start(self) -> None:
        """Return when clients may connect. A start that fails is undone."""
        try:
            await self._stages.run(self._start())
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop cleanly: no connection is accepted any more, and everything is on disk."""
        await self._stages.undo()

    # --- the stages of the start in order; a stop undoes them in reverse order

    def _start(self) -> Iterator[Stage]:
        yield Stage("look for files of somebody else", self._check_vacant)
        if _BOOTSTRAP in self.values:
            yield Stage("find the cluster to join", self._find_cluster)
        yield Stage("read the settings", self._read_settings, self._end_workers)
        for path in self.configs.log_dirs():
            yield Stage(f"lock {path}", partial(self._lock, path), partial(self._unlock, path))
        yield Stage("open the data directories", self._open_directories, self._close_disks)
        if _BOOTSTRAP in self.values:
            yield Stage("begin a cluster, if it is the first node", self._begin_cluster)
        yield Stage("read the journal, compose the rooms", self._compose, self._close_storage)
        yield from self.rooms.stages()
        is_alone = self.is_broker and self.is_controller and self.member.alone
        yield from self._start_alone() if is_alone else self._start_with_others()

    def _start_alone(self) -> Iterator[Stage]:
        """Yield the stages of a sole node; all are done in one turn of the loop."""
        quorum = self.member.quorum
        yield Stage("lead the quorum and register", self.member.start_alone, quorum.stop)
        yield Stage("take on the settings of the metadata", self._follow_configs)
        yield Stage("begin the life of a broker", self._begin_lifecycle)
        yield Stage("load the partitions", self._load_partitions)
        yield Stage("recover logs", self._recover_logs)
        for address in self._addresses:
            yield self._bind(address)
            yield self._listen(address)
        yield from self._start_to_run()
        yield Stage("take part as a broker", self._registered_alone, self.lifecycle.leave)
        yield Stage("decide", self.member.controller.begin_to_serve)

    def _start_with_others(self) -> Iterator[Stage]:
        """Yield the stages of a node of a cluster: controller listeners come first, because the quorum forms through
        them.
        """
        names = controller_names(self.configs.broker)
        theirs = [address for address in self._addresses if address.name in names]
        ours = [address for address in self._addresses if address.name not in names]
        for address in theirs:
            yield self._bind(address)
            yield self._listen(address)
        for address in ours:
            yield self._bind(address)
        yield Stage("take part in the quorum", self.member.quorum.start, self.member.quorum.stop)
        yield Stage("decide when it leads", self._begin_to_decide)
        yield Stage("take on the settings of the metadata", self._follow_configs)
        if not self.is_broker:  # a broker waits for its registration instead, with a timeout
            yield Stage("wait for a leader of the quorum", self._until_led)
        if self.is_controller:
            yield Stage("register the controller", self._register_controller)
        if self.is_broker:
            yield Stage("begin the life of a broker", self._begin_lifecycle)
            yield Stage("send heartbeats", undo=self.lifecycle.stop)
            yield Stage("register the broker", self.lifecycle.register)
            # The metadata is up to date now, so partition directories without a topic in it are really stray.
            yield Stage("take on the settings of the metadata", self._follow_configs)
            yield Stage("load the partitions", self._load_partitions)
            yield Stage("recover logs in a worker", self._recover)
            for address in ours:
                yield self._listen(address)
        else:
            yield Stage("there are no partitions", self._no_partitions)
        yield from self._start_to_run()
        if self.is_broker:
            yield Stage("catch up with what changed meanwhile", lambda: in_one_go(self.metadata.changes.release()))
            yield Stage("unfence the broker", self.lifecycle.unfence, self.lifecycle.leave)

    def _start_to_run(self) -> Iterator[Stage]:
        """Yield the stages that start background work."""
        yield Stage("watch the event loop", self._watch, self._unwatch)
        yield Stage("upkeep of the storage", self.storage.start, self.storage.upkeep.stop)
        yield Stage("other upkeep", self._begin_jobs, lambda: self._jobs.stop())
        yield Stage("timers of the controller", self.member.controller.start_timers)
        if self.is_broker:
            yield Stage("follow the metadata", self._follow_metadata)

    # --- stages

    def _check_vacant(self) -> None:
        self._stop_requested = self._stop_requested or asyncio.Event()
        self.runtime = self.ports.runtime(asyncio.get_running_loop())
        self._jobs = PeriodicJobs(self.runtime.loop)
        check_vacant(Configs(self.values).log_dirs(), self.ports.disk)

    async def _find_cluster(self) -> None:
        """Take the cluster id of the other nodes if this is a fresh node that joins them."""
        from ottla.server.quorum.joining import cluster_to_join

        cluster_id = await cluster_to_join(Configs(self.values), self.ports.disk)
        if cluster_id is not None:
            self.values["ottla.cluster.id"] = cluster_id

    def _read_settings(self) -> None:
        self.configs = Configs(self.values)
        settings = self.configs.broker
        roles = settings[PROCESS_ROLES]
        self.is_broker, self.is_controller = "broker" in roles, "controller" in roles
        self._addresses = listened(settings)
        check_start(self.configs, self._addresses)

    def _end_workers(self) -> None:
        if self.ports.executor is not None:
            self.ports.executor.shutdown(wait=True)

    def _lock(self, path: str) -> None:
        self._locks[path] = self.ports.lock(path)

    def _unlock(self, path: str) -> None:
        self._locks.pop(path)()

    def _open_directories(self) -> None:
        self.directories = open_directories(self.configs.log_dirs(), self.ports.disk)

    def _close_disks(self) -> None:
        for directory in self.directories:
            directory.disk.close()

    def _begin_cluster(self) -> None:
        from ottla.server.quorum.joining import begin_cluster

        begin_cluster(self.configs, self.directories, self.ports.now_ms(), self.ports.rng)

    def _compose(self) -> None:
        self.rooms = rooms = Rooms(
            self.runtime,
            self.configs,
            self.directories,
            is_broker=self.is_broker,
            connections_max=self.ports.connections_max,
            directory_lost=self._directory_lost,
        )
        self.member, self.metadata, self.storage = rooms.member, rooms.metadata, rooms.storage
        self.partitions, self.connections = rooms.storage.partitions, rooms.connections
        self.metadata.changes.add(self._settings_changed)
        self.metadata.reloads.add(self._reloaded)
        self.metadata.failures.add(self.request_stop)

    def _close_storage(self) -> None:
        self.member.close()
        broker = self.metadata.state.brokers.get(self.metadata.node_id)
        if self._loaded:
            for directory in self.directories:
                directory.broker_epoch = broker.epoch if broker is not None else NOT_CLEAN
            self.storage.close()  # also writes the clean-shutdown marker, which covers the metadata, too
            return
        for directory in self.directories:  # no partition was loaded: a clean directory still is clean
            if directory.clean:
                directory.mark_clean()

    def _begin_lifecycle(self) -> None:
        ports = {address.name: sock.getsockname()[1] for address, sock in self._sockets.items()}
        broker = self.member.broker
        broker = broker._replace(endpoints=registered_endpoints(broker.endpoints, ports))
        self.lifecycle = self.member.lifecycle(self.partitions, broker)

    def _registered_alone(self) -> None:
        self.lifecycle.registered(self.metadata.state.brokers[self.metadata.node_id].epoch)

    def _begin_to_decide(self) -> None:
        self.member.controller.begin_to_serve()
        self.member.controller.start_timers()

    async def _until_led(self) -> None:
        await self.metadata.until(lambda: self.member.quorum.leader_id >= 0)

    def _register_controller(self) -> None:
        self.runtime.tasks.spawn(self.member.register_controller())

    def _load_partitions(self) -> None:
        self._loaded = True
        in_one_go(self.storage.changes.loading(self.metadata.state))

    def _no_partitions(self) -> None:
        self._loaded = True

    async def _recover(self) -> None:
        """Recover logs in a worker, which must have the partitions for itself: changes of the metadata meanwhile are
        held back.
        """
        loaded = self.metadata.state
        self.metadata.changes.hold()
        self._is_recovering = True
        await self.runtime.in_worker(self._recover_logs)
        self._is_recovering = False
        if self.metadata.state is not loaded:  # a snapshot replaced the state
            self.metadata.changes.drop_held()
            self._follow_configs()
            in_one_go(self.storage.changes.loading(self.metadata.state))

    def _recover_logs(self) -> None:
        threads = self.configs.broker[NUM_RECOVERY_THREADS_PER_DATA_DIR]
        recover(self.partitions, self.ports.threads, threads, now_ms=self.ports.now_ms, watch=self._on_recovery)

    def _bind(self, address: ListenerAddress) -> Stage:
        def bind() -> None:
            self._sockets[address] = self.ports.net.listen(address.host, address.port)

        return Stage(f"bind {address.name}", bind, lambda: self._sockets.pop(address).close())

    def _listen(self, address: ListenerAddress) -> Stage:
        return Stage(
            f"listen on {address.name}", lambda: self._let_in(address), lambda: self._listeners.pop(address).close()
        )

    def _let_in(self, address: ListenerAddress) -> None:
        controller = address.name in controller_names(self.configs.broker)
        if controller:
            dispatcher = Dispatcher(dispatch.controller_route, None, self._intercept)
        else:
            dispatcher = Dispatcher(dispatch.route, Forwarding(self.member.link, self.rooms.peers), self._intercept)
        listener = self._listeners[address] = Listener(
            address,
            self._sockets[address],
            self.runtime,
            self.storage.cold,
            self.connections,
            dispatcher,
            self.rooms.new_context,
            controller=controller,
        )
        # Client listeners come first, because their addresses are shown to users.
        self.addresses.insert(len(self.addresses) if controller else self._client_listeners, listener.address)
        self._client_listeners += not controller

    def _watch(self) -> None:
        limit_ms = self.configs.broker[OTTLA_STALL_LIMIT_MS]
        if self.ports.watch is not None and limit_ms:
            self._stop_watching = self.ports.watch(self.runtime.loop, self.stalls, limit_ms, request_in_frame)

    def _unwatch(self) -> None:
        if self._stop_watching is not None:
            self._stop_watching()

    def _begin_jobs(self) -> None:
        """Start periodic jobs, besides those of the storage."""
        jobs, loop = self._jobs, self.runtime.loop
        if self.rooms.fetches is not None:
            jobs.every("spark readers", TIDY_MS, self.rooms.fetches.spark_readers.commit)
        jobs.every("connections", TIDY_MS, lambda: self.connections.tidy(loop, self.runtime.slices))
        jobs.every("metadata", METADATA_MS, lambda: self.member.snapshots.upkeep(self.runtime.now_ms()))

    def _follow_metadata(self) -> None:
        """Subscribe the rooms to changes of the metadata, in this order."""
        rooms = self.rooms
        assert rooms.replication is not None, "it is a broker"
        for follow in (
            self.storage.changes.following,
            rooms.replication.following,
            self.storage.upkeep.follow,
            rooms.coordinators.tell,
            rooms.contracts.follow,
            self.lifecycle.follow,
        ):
            self.metadata.changes.add(follow)
        rooms.replication.start(self.metadata.state)
        rooms.coordinators.start(self.metadata.state)

    # --- running

    def _follow_configs(self) -> None:
        """Take settings from the current state of the metadata."""
        self.configs.follow(self.metadata.state)
        self.connections.configure(self.configs.broker)

    def _settings_changed(self, _: object) -> None:
        self.configs.forget()
        self.connections.configure(self.configs.broker)

    def _reloaded(self) -> Steps:
        """Let all rooms follow the whole state, because a snapshot replaced it."""
        if self._is_recovering:
            return  # `_recover` does it afterwards
        state = self.metadata.state
        self._follow_configs()
        if self.rooms.replication is not None and self._loaded:
            changes = self.storage.changes
            gone = changes.gone_from(state)
            yield from changes.loading(state)
            self.storage.upkeep.follow(map(TopicDeleted, gone))
            yield from self.rooms.replication.reloading(state)
            self.rooms.coordinators.reload(state)

    def _directory_lost(self, _: DataDirectory) -> None:
        self.lifecycle.hurry()
        if all(directory.offline for directory in self.directories):
            log.error("no data directory of this node works any more: it leaves the cluster until one does")
            self.storage_lost = True
            self.request_stop()

    def request_stop(self) -> None:
        """Make `stopped` shut the node down; must be called on the node's own loop."""
        if self._stop_requested is not None:
            self._stop_requested.set()

    async def stopped(self) -> None:
        """Wait for `request_stop`, then stop."""
        assert self._stop_requested is not None, "the node was not started"
        await self._stop_requested.wait()
        await self.stop()
