"""QuorumMember: this node as a member of the cluster: identity, replica of the metadata, vote, active controller.

A sole voter that is a broker too writes its own registrations when it starts, so that it is ready when `start_alone`
returns; every other node registers with the active controller (see `server/quorum/broker_lifecycle.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from ottla.cluster import journal
from ottla.cluster.commands.start import RegisterController, StartBroker
from ottla.cluster.entities import Broker, Controller
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.features import DEFAULT_LEVELS, SUPPORTED_FEATURES
from ottla.cluster.snapshot import feature
from ottla.cluster.state import ClusterState
from ottla.cluster.store import MetadataStore, StoreConfig
from ottla.log.files.disk import Disk, read_all
from ottla.model.config import Config
from ottla.model.errors import ApiError
from ottla.model.ids import NO_BROKER_EPOCH, BrokerEpoch, random_uuid
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
from ottla.server.loop.later import Later
from ottla.server.loop.runtime import Runtime
from ottla.server.peers.peers import Peers
from ottla.server.quorum.active_controller import ActiveController
from ottla.server.quorum.broker_lifecycle import Lifecycle, register_controller
from ottla.server.quorum.broker_liveness import Liveness
from ottla.server.quorum.controller_link import ControllerLink, HandleHere
from ottla.server.quorum.internal_topics import brokers_expected, created, new_topic
from ottla.server.quorum.metadata_host import MetadataHost
from ottla.server.quorum.metadata_snapshots import MetadataSnapshots
from ottla.server.quorum.producer_ids import ProducerIds
from ottla.server.quorum.quorum import Quorum
from ottla.server.settings.configs import Configs
from ottla.server.settings.endpoints import (
    broker_endpoints,
    controller_endpoints,
    inter_broker_listener,
    registered_endpoints,
)
from ottla.server.storage.directories import DataDirectory, cordoned
from ottla.server.storage.identity import BOOTSTRAP, identify
from ottla.server.storage.partitions import Partitions

if TYPE_CHECKING:
    from ottla.cluster.commands.create_topics import TopicOutcome, TopicToCreate
    from ottla.server.quorum.topic_creation import TopicCreation

NOT_CLEAN = -1  # the previous broker epoch after an unclean stop
FEATURES = tuple(SUPPORTED_FEATURES.items())


class QuorumMember:
    """This node as a member of its cluster.

    - `metadata`: the committed state of the cluster; `snapshots` writes snapshots of it;
    - `quorum`: this node's part in the metadata quorum;
    - `controller`: decides changes of the cluster while this node leads the quorum;
    - `liveness`: detects dead brokers while this node is the active controller;
    - `link`: requests to the active controller, on whichever node it is; `producer_ids` uses it.
    """

    def __init__(
        self,
        runtime: Runtime,
        configs: Configs,
        directories: Sequence[DataDirectory],
        peers: Peers,
        handle_here: HandleHere,
    ) -> None:
        """Format fresh directories and read the journal; nothing is sent before `quorum.start`.

        `handle_here` handles a request to the active controller if that is this node.
        """
        settings = configs.broker
        self._configs = configs
        self._loop = runtime.loop
        self._tasks = runtime.tasks
        self.clean = all(directory.clean for directory in directories)  # whether the last shutdown was clean
        identity = identify(
            directories,
            configs.node_id,
            settings[METADATA_LOG_DIR] or configs.log_dirs()[0],
            runtime.now_ms(),
            runtime.rng,
            cluster_id=settings[OTTLA_CLUSTER_ID],
            of_voters=settings[CONTROLLER_QUORUM_VOTERS],
        )
        self._store = _open_store(identity.home, settings, runtime.now_ms)
        self.metadata = MetadataHost(identity)
        self.quorum = Quorum.open(identity, self._store, configs, runtime, peers, self.metadata)
        self.controller = ActiveController(runtime, self.quorum, self.metadata, configs, _bootstrap(identity.home.disk))
        interval_ms = settings[METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS]
        self.snapshots = MetadataSnapshots(runtime, self.quorum, self.metadata, interval_ms)
        self.liveness = Liveness(
            runtime.loop, self.quorum, self.metadata, self.controller, inter_broker_listener(settings)
        )
        self.link = ControllerLink(runtime.loop, self.quorum, self.metadata, self.controller, peers, handle_here)
        self.producer_ids = ProducerIds(runtime.tasks, self.quorum, self.metadata, self.controller, self.link)
        # The registrations of this node: as a controller, and as a broker with the broker epoch of its last clean stop.
        self.registration = Controller(
            identity.node_id, random_uuid(runtime.rng), controller_endpoints(settings), FEATURES
        )
        epochs = {directory.broker_epoch for directory in directories}
        self.broker = Broker(
            id=identity.node_id,
            epoch=BrokerEpoch(epochs.pop()) if self.clean and len(epochs) == 1 else NO_BROKER_EPOCH,
            incarnation_id=random_uuid(runtime.rng),
            endpoints=broker_endpoints(settings),
            features=FEATURES,
            rack=settings[BROKER_RACK],
            fenced=True,
            directories=identity.directory_ids,
            cordoned=tuple(cordoned(directories, settings)),
        )

    @property
    def state(self) -> ClusterState:
        """The cluster's committed state; it may be read but not kept, because a snapshot replaces the object."""
        return self.metadata.state

    @property
    def decided_state(self) -> ClusterState:
        """The state with what the active controller has decided and not committed yet. Raises NotController if that is
        not this node.
        """
        return self.controller.view.state

    @property
    def alone(self) -> bool:
        """Whether this node is the only voter."""
        return self.quorum.is_alone

    @cached_property
    def _topics(self) -> TopicCreation:
        from ottla.server.quorum.topic_creation import TopicCreation  # many nodes never create a topic

        return TopicCreation(self._tasks, self.metadata, self.controller, self.link)

    def create_topics(self, topics: tuple[TopicToCreate, ...]) -> Later[list[TopicOutcome]]:
        """Have the active controller create topics; errors are in the outcomes."""
        return self._topics.create(topics)

    def create_topic(self, name: str, *configs: tuple[str, str]) -> Later[ApiError | None]:
        """Create a topic with the broker's own settings and these configs; set to None when it exists, or to the
        error.
        """
        topic = self._new_topic(name)
        return self.create_topics((replace(topic, configs=(*topic.configs, *configs)),)).map(created)

    def create_missing(self, names: Iterable[str]) -> None:
        """Have topics that a client asked for created with the broker's own settings, without waiting."""
        self._topics.create_missing(map(self._new_topic, names))

    def _new_topic(self, name: str) -> TopicToCreate:
        return new_topic(name, self._configs.broker, brokers_expected(self.quorum, self.metadata.state))

    def listens_on(self, ports: Mapping[str, int]) -> None:
        """Fill in the ports that the system chose, by listener name; must be called before this node registers."""
        self.registration = self.registration._replace(
            endpoints=registered_endpoints(self.registration.endpoints, ports)
        )
        self.broker = self.broker._replace(endpoints=registered_endpoints(self.broker.endpoints, ports))

    def lifecycle(self, partitions: Partitions) -> Lifecycle:
        """Return the object that registers this node as a broker, which holds `partitions`, and sends its
        heartbeats.
        """
        return Lifecycle(self._loop, self._configs, partitions, self.quorum, self.metadata, self.link, self.broker)

    async def register_controller(self) -> None:
        """Register this controller; return when this node's own metadata shows it."""
        await register_controller(self.link, self.metadata, self.registration)

    def start_alone(self) -> None:
        """Start a sole node: when this returns, it leads and has registered itself as controller and broker."""
        self.quorum.start()
        for command in (
            RegisterController(self.registration),
            StartBroker(self.broker._replace(epoch=BrokerEpoch(self.quorum.end_offset)), self.clean),
        ):
            reply = self.controller.submit(command).taken()
            if isinstance(reply, ApiError):
                raise self.quorum.failure or reply

    def close(self) -> None:
        self.controller.close()
        self.snapshots.close()
        self._store.close()


def _open_store(home: DataDirectory, settings: Config, now_ms: Callable[[], int]) -> MetadataStore:
    config = StoreConfig(
        segment_bytes=settings[METADATA_LOG_SEGMENT_BYTES],
        segment_ms=settings[METADATA_LOG_SEGMENT_MS],
        bytes_between_snapshots=settings[METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS],
    )
    return MetadataStore.open(home.disk, config, now_ms=now_ms, clean=home.clean)


def _bootstrap(disk: Disk) -> tuple[MetadataEntry, ...]:
    """Return the records that the formatter, Ottla's or Kafka's, prepared for the beginning of an empty journal."""
    try:
        data = read_all(disk.open(BOOTSTRAP))
    except FileNotFoundError:
        return tuple(feature(name, level) for name, level in DEFAULT_LEVELS.items())
    items = journal.snapshot_items(data, BOOTSTRAP)
    return tuple(item.content for item in items if isinstance(item.content, MetadataEntry))
