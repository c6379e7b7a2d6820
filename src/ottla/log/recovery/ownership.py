"""Which entries of a data directory are provably ours: by names of files that only Kafka and Ottla write.

Rules:
- A directory is a partition's if it contains a partition's file. Its name alone, `photos-2024`, proves nothing.
- An empty directory whose name has the unique id of a deletion or a move was left by an interrupted one.
- Entries that are not ours are neither renamed nor removed, wherever they lie.
"""

from __future__ import annotations

import re

from ottla.log.files import checkpoint
from ottla.log.files.disk import Directory, Disk, StorageError
from ottla.log.files.names import (
    CLEANED,
    DELETE_DIRECTORY,
    DELETED,
    FUTURE_DIRECTORY,
    STRAY_DIRECTORY,
    SWAP,
    TEMPORARY,
    parse_directory,
    parse_name,
)

_SUFFIXES = ("", DELETED, CLEANED, SWAP, TEMPORARY)
_IN_PARTITIONS = (checkpoint.PARTITION_METADATA, checkpoint.LEADER_EPOCHS, checkpoint.BEGUN_ANEW)
_IN_ROOT = (
    checkpoint.RECOVERY_POINTS,
    checkpoint.LOG_STARTS,
    checkpoint.HIGH_WATERMARKS,
    checkpoint.CLEANER_OFFSETS,
    checkpoint.META_PROPERTIES,
    checkpoint.CLEAN_SHUTDOWN,
)
_ON_THEIR_WAY = (DELETE_DIRECTORY, FUTURE_DIRECTORY, STRAY_DIRECTORY)
_UNIQUE = re.compile(rf".+\.[0-9a-f]{{32}}({DELETE_DIRECTORY}|{FUTURE_DIRECTORY})")


def is_partition_file(name: str) -> bool:
    """Whether a partition's directory may hold a file of this name."""
    if name.removesuffix(TEMPORARY) in _IN_PARTITIONS:
        return True
    found = parse_name(name)
    return found is not None and found[2] in _SUFFIXES


def is_root_file(name: str) -> bool:
    """Whether this is the name of a file beside the partitions, in the root of a data directory."""
    return name.removesuffix(TEMPORARY) in _IN_ROOT


def is_partition(home: Directory) -> bool:
    """Whether a directory holds a partition's files, or is empty as an interrupted removal or move leaves it."""
    try:
        names = home.list()
    except StorageError:  # it is a file, or a directory that we may not read
        return False
    if not names:
        return _UNIQUE.fullmatch(home.path) is not None
    return any(map(is_partition_file, names))


def foreign_entries(disk: Disk, others: tuple[str, ...]) -> list[str]:
    """Return entries in the root of a data directory that are not ours; `others` are names that the caller knows."""
    return [name for name in disk.list("") if not (name in others or is_root_file(name) or is_home(disk, name))]


def is_trace_of_use(disk: Disk, name: str) -> bool:
    """Whether this entry of the root shows that a node has used the data directory, and not only formatted it."""
    return is_home(disk, name) or (is_root_file(name) and not name.startswith(checkpoint.META_PROPERTIES))


def is_home(disk: Disk, name: str) -> bool:
    """Whether an entry of the root is the directory of a partition, also of one that is being deleted or moved."""
    plain = name.rpartition(".")[0] if name.endswith(_ON_THEIR_WAY) else name
    return parse_directory(plain) is not None and is_partition(Directory(disk, name))
