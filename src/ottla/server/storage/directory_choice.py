"""The choice of the data directory in which a partition lies.

Existing files decide: a partition is served from the directory where it was found. A new partition goes to the
directory that the metadata assigns, or, without an assignment, to the working, not cordoned directory with the fewest
partitions. A partition that existed before and is not found while a directory is missing may lie in that directory: it
is not created anew as an empty one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from ottla.cluster.entities import PartitionState
from ottla.log.files import checkpoint
from ottla.log.files.disk import Directory, StorageError
from ottla.log.recovery.ownership import is_partition
from ottla.model.ids import NO_ID, TopicPartition
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.removal import set_aside

log = logging.getLogger(__name__)

# Ids up to this one are reserved: unassigned, lost, and those used by migrations.
_LAST_RESERVED = 100


def assigned_directory(state: PartitionState, node_id: int) -> bytes | None:
    """Return the id of the directory that the metadata assigns to this node's replica, or None without an
    assignment.
    """
    for replica, directory_id in zip(state.replicas, state.directories, strict=False):
        if replica == node_id:
            return directory_id if int.from_bytes(directory_id, "big") > _LAST_RESERVED else None
    return None


def choose_directory(
    directories: Sequence[DataDirectory],
    name: TopicPartition,
    topic_id: bytes,
    assigned: bytes | None,
    *,
    existing: bool,
    all_usable: bool,
    cordoned: Collection[bytes] = (),
) -> DataDirectory | None:
    """Return the directory of a partition's files; None if they may lie in a directory that cannot be used now."""
    if len(directories) == 1 and all_usable:
        return directories[0]
    if existing:
        found = [directory for directory in directories if name in directory.found]
        # A directory may still hold files of an older topic of that name, which could not be removed.
        own = [each for each in found if identity_of(Directory(each.disk, str(name))) == topic_id]
        if found or not all_usable:
            return next((each for each in own if each.id == assigned), next(iter(own or found), None))
    for directory in directories:
        if assigned is not None and directory.id == assigned:
            return directory
    working = [directory for directory in directories if directory.failure is None] or directories
    # The controller places no replica on a broker whose directories are all cordoned; if it places one nevertheless,
    # the replica needs a directory.
    working = [directory for directory in working if directory.id not in cordoned] or working
    return min(working, key=lambda directory: len(directory.partitions))


def settle_futures(directories: Sequence[DataDirectory]) -> None:
    """Finish a move between directories that a crash interrupted between its last two renames."""
    for directory in directories:
        for name, path in tuple(directory.futures.items()):
            if not any(name in each.found or name in each.partitions for each in directories):
                try:
                    directory.disk.rename(path, str(name))
                except StorageError as error:
                    directory.fail(error)
                    continue
                del directory.futures[name]
                directory.found[name] = None


def set_stray_aside(directory: DataDirectory, home: Directory) -> bool:
    """Rename the directory of a partition that was deleted or reassigned while this node was away.

    Return whether the directory has a topic id, so that it certainly is stray and may be removed. A directory that is
    not a partition's is left alone.
    """
    if not is_partition(home):
        log.warning("%s/%s is not the directory of a partition and is left alone", directory.path, home.path)
        return False
    topic_id = identity_of(home)
    try:
        set_aside(home, topic_id or NO_ID)
    except StorageError as error:
        log.warning("%s", error)
        return False
    return topic_id is not None


def identity_of(home: Directory) -> bytes | None:
    """Return the topic id stored in a partition's directory; None if there is none, or if a crash left the
    file empty.
    """
    try:
        return checkpoint.read_partition_metadata(home)
    except checkpoint.CheckpointError:
        return None
