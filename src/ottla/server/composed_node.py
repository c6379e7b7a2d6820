"""ComposedNode: a node whose rooms exist (`rooms.py`): how they start, in order, and follow the metadata.

A node that is the only voter has decided everything it needs by itself when its stages are done; any other node waits
for the quorum, and a broker registers with the active controller.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from ottla.cluster.entities import Change, QuotaChanged, TopicDeleted
from ottla.machine.stepped import in_one_go
from ottla.model.limits import (
    AUDIT_FLUSH_MS,
    METRICS_WINDOW_MS,
    OTEL_SPANS_INTERVAL_MS,
    TELEMETRY_TIDY_MS,
    TENANT_ASK_MS,
    TENANT_MEASURE_MS,
)
from ottla.model.settings.log import NUM_RECOVERY_THREADS_PER_DATA_DIR
from ottla.model.settings.own import OTTLA_SLOW_REQUEST_MS, OTTLA_STALL_LIMIT_MS
from ottla.server.api import dispatch
from ottla.server.api.dispatcher import Around, Dispatcher, Intercept, handled, intercepting
from ottla.server.api.forwarding.forwarding import Forwarding
from ottla.server.loop.periodic_jobs import PeriodicJobs
from ottla.server.loop.slices import Steps
from ottla.server.loop.stages import Stage
from ottla.server.loop.stalls import Stalls
from ottla.server.net.listener import Listener
from ottla.server.net.request_in_frame import request_in_frame
from ottla.server.ports.ports import Ports
from ottla.server.quorum.broker_lifecycle import Lifecycle
from ottla.server.quorum.quorum_member import NOT_CLEAN
from ottla.server.quotas.quota_updates import QuotaUpdates
from ottla.server.rooms import Rooms
from ottla.server.settings.listeners import ListenerAddress
from ottla.server.settings.node_settings import NodeSettings
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.recovery import Watch, recover

if TYPE_CHECKING:
    from ottla.server.api.slow_requests import SlowRequests

log = logging.getLogger(__name__)

TIDY_MS = 1_000
METADATA_MS = 10_000
CERTIFICATES_MS = 10_000
FAILED_LOGINS_MS = 60_000


class ComposedNode:
    def __init__(
        self,
        settings: NodeSettings,
        ports: Ports,
        rooms: Rooms,
        stalls: Stalls,
        *,
        request_stop: Callable[[], None],
        on_recovery: Watch | None,
        intercept: Intercept | None,
    ) -> None:
        """`request_stop` has the node stop soon, because it cannot go on."""
        self.settings = settings
        self.rooms = rooms
        self.addresses: list[tuple[str, int]] = []  # where the node listens, client listeners first
        self.storage_lost = False  # whether the node stops because all data directories failed
        self._ports = ports
        self._stalls = stalls
        self._request_stop = request_stop
        self._on_recovery = on_recovery
        self._intercept = intercept
        self._runtime = rooms.runtime
        self._configs = settings.configs
        self._member = rooms.member
        self._metadata = rooms.member.metadata
        self._storage = rooms.storage
        quota_users = rooms.quotas, rooms.connection_rates
        self._quota_updates = QuotaUpdates(rooms.runtime, lambda: self._metadata.state.quotas, quota_users)
        self._jobs = PeriodicJobs(rooms.runtime.loop)
        self._is_recovering = False
        self._loaded = False  # whether partitions were loaded, so that a clean stop has to close them
        self._sockets: dict[ListenerAddress, Any] = {}  # bound sockets, which may not accept connections yet
        self._listeners: dict[ListenerAddress, Listener] = {}
        self._client_listeners = 0
        self.metrics = rooms.metrics(stalls, lambda: len(self._listeners) == len(settings.listeners))
        self._stop_watching: Callable[[], None] | None = None
        self._metadata.changes.add(rooms.security.authorization.follow)
        self._metadata.commits.add(lambda _: rooms.security.authorization.complete())
        self._metadata.changes.add(self._settings_changed)
        self._metadata.changes.add(rooms.security.follow)
        self._metadata.reloads.add(self._reloaded)
        self._metadata.failures.add(request_stop)
        self._storage.directory_losses.add(self._directory_lost)

    # --- the stages of the start in order; a stop undoes them in reverse order

    def stages(self) -> Iterator[Stage]:
        yield from self.rooms.stages()
        if self.metrics is not None:
            yield Stage("serve metrics", self._serve_metrics, self.metrics.close)
        is_alone = self.settings.is_broker and self.settings.is_controller and self._member.alone
        yield from self._start_alone() if is_alone else self._start_with_others()

    def _start_alone(self) -> Iterator[Stage]:
        """Yield the stages of a sole node; all are done in one turn of the loop. Ports that the system chooses are
        bound first, because they are registered.
        """
        listeners = self.settings.listeners
        for listener in listeners:
            if not listener.port:
                yield self._bind(listener)
        yield Stage("learn the ports", self._learn_ports)
        yield Stage("lead the quorum and register", self._member.start_alone, self._member.quorum.stop)
        yield Stage("take over settings and ACLs of the metadata", self._take_over_metadata)
        lifecycle = self._begin_lifecycle()
        yield Stage("load the partitions", self._load_partitions)
        yield Stage("recover logs", self._recover_logs)
        for listener in listeners:
            if listener.port:
                yield self._bind(listener)
            yield self._listen(listener)
        yield from self._start_to_run(lifecycle)
        yield Stage("take part as a broker", lambda: self._registered_alone(lifecycle), lifecycle.leave)
        yield Stage("decide", self._member.controller.begin_to_serve)

    def _start_with_others(self) -> Iterator[Stage]:
        """Yield the stages of a node of a cluster: controller listeners come first, because the quorum forms through
        them, except those that `early.start.listeners` leaves out.
        """
        settings, quorum = self.settings, self._member.quorum
        of_clients = [each for each in settings.listeners if not settings.is_of_controllers(each)]
        of_controllers = [each for each in settings.listeners if settings.is_of_controllers(each)]
        late = [each for each in of_controllers if settings.waits_for_acls(each)]
        for listener in of_controllers:
            yield self._bind(listener)
            if listener not in late:
                yield self._listen(listener)
        for listener in of_clients:
            yield self._bind(listener)
        yield Stage("learn the ports", self._learn_ports)
        yield Stage("take part in the quorum", quorum.start, quorum.stop)
        yield Stage("decide when it leads", self._begin_to_decide)
        yield Stage("take over settings and ACLs of the metadata", self._take_over_metadata)
        if late:
            yield Stage("wait for the ACLs", self._until_acls_are_loaded)
        for listener in late:
            yield self._listen(listener)
        if not settings.is_broker:  # a broker waits for its registration instead, with a timeout
            yield Stage("wait for a leader of the quorum", self._until_led)
        if settings.is_controller:
            yield Stage("register the controller", self._register_controller)
        if not settings.is_broker:
            yield Stage("there are no partitions", self._no_partitions)
            yield from self._start_to_run(None)
            return
        lifecycle = self._begin_lifecycle()
        yield Stage("send heartbeats", undo=lifecycle.stop)
        yield Stage("register the broker", lifecycle.register)
        # The metadata is up to date now, so partition directories without a topic in it are really stray.
        yield Stage("take over settings and ACLs of the metadata", self._take_over_metadata)
        yield Stage("load the partitions", self._load_partitions)
        yield Stage("recover logs in a worker", self._recover)
        yield from self._start_to_run(lifecycle)
        yield Stage("catch up with what changed meanwhile", lambda: in_one_go(self._metadata.changes.release()))
        yield Stage("unfence the broker", lifecycle.unfence)
        # A client that came before would be told of a cluster without this broker, or without any.
        for listener in of_clients:
            yield self._listen(listener)
        yield Stage("be ready", undo=lifecycle.leave)  # clients are served until other brokers lead
        # Written before it leaves: there may be no other broker that the topic of the audit log can be written to.
        audit = self.rooms.audit_writer
        yield Stage("have the audit log written", undo=None if audit is None else audit.hurry)

    def _start_to_run(self, lifecycle: Lifecycle | None) -> Iterator[Stage]:
        """Yield the stages that start background work; `lifecycle` is that of a broker."""
        yield Stage("watch the event loop", self._watch, self._unwatch)
        yield Stage("upkeep of the storage", self._storage.start, self._storage.upkeep.stop)
        audit = self.rooms.audit_writer
        yield Stage("the audit log", undo=None if audit is None else audit.close)
        yield Stage("other upkeep", self._begin_jobs, self._jobs.stop)
        yield Stage("timers of the controller", self._member.controller.start_timers)
        if lifecycle is not None:
            yield Stage("follow the metadata", lambda: self._follow_metadata(lifecycle))
            yield Stage("look at its own login", lambda: self.rooms.security.look_at_own_login(self._metadata.state))

    # --- stages

    def _serve_metrics(self) -> None:
        assert self.metrics is not None, "they are on"
        self.metrics.start(self._ports.net)

    def _learn_ports(self) -> None:
        self._member.listens_on({listener.name: sock.getsockname()[1] for listener, sock in self._sockets.items()})

    def _begin_lifecycle(self) -> Lifecycle:
        lifecycle = self._member.lifecycle(self._storage.partitions)
        self._storage.directory_losses.add(lambda _: lifecycle.hurry())
        return lifecycle

    def _registered_alone(self, lifecycle: Lifecycle) -> None:
        lifecycle.registered(self._metadata.state.brokers[self._metadata.node_id].epoch)

    def _begin_to_decide(self) -> None:
        self._member.controller.begin_to_serve()
        self._member.controller.start_timers()

    async def _until_led(self) -> None:
        await self._metadata.until(lambda: self._member.quorum.leader_id >= 0)

    async def _until_acls_are_loaded(self) -> None:
        if not self.rooms.security.authorization.is_loaded:
            log.warning("early.start.listeners leaves a controller listener out: it opens when the ACLs are loaded")
        await self._metadata.until(lambda: self.rooms.security.authorization.is_loaded)

    def _register_controller(self) -> None:
        self._runtime.tasks.spawn(self._member.register_controller())

    def _load_partitions(self) -> None:
        self._loaded = True
        in_one_go(self._storage.changes.loading(self._metadata.state))

    def _no_partitions(self) -> None:
        self._loaded = True

    async def _recover(self) -> None:
        """Recover logs in a worker, which must have the partitions for itself: changes of the metadata meanwhile are
        held back.
        """
        loaded = self._metadata.state
        self._metadata.changes.hold()
        self._is_recovering = True
        await self._runtime.in_worker(self._recover_logs)
        self._is_recovering = False
        if self._metadata.state is not loaded:  # a snapshot replaced the state
            self._metadata.changes.drop_held()
            waiting = self._take_over_metadata()
            if waiting is not None:
                await waiting
            in_one_go(self._storage.changes.loading(self._metadata.state))

    def _recover_logs(self) -> None:
        threads = self._configs.broker[NUM_RECOVERY_THREADS_PER_DATA_DIR]
        partitions, now_ms = self._storage.partitions, self._ports.now_ms
        recover(partitions, self._ports.threads, threads, now_ms=now_ms, watch=self._on_recovery)

    def _bind(self, listener: ListenerAddress) -> Stage:
        def bind() -> None:
            self._sockets[listener] = self._ports.net.listen(listener.host, listener.port)

        return Stage(f"bind {listener.name}", bind, lambda: self._sockets.pop(listener).close())

    def _listen(self, listener: ListenerAddress) -> Stage:
        return Stage(
            f"listen on {listener.name}", lambda: self._let_in(listener), lambda: self._listeners.pop(listener).close()
        )

    def _slow_requests(self) -> SlowRequests | None:
        limit_ms = self._configs.broker[OTTLA_SLOW_REQUEST_MS]
        if not limit_ms:
            return None
        from ottla.server.api.slow_requests import SlowRequests  # only here: few nodes log slow requests

        return SlowRequests(limit_ms)

    def _around(self) -> Around | None:
        """Return what stands around the handling of requests: a test's interception, tracing, or nothing."""
        around = None if self._intercept is None else intercepting(self._intercept)
        tracer = None if self.rooms.otel is None else self.rooms.otel.tracer
        if tracer is None:
            return around
        from ottla.server.api.request_tracing import RequestTracing  # few nodes trace

        return RequestTracing(tracer, around or handled)

    def _let_in(self, address: ListenerAddress) -> None:
        self.rooms.security.check(address.name)
        controller = self.settings.is_of_controllers(address)
        counts = None if self.metrics is None else self.metrics.requests
        routes = dispatch.routes_of(self.rooms.security.authorization, controller=controller, counts=counts)
        slow = self._slow_requests()
        if controller:
            dispatcher = Dispatcher(routes, None, self._around(), slow=slow)
        else:
            forwarding = Forwarding(self._member.link, self.rooms.controllers)
            dispatcher = Dispatcher(routes, forwarding, self._around(), self.rooms.quotas, slow)
        listener = self._listeners[address] = Listener(
            address,
            self._sockets[address],
            self._runtime,
            self._storage.cold,
            self.rooms.connections,
            self.rooms.security.listener(address.name),
            dispatcher,
            self.rooms.new_context,
            self.rooms.security.logins,
            rates=None if controller else self.rooms.connection_rates,
            controller=controller,
        )
        # Client listeners come first, because their addresses are shown to users.
        self.addresses.insert(len(self.addresses) if controller else self._client_listeners, listener.address)
        self._client_listeners += not controller

    def _watch(self) -> None:
        limit_ms = self._configs.broker[OTTLA_STALL_LIMIT_MS]
        if self._ports.watch is not None and limit_ms:
            self._stop_watching = self._ports.watch(self._runtime.loop, self._stalls, limit_ms, request_in_frame)

    def _unwatch(self) -> None:
        if self._stop_watching is not None:
            self._stop_watching()

    def _begin_jobs(self) -> None:
        """Start periodic jobs, besides those of the storage."""
        jobs, runtime, rooms = self._jobs, self._runtime, self.rooms
        if rooms.fetches is not None:
            jobs.every("spark readers", TIDY_MS, rooms.fetches.spark_readers.commit)
            jobs.every("tenants", TENANT_MEASURE_MS, rooms.tenants.measure)
            jobs.every("tenants of other brokers", TENANT_ASK_MS, rooms.tenants.ask_others)
        jobs.every("connections", TIDY_MS, lambda: rooms.connections.tidy(runtime.loop, runtime.slices))
        rooms.security.started()
        jobs.every("certificates", CERTIFICATES_MS, rooms.security.refresh)
        jobs.every("failed logins", FAILED_LOGINS_MS, rooms.security.logins.tell_failures)
        if self.metrics is not None:
            jobs.every("metrics", METRICS_WINDOW_MS, self.metrics.turn)
            if rooms.otel is not None:
                jobs.every("push of metrics", rooms.otel.interval_ms, self.metrics.push)
        if rooms.otel is not None and rooms.otel.tracer is not None:
            jobs.every("push of spans", OTEL_SPANS_INTERVAL_MS, rooms.otel.tracer.push)
        if rooms.telemetry is not None:
            jobs.every("telemetry of clients", TELEMETRY_TIDY_MS, rooms.telemetry.tidy)
        if rooms.audit_writer is not None:
            jobs.every("audit log", AUDIT_FLUSH_MS, rooms.audit_writer.begin)
        jobs.every("metadata", METADATA_MS, lambda: self._member.snapshots.upkeep(runtime.now_ms()))

    def _follow_metadata(self, lifecycle: Lifecycle) -> None:
        """Subscribe the rooms to changes of the metadata, in this order."""
        rooms = self.rooms
        assert rooms.replication is not None, "it is a broker"
        for follow in (
            self._storage.changes.following,
            rooms.replication.following,
            self._storage.upkeep.follow,
            rooms.coordinators.tell,
            rooms.contracts.follow,
            lifecycle.follow,
        ):
            self._metadata.changes.add(follow)
        rooms.replication.start(self._metadata.state)
        rooms.coordinators.start(self._metadata.state)

    def close(self) -> None:
        """Close the storage and the metadata journal: the undo of the composition."""
        self._member.close()
        broker = self._metadata.state.brokers.get(self._metadata.node_id)
        if self._loaded:
            for directory in self._storage.directories:
                directory.broker_epoch = broker.epoch if broker is not None else NOT_CLEAN
            self._storage.close()  # also writes the clean-shutdown marker, which covers the metadata, too
            return
        for directory in self._storage.directories:  # no partition was loaded: a clean directory still is clean
            if directory.clean:
                directory.mark_clean()

    # --- events

    def _follow_settings(self) -> None:
        """Take settings and quotas from the current state of the metadata."""
        self._configs.follow(self._metadata.state)
        self._settings_known()
        self._quota_updates.follow()

    def _settings_known(self) -> None:
        """Let the rooms that keep settings take the current ones."""
        self.rooms.connections.configure(self._configs.broker)
        self.rooms.connection_rates.configure(self._configs.node)
        self.rooms.tenants.follow(self._configs.node)

    def _take_over_metadata(self) -> Awaitable[None] | None:
        """Take settings and ACLs from the current state of the metadata; return what has to be waited for."""
        self._follow_settings()
        in_one_go(self.rooms.security.authorization.loading(self._metadata.state))
        return self.rooms.security.take_over()

    def _settings_changed(self, changes: list[Change]) -> None:
        old = self._configs.node
        self._configs.forget()
        if self._configs.node is not old:
            self._settings_known()
            self.rooms.security.settings_changed()
        if any(isinstance(change, QuotaChanged) for change in changes):
            self._quota_updates.follow()

    def _reloaded(self) -> Steps:
        """Let all rooms follow the whole state, because a snapshot replaced it."""
        if self._is_recovering:
            return  # `_recover` does it afterwards
        state = self._metadata.state
        self._follow_settings()
        self.rooms.security.settings_changed()
        yield from self.rooms.security.authorization.loading(state)
        if self.rooms.replication is not None and self._loaded:
            changes = self._storage.changes
            gone = changes.gone_from(state)
            yield from changes.loading(state)
            self._storage.upkeep.follow(map(TopicDeleted, gone))
            yield from self.rooms.replication.reloading(state)
            self.rooms.coordinators.reload(state)

    def _directory_lost(self, _: DataDirectory) -> None:
        if all(directory.offline for directory in self._storage.directories):
            log.error("no data directory of this node works any more: it leaves the cluster until one does")
            self.storage_lost = True
            self._request_stop()
