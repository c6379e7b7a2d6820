"""Whether a directory may become a data directory: it is empty, or what lies there is ours.

Kafka formats whatever it is told to, and refuses to start where a directory has a name it does not understand. Here a
node formats by itself, so it must not do that to the folder of somebody else whom a wrong path leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ottla.cluster.store import DIRECTORY as JOURNAL
from ottla.cluster.store import DOUBT
from ottla.log.checkpoint import META_PROPERTIES
from ottla.log.disk import Disk, StorageError
from ottla.log.ours import foreign_entries
from ottla.server.identity import BOOTSTRAP, IdentityError

# `.lock` and the probe: see `server/system.py`; the reserve: `server/reserve.py`. File systems make `lost+found`
# themselves.
_KNOWN = (
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
    """IdentityError for the first that was not formatted and holds something else; nothing is changed."""
    for path in paths:
        try:
            _check(path, make_disk(path))
        except StorageError:
            continue  # whoever uses it will say why that cannot be


def _check(path: str, disk: Disk) -> None:
    if disk.exists(META_PROPERTIES):
        return
    foreign = foreign_entries(disk, _KNOWN)
    if foreign:
        raise IdentityError(
            f"{path} is no data directory: it has no {META_PROPERTIES} and holds {shown(foreign)}",
            "choose an empty directory (log.dirs, or --data), or move away what lies there",
        )


def shown(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
