"""MetadataHost: runs the cluster machine on this node's metadata journal.

On a single node every command is decided, written, synced, applied and answered in one call. What changed goes to
`on_change` before the reply, so whoever is told that a topic exists can use it at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from ottla.cluster import journal
from ottla.cluster.commands.allocate_producer_ids import AllocateProducerIds, Block
from ottla.cluster.commands.start import Activate, RegisterController, StartBroker
from ottla.cluster.entities import Broker, Change, Controller, PartitionsAdded
from ottla.cluster.entry import Entry
from ottla.cluster.features import DEFAULT_LEVELS, SUPPORTED_FEATURES
from ottla.cluster.machine import ClusterMachine, Command
from ottla.cluster.snapshot import feature, snapshot
from ottla.cluster.state import ClusterState
from ottla.cluster.store import Store, StoreConfig
from ottla.cluster.view import View
from ottla.log.disk import Disk, StorageError, read_all
from ottla.machine.runner import Runner
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import random_uuid
from ottla.server.configs import Configs
from ottla.server.directories import DataDirectory
from ottla.server.endpoints import broker_endpoints, controller_endpoints
from ottla.server.identity import BOOTSTRAP, Identity, identify

if TYPE_CHECKING:
    from ottla.server.node import Ports

log = logging.getLogger(__name__)


class MetadataHost:
    """Use `MetadataHost.open`. `state` may be read at any time; it changes only inside `submit`."""

    def __init__(self, identity: Identity, store: Store, configs: Configs, now_ms: Callable[[], int], rng: Any) -> None:
        self.node_id = identity.node_id
        self.cluster_id = identity.cluster_id
        self.directory_ids = identity.directory_ids
        self.state = ClusterState()
        self.on_change: Callable[[list[Change]], None] = _ignore
        self._store = store
        self._now_ms = now_ms
        self._rng = rng
        self._sync = True
        self._producer_ids = Block(0, 0)
        self._snapshot_interval_ms: int = configs.broker.get("metadata.log.max.snapshot.interval.ms")
        self._snapshot_at_ms = now_ms() + self._snapshot_interval_ms
        view = View(self.state, identity.node_id, lambda: configs.node, rng)
        self._runner: Runner[Command, Entry] = Runner(ClusterMachine(view), self._append, self._changed)

    @classmethod
    def open(cls, directories: Sequence[DataDirectory], configs: Configs, ports: Ports) -> MetadataHost:
        """Format what is fresh, read the journal, take the lead, register this broker."""
        settings = configs.broker
        metadata_path = settings.get("metadata.log.dir") or configs.log_dirs()[0]
        identity = identify(directories, configs.node_id, metadata_path, ports.now_ms(), ports.rng)
        home = identity.home
        store_config = StoreConfig(
            segment_bytes=settings.get("metadata.log.segment.bytes"),
            segment_ms=settings.get("metadata.log.segment.ms"),
            bytes_between_snapshots=settings.get("metadata.log.max.record.bytes.between.snapshots"),
        )
        store = Store.open(home.disk, store_config, now_ms=ports.now_ms(), clean=home.clean)
        host = cls(identity, store, configs, ports.now_ms, ports.rng)
        store.replay(host.state.apply, ports.now_ms())
        host._start(configs, _bootstrap(home.disk), clean=all(directory.clean for directory in directories))
        return host

    # --- for handlers

    def submit(self, command: Command) -> Any:
        """Run a command; its reply, or ApiError if it was refused as a whole or could not be written."""
        replies: list[Any] = []
        try:
            self._runner.submit(command, self._now_ms(), replies.append)
        except StorageError as error:
            log.error("the metadata log cannot be written: %s", error)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._runner.commit(self._store.end_offset)
        if self._store.snapshot_due:
            self._write_snapshot()
        (reply,) = replies
        if isinstance(reply, ApiError):
            raise reply
        return reply

    def next_producer_id(self) -> int:
        """An id that no producer ever had; blocks of them are allocated through the journal."""
        first, size = self._producer_ids
        if size == 0:
            broker = self.state.brokers[self.node_id]
            first, size = self.submit(AllocateProducerIds(broker.id, broker.epoch))
        self._producer_ids = Block(first + 1, size - 1)
        return first

    @property
    def epoch(self) -> int:
        """Of the quorum's leader, which is this node."""
        return self._store.epoch

    @property
    def end_offset(self) -> int:
        return self._store.end_offset

    @property
    def features_epoch(self) -> int:
        """Clients keep the features with the highest epoch: the offset up to which they are known."""
        return self._store.end_offset - 1

    # --- for the node

    def upkeep(self, now_ms: int) -> None:
        """By the clock: a snapshot now and then, so that a start never has much to read."""
        if self._snapshot_interval_ms and now_ms >= self._snapshot_at_ms:
            self._snapshot_at_ms = now_ms + self._snapshot_interval_ms
            if self._store.changed:
                self._write_snapshot()

    def close(self) -> None:
        self._store.close()

    # --- inside

    def _start(self, configs: Configs, bootstrap: tuple[Entry, ...], *, clean: bool) -> None:
        """Everything a start writes is synced once, at its end."""
        now_ms = self._now_ms()
        begin = self._store.end_offset
        self._sync = False
        features = tuple(SUPPORTED_FEATURES.items())
        self._store.lead(self.node_id, now_ms)
        self.submit(Activate(bootstrap))
        controller = Controller(self.node_id, random_uuid(self._rng), controller_endpoints(configs.broker), features)
        self.submit(RegisterController(controller))
        broker = Broker(
            id=self.node_id,
            epoch=self._store.end_offset,
            incarnation_id=random_uuid(self._rng),
            endpoints=broker_endpoints(configs.broker),
            features=features,
            rack=configs.broker.get("broker.rack"),
            fenced=True,
            directories=self.directory_ids,
            cordoned=(),
        )
        self.submit(StartBroker(broker, clean))
        self._sync = True
        self._store.sync(begin, now_ms)

    def _append(self, entries: Sequence[Entry]) -> int:
        return self._store.append(entries, self._now_ms(), sync=self._sync)

    def _changed(self, changes: list[Change]) -> None:
        self.on_change(_merged(changes))

    def _write_snapshot(self) -> None:
        try:
            self._store.write_snapshot(snapshot(self.state), self._now_ms())
        except StorageError as error:  # the journal itself is complete; the next change tries again
            log.error("no metadata snapshot could be written: %s", error)


def _bootstrap(disk: Disk) -> tuple[Entry, ...]:
    """What the formatter, ours or Kafka's, wants an empty journal to begin with."""
    try:
        data = read_all(disk.open(BOOTSTRAP))
    except FileNotFoundError:
        return tuple(feature(name, level) for name, level in DEFAULT_LEVELS.items())
    items = journal.snapshot_items(data, BOOTSTRAP)
    return tuple(item.content for item in items if isinstance(item.content, Entry))


def _merged(changes: list[Change]) -> list[Change]:
    """Partitions that were added one by one, as one change per topic."""
    merged: list[Change] = []
    for same, group in groupby(changes, key=lambda change: change.topic if type(change) is PartitionsAdded else None):
        if same is None:
            merged.extend(group)
        else:
            added = [partition for change in group for partition in cast(PartitionsAdded, change).partitions]
            merged.append(PartitionsAdded(same, tuple(added)))
    return merged


def _ignore(_: list[Change]) -> None:
    """Until the node is listening."""
