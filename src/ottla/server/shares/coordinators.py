"""The share coordinators: machines on `__share_group_state`, which store the state of share partitions."""

from __future__ import annotations

import logging

from ottla.log.files.disk import StorageError
from ottla.machine.keyed import types_of
from ottla.model.errors import ApiError
from ottla.model.names import SHARE_STATE_TOPIC
from ottla.model.settings.share import SHARE_COORDINATOR_WRITE_TIMEOUT_MS
from ottla.replica.partition import Partition
from ottla.server.coordination.host import Host
from ottla.server.coordination.hosts import Coordinators
from ottla.server.coordination.runtime import CoordinatorRuntime
from ottla.server.settings.configs import Configs
from ottla.server.storage.storage import Storage
from ottla.shares.state.machine import SharesMachine
from ottla.shares.state.upkeep import PruneBelow
from ottla.shares.state.view import SharesState, ShareStatesView
from ottla.wire.journal import share_state

log = logging.getLogger(__name__)

ShareCoordinators = Coordinators[ShareStatesView]


def share_coordinators(coordinating: CoordinatorRuntime, configs: Configs) -> ShareCoordinators:
    """Return the machines on `__share_group_state`."""
    runtime, storage, metadata = coordinating.runtime, coordinating.storage, coordinating.metadata

    def partitions_of(topic_id: bytes) -> int:
        topic = metadata.state.topic_by_id.get(topic_id)
        return len(topic.partitions) if topic is not None else 0

    def make(index: int) -> SharesMachine:
        partition = storage.partitions.get(SHARE_STATE_TOPIC, index)
        start = partition.log.log_start_offset if partition is not None else 0
        return SharesMachine(ShareStatesView(SharesState(start), partitions_of, lambda: configs.broker))

    def prune(effect: PruneBelow, host: Host[ShareStatesView]) -> None:
        if effect.offset > host.partition.log.log_start_offset:
            runtime.slices.begin(_prune_below(effect.offset, host.partition, storage))

    made: ShareCoordinators = coordinating.coordinators(
        SHARE_STATE_TOPIC,
        types_of(share_state),
        make,
        lambda: configs.broker[SHARE_COORDINATOR_WRITE_TIMEOUT_MS],
    )
    made.on_effect(PruneBelow, prune)
    return made


async def _prune_below(offset: int, partition: Partition, storage: Storage) -> None:
    try:
        start = partition.deletion_point(offset)
        # Checkpointed first: a log start must not go back after a crash.
        await storage.checkpoints.remember_log_starts({partition: start})
        if storage.partitions.holds(partition):
            partition.delete_records(start)
    except ApiError as error:
        log.warning("%s is not pruned now: %s", partition.name, error)
    except StorageError as error:
        storage.partitions.storage_failed(partition, error)
