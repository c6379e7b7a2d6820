"""Placing: in which of a node's data directories a partition lies, or shall lie.

Files that are there decide: a partition is served from where it was found. A new one goes where the cluster says, or,
if it says nothing, to the working directory, not cordoned, that holds the fewest. One that existed before and is found
nowhere while a directory is missing may lie there: it is not begun anew and empty.
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

# Ids up to this one do not name a directory: unassigned, lost, and what migrations used.
_LAST_RESERVED = 100


def assigned_directory(state: PartitionState, node_id: int) -> bytes | None:
    """The id of the directory that the cluster believes this node's replica to be in; None if it has no idea."""
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
    """Where its files are or will be; None if they may lie in a directory that cannot be used now."""
    if len(directories) == 1 and all_usable:
        return directories[0]
    if existing:
        found = [directory for directory in directories if name in directory.found]
        # An older topic of that name may have left its files where they could not be removed.
        own = [each for each in found if identity_of(Directory(each.disk, str(name))) == topic_id]
        if found or not all_usable:
            return next((each for each in own if each.id == assigned), next(iter(own or found), None))
    for directory in directories:
        if assigned is not None and directory.id == assigned:
            return directory
    working = [directory for directory in directories if directory.failure is None] or directories
    # The controller places nothing on a broker all of whose directories are cordoned; what it does place must lie
    # somewhere.
    working = [directory for directory in working if directory.id not in cordoned] or working
    return min(working, key=lambda directory: len(directory.partitions))


def settle_futures(directories: Sequence[DataDirectory]) -> None:
    """A move between directories that a crash caught between its last two renames is finished."""
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
    """What the cluster deleted or gave to others while this node was away; whether that is sure, so that it may be
    removed. What is no partition's is left alone."""
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
    """The topic id in a partition's directory; None also when a crash left the file empty: the cluster knows it."""
    try:
        return checkpoint.read_partition_metadata(home)
    except checkpoint.CheckpointError:
        return None
