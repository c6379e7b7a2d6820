"""Member: this node as a part of the cluster: who it is, its replica of the metadata, its vote, its decisions.

The sole voter of a cluster that is a broker too writes its own registrations when it starts, so that it is ready when
`start_alone` returns; everybody else registers through the active controller (see `server/quorum/broker_lifecycle.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.cluster import journal
from ottla.cluster.commands.start import RegisterController, StartBroker
from ottla.cluster.entities import Broker, Controller
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.features import DEFAULT_LEVELS, SUPPORTED_FEATURES
from ottla.cluster.snapshot import feature
from ottla.cluster.store import Store, StoreConfig
from ottla.log.files.disk import Disk, read_all
from ottla.model.errors import ApiError
from ottla.model.ids import random_uuid
from ottla.model.settings.controller import (
    CONTROLLER_QUORUM_VOTERS,
    METADATA_LOG_DIR,
    METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS,
    METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS,
    METADATA_LOG_SEGMENT_BYTES,
    METADATA_LOG_SEGMENT_MS,
)
from ottla.model.settings.node import BROKER_RACK
from ottla.model.settings.own import OTTLA_CLUSTER_ID
from ottla.server.peers.peers import Peers
from ottla.server.quorum.active_controller import ActiveController
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.quorum import Quorum
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import broker_endpoints, controller_endpoints
from ottla.server.storage.directories import DataDirectory, cordoned
from ottla.server.storage.identity import BOOTSTRAP, identify

if TYPE_CHECKING:
    from ottla.server.ports.ports import Ports

NOT_CLEAN = -1  # in place of the epoch at the last stop
FEATURES = tuple(SUPPORTED_FEATURES.items())


class Member(NamedTuple):
    """Use `Member.open`, then `quorum.start`."""

    quorum: Quorum
    metadata: MetadataHost
    controller: ActiveController
    broker: Broker  # what it registers as; fenced, and with the epoch of its last clean stop
    registration: Controller
    clean: bool  # whether the last stop was

    @classmethod
    def open(cls, directories: Sequence[DataDirectory], configs: Configs, ports: Ports, peers: Peers | None) -> Member:
        """Format what is fresh and read the journal; nothing is written or sent before the quorum is started."""
        settings = configs.broker
        metadata_path = settings[METADATA_LOG_DIR] or configs.log_dirs()[0]
        clean = all(directory.clean for directory in directories)
        epochs = {directory.broker_epoch for directory in directories}
        identity = identify(
            directories,
            configs.node_id,
            metadata_path,
            ports.now_ms(),
            ports.rng,
            cluster_id=settings[OTTLA_CLUSTER_ID],
            of_voters=settings[CONTROLLER_QUORUM_VOTERS],
        )
        store_config = StoreConfig(
            segment_bytes=settings[METADATA_LOG_SEGMENT_BYTES],
            segment_ms=settings[METADATA_LOG_SEGMENT_MS],
            bytes_between_snapshots=settings[METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS],
        )
        home = identity.home
        store = Store.open(home.disk, store_config, now_ms=ports.now_ms(), clean=home.clean)
        quorum = Quorum.open(identity, store, configs, ports, peers)
        metadata = MetadataHost(identity, settings[METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS], ports.now_ms)
        metadata.quorum = quorum
        quorum.listener = metadata
        controller = ActiveController(quorum, metadata, configs, _bootstrap(home.disk), quorum.clock_ms, ports.rng)
        registration = Controller(identity.node_id, random_uuid(ports.rng), controller_endpoints(settings), FEATURES)
        broker = Broker(
            id=identity.node_id,
            epoch=epochs.pop() if clean and len(epochs) == 1 else NOT_CLEAN,
            incarnation_id=random_uuid(ports.rng),
            endpoints=broker_endpoints(settings),
            features=FEATURES,
            rack=settings[BROKER_RACK],
            fenced=True,
            directories=identity.directory_ids,
            cordoned=tuple(cordoned(directories, settings)),
        )
        return cls(quorum, metadata, controller, broker, registration, clean)

    @property
    def alone(self) -> bool:
        """The only voter there is, so it decides alone."""
        return self.quorum.is_alone

    def start_alone(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leads, and has registered itself as controller and broker, when it returns."""
        self.quorum.start(loop)
        for command in (
            RegisterController(self.registration),
            StartBroker(self.broker._replace(epoch=self.quorum.end_offset), self.clean),
        ):
            reply = self.controller.submit(command).taken()
            if isinstance(reply, ApiError):
                raise self.quorum.failure or reply

    def close(self) -> None:
        self.controller.close()
        self.metadata.close()
        self.quorum.store.close()


def _bootstrap(disk: Disk) -> tuple[MetadataEntry, ...]:
    """What the formatter, ours or Kafka's, wants an empty journal to begin with."""
    try:
        data = read_all(disk.open(BOOTSTRAP))
    except FileNotFoundError:
        return tuple(feature(name, level) for name, level in DEFAULT_LEVELS.items())
    items = journal.snapshot_items(data, BOOTSTRAP)
    return tuple(item.content for item in items if isinstance(item.content, MetadataEntry))
