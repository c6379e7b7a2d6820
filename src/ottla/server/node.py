"""Node: a broker, a controller or both in one process, from its settings to its clean stop.

A start opens the data directories, the metadata journal, the quorum, the partitions (recovered if the last stop was not
clean), and last, once the broker is unfenced, the listeners for clients. A stop does the reverse and ends with writing
the clean-shutdown marker. The stages from the journal on are in `composed_node.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping

from ottla.model.errors import ApiError
from ottla.model.settings.controller import CONTROLLER_QUORUM_BOOTSTRAP_SERVERS
from ottla.model.settings.own import OTTLA_CLUSTER_ID
from ottla.server.api.dispatcher import Intercept
from ottla.server.composed_node import ComposedNode
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.stages import Stage, Stages
from ottla.server.loop.stalls import Stalls
from ottla.server.net.connection_limits import ConnectionLimits
from ottla.server.ports.ports import Ports
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.rooms import Rooms
from ottla.server.security.node_security import NodeSecurity
from ottla.server.settings.configs import Configs
from ottla.server.settings.metrics_listener import MetricsPlace
from ottla.server.settings.node_settings import NodeSettings
from ottla.server.storage.directories import DataDirectory, open_directories
from ottla.server.storage.partitions import Partitions
from ottla.server.storage.recovery import Watch
from ottla.server.storage.storage import Storage
from ottla.server.storage.vacancy import check_vacant, is_fresh

log = logging.getLogger(__name__)


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
        self.stalls = Stalls()
        self.composed: ComposedNode | None = None  # set as soon as the metadata journal is read
        self._on_recovery = on_recovery
        self._intercept = intercept
        self._stop_requested = asyncio.Event()
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

    def request_stop(self) -> None:
        """Make `stopped` shut the node down; must be called on the node's own loop."""
        self._stop_requested.set()

    async def stopped(self) -> None:
        """Wait for `request_stop`, then stop."""
        await self._stop_requested.wait()
        await self.stop()

    # --- the stages of the start in order; a stop undoes them in reverse order

    def _start(self) -> Iterator[Stage]:
        """Yield the stages. What a stage needs of an earlier one is made in between: each is done before the next one
        is asked for.
        """
        ports, joins = self.ports, CONTROLLER_QUORUM_BOOTSTRAP_SERVERS.name in self.values
        yield Stage("look for files of somebody else", self._check_vacant)
        if joins:
            yield Stage("find the cluster to join", self._find_cluster)
        settings = NodeSettings.read(self.values)
        runtime = ports.runtime(asyncio.get_running_loop())
        security = NodeSecurity(runtime, settings.configs, settings.listeners, lambda: self.metadata.state)
        self._check_security(security, settings)  # so a node without a certificate ends before anything is formatted
        yield Stage("read the settings", undo=self._end_workers)
        if ports.lock is not None:
            for path in settings.configs.log_dirs():
                yield Stage(f"lock {path}", undo=ports.lock(path))
        directories = open_directories(settings.configs.log_dirs(), ports.disk)
        yield Stage("open the data directories", undo=lambda: _close_disks(directories))
        if joins:
            yield Stage("begin a cluster, if it is the first node", lambda: self._begin_cluster(settings, directories))
        composed = self.composed = self._compose(settings, runtime, security, directories)
        yield Stage("read the journal, compose the rooms", undo=composed.close)
        yield from composed.stages()

    def _check_security(self, security: NodeSecurity, settings: NodeSettings) -> None:
        """Raise INVALID_CONFIG if listeners cannot be secured, unless there may be other settings in the metadata."""
        try:
            security.check()
        except ApiError as error:
            if is_fresh(settings.configs.log_dirs(), self.ports.disk):
                raise
            log.warning("%s; the start goes on, because the metadata may have other settings of this node", error.text)

    def _check_vacant(self) -> None:
        check_vacant(Configs(self.values).log_dirs(), self.ports.disk)

    async def _find_cluster(self) -> None:
        """Take the cluster id of the other nodes if this is a fresh node that joins them."""
        from ottla.server.quorum.joining import cluster_to_join

        cluster_id = await cluster_to_join(Configs(self.values), self.ports.disk)
        if cluster_id is not None:
            self.values[OTTLA_CLUSTER_ID.name] = cluster_id

    def _end_workers(self) -> None:
        if self.ports.executor is not None:
            self.ports.executor.shutdown(wait=True)

    def _begin_cluster(self, settings: NodeSettings, directories: list[DataDirectory]) -> None:
        from ottla.server.quorum.joining import begin_cluster

        begin_cluster(settings.configs, directories, self.ports.now_ms(), self.ports.rng)

    def _compose(
        self, settings: NodeSettings, runtime: Runtime, security: NodeSecurity, directories: list[DataDirectory]
    ) -> ComposedNode:
        rooms = Rooms(
            runtime,
            settings.configs,
            security,
            directories,
            is_broker=settings.is_broker,
            connections_max=self.ports.connections_max,
        )
        return ComposedNode(
            settings,
            self.ports,
            rooms,
            self.stalls,
            request_stop=self.request_stop,
            on_recovery=self._on_recovery,
            intercept=self._intercept,
        )

    # --- parts of a node whose journal is read

    @property
    def rooms(self) -> Rooms:
        assert self.composed is not None, "the node has not got so far yet"
        return self.composed.rooms

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where the node listens, client listeners first."""
        return [] if self.composed is None else self.composed.addresses

    @property
    def metrics_place(self) -> MetricsPlace | None:
        """Where the node tells its metrics; None if it does not."""
        metrics = None if self.composed is None else self.composed.metrics
        return None if metrics is None else metrics.place

    @property
    def metrics_address(self) -> tuple[str, int] | None:
        """The same without saying whether it has TLS."""
        place = self.metrics_place
        return None if place is None else (place.host, place.port)

    @property
    def storage_lost(self) -> bool:
        """Whether the node stops because all data directories failed."""
        return self.composed is not None and self.composed.storage_lost

    @property
    def runtime(self) -> Runtime:
        return self.rooms.runtime

    @property
    def member(self) -> QuorumMember:
        return self.rooms.member

    @property
    def metadata(self) -> MetadataHost:
        return self.rooms.member.metadata

    @property
    def storage(self) -> Storage:
        return self.rooms.storage

    @property
    def partitions(self) -> Partitions:
        return self.rooms.storage.partitions

    @property
    def connections(self) -> ConnectionLimits:
        return self.rooms.connections


def _close_disks(directories: list[DataDirectory]) -> None:
    for directory in directories:
        directory.disk.close()
