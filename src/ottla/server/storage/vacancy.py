"""The check that a directory may become a data directory: it is empty, or holds only the rest of an interrupted
formatting.

Kafka formats any directory it is told to, and refuses to start if a directory has an entry whose name it does not
understand. Here a node formats by itself, so it must not format a foreign folder because of a wrong path; nor a data
directory that has lost its `meta.properties`, since its metadata would not match the new cluster id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from ottla.cluster.snapshot_files import is_first_snapshot
from ottla.cluster.store import DIRECTORY as JOURNAL
from ottla.cluster.store import DOUBT
from ottla.log.files.checkpoint import META_PROPERTIES
from ottla.log.files.disk import Disk, StorageError
from ottla.log.recovery.ownership import foreign_entries, is_trace_of_use
from ottla.server.storage.identity import BOOTSTRAP, RESTORE, IdentityError

# `.lock` and the probe: see `server/ports/system.py`; the reserve: `server/ports/disk_reserve.py`. `lost+found` is
# created by file systems.
KNOWN_ENTRIES = (
    ".lock",
    ".ottla-probe",
    ".ottla-reserve",
    "lost+found",
    JOURNAL,
    BOOTSTRAP,
    f"{BOOTSTRAP}.tmp",
    DOUBT,
    f"{DOUBT}.tmp",
)
_SHOWN = 3


def check_vacant(paths: Iterable[str], make_disk: Callable[[str], Disk]) -> None:
    """Raise IdentityError for the first path that has no `meta.properties` and is not fresh; change nothing."""
    for path in paths:
        try:
            _check(path, make_disk(path))
        except StorageError:
            continue  # the later use of the directory reports the error


def _check(path: str, disk: Disk) -> None:
    if disk.exists(META_PROPERTIES):
        return
    foreign = foreign_entries(disk, KNOWN_ENTRIES)
    if foreign:
        raise IdentityError(
            f"{path} is no data directory: it has no {META_PROPERTIES} and holds {shown(foreign)}",
            "choose an empty directory (log.dirs, or --data), or move away what lies there",
        )
    used = [name for name in disk.list("") if _was_used(disk, name)]
    if used:
        raise IdentityError(
            f"{path} has lost its {META_PROPERTIES}: it is not fresh, it holds {shown(used)}",
            RESTORE,
        )


def is_fresh(paths: Iterable[str], make_disk: Callable[[str], Disk]) -> bool:
    """Return whether none of the directories has metadata of an earlier run."""
    for path in paths:
        with suppress(StorageError):
            disk = make_disk(path)
            if disk.exists(JOURNAL) and _was_used(disk, JOURNAL):
                return False
    return True


def _was_used(disk: Disk, name: str) -> bool:
    if name == JOURNAL:
        return not all(map(is_first_snapshot, disk.list(JOURNAL)))
    return is_trace_of_use(disk, name)


def shown(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
