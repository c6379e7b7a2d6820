"""What in a data directory is provably ours: by the names of files that nobody but Kafka and Ottla writes.

Rules:
- A directory is a partition's if a file of a partition lies in it. Its name alone, `photos-2024`, proves nothing.
- An empty directory whose name bears the unique id of a deletion or a move is what an interrupted one left.
- Whatever is not ours is neither renamed nor removed, wherever it lies.
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
    """Whether it is one of the files beside the partitions."""
    return name.removesuffix(TEMPORARY) in _IN_ROOT


def is_partition(home: Directory) -> bool:
    """Whether a partition's files lie there, or nothing but what an interrupted removal or move leaves."""
    try:
        names = home.list()
    except StorageError:  # a file, or nothing that we may look into
        return False
    if not names:
        return _UNIQUE.fullmatch(home.path) is not None
    return any(map(is_partition_file, names))


def foreign_entries(disk: Disk, others: tuple[str, ...]) -> list[str]:
    """What lies in the root of a data directory and is not ours; `others` are names that the caller knows."""
    return [name for name in disk.list("") if not (name in others or is_root_file(name) or is_home(disk, name))]


def is_trace_of_use(disk: Disk, name: str) -> bool:
    """Whether only a node that has used this data directory can have left an entry of its root: formatting does not."""
    return is_home(disk, name) or (is_root_file(name) and not name.startswith(checkpoint.META_PROPERTIES))


def is_home(disk: Disk, name: str) -> bool:
    """Whether an entry of the root is the directory of a partition, or of one on its way in or out."""
    plain = name.rpartition(".")[0] if name.endswith(_ON_THEIR_WAY) else name
    return parse_directory(plain) is not None and is_partition(Directory(disk, name))
