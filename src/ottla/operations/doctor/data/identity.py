"""Checks whose directory it is, and whether all of it belongs to its node."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.store import DIRECTORY as JOURNAL
from ottla.cluster.store import DOUBT
from ottla.log.files.checkpoint import META_PROPERTIES, read_meta_properties
from ottla.log.files.names import STRAY_DIRECTORY
from ottla.log.recovery.ownership import foreign_entries
from ottla.operations.doctor.check import HealthLevel, Symptom, some
from ottla.operations.doctor.data.directory_seen import DATA, DirectorySeen
from ottla.operations.security.findings import data_finding
from ottla.operations.security.sources import rights_of_others
from ottla.server.ports.os_disk import OsDisk
from ottla.server.storage.identity import BOOTSTRAP, RESTORE, IdentityError
from ottla.server.storage.vacancy import KNOWN_ENTRIES, check_vacant

_IDS = ("cluster.id", "node.id")
_OWNERS_LOOKED_AT = 10_000


@DATA.check(
    "meta-missing",
    "No meta.properties beside data",
    why="The node refuses the directory: nothing says whose data it is.",
    do=RESTORE,
    level=HealthLevel.PROBLEM,
)
def meta_missing(directory: DirectorySeen) -> Iterator[Symptom]:
    try:
        check_vacant([str(directory.path)], OsDisk)
    except IdentityError as error:
        yield Symptom(str(error), do=error.hint)


@DATA.check(
    "meta-other",
    "meta.properties is damaged, or of another node or cluster",
    why="The node refuses to start: it would mix the data of two nodes.",
    do=f"mount the right disk, or {RESTORE}",
    level=HealthLevel.PROBLEM,
)
def meta_other(directory: DirectorySeen) -> Iterator[Symptom]:
    own = read_meta_properties(directory.disk)
    if own is None:
        return
    for name in _IDS:
        if not own.get(name) and not (name == "node.id" and own.get("broker.id")):
            yield Symptom(f"{META_PROPERTIES} does not say {name}")
    wanted = directory.node_id
    if wanted is not None and own.get("node.id", str(wanted)) != str(wanted):
        yield Symptom(f"the directory belongs to node {own['node.id']}, and the configuration is of node {wanted}")
    for path in directory.all:
        other = (path != directory.path and read_meta_properties(OsDisk(str(path)))) or {}
        for name in _IDS:
            if own.get(name) and other.get(name) and own[name] != other[name]:
                yield Symptom(f"{name} is {own[name]}, and in {path} it is {other[name]}")


@DATA.check(
    "metadata-missing",
    "The metadata that belongs to the data is missing",
    why="Without its metadata log the node does not know what its partitions are, and does not start.",
    do="give all directories of log.dirs with --data; if a disk is not mounted, mount it",
    level=HealthLevel.PROBLEM,
)
def metadata_missing(directory: DirectorySeen) -> Iterator[Symptom]:
    is_formatted = read_meta_properties(directory.disk) is not None
    if is_formatted and not any((each / sign).exists() for each in directory.all for sign in (JOURNAL, BOOTSTRAP)):
        yield Symptom(f"neither {JOURNAL} nor {BOOTSTRAP} is in {some(directory.all)}")


@DATA.check(
    "voter-in-doubt",
    "The node started with an empty disk and does not vote yet",
    why="It may have lost votes and records that it had acknowledged (docs/quorum.md); until it has caught up, one "
    "controller less counts.",
    do="start it, and stop no other controller before `ottla cluster quorum` shows it without doubt",
)
def voter_in_doubt(directory: DirectorySeen) -> Iterator[Symptom]:
    if (directory.path / DOUBT).exists():
        yield Symptom(f"there is a file {DOUBT}")


@DATA.check(
    "owner-foreign",
    "Files that belong to another user",
    why="A node of the directory's owner cannot write them: their partitions answer KAFKA_STORAGE_ERROR. It happens "
    "when a node was started once as root.",
    do="chown -R OWNER DIR",
    level=HealthLevel.PROBLEM,
)
def owner_foreign(directory: DirectorySeen) -> Iterator[Symptom]:
    owner = directory.path.stat().st_uid
    foreign = []
    for number, each in enumerate(directory.path.rglob("*")):
        if number >= _OWNERS_LOOKED_AT:
            break
        if each.lstat().st_uid != owner:
            foreign.append(each.relative_to(directory.path))
    if foreign:
        yield Symptom(f"the directory is of user {owner}, not so {some(foreign)}")


@DATA.check(
    "directory-readable",
    "Others can read the data",
    why="Who has the files needs no login.",
    do="chmod 700 DIR",
)
def directory_readable(directory: DirectorySeen) -> Iterator[Symptom]:
    for found in data_finding(str(directory.path), rights_of_others(directory.path)):
        yield Symptom(found.what, why=found.why, do=found.fix)


@DATA.check(
    "entries-foreign",
    "Something in the directory is not the node's",
    why="A node leaves it alone, and nobody else expects it here; it takes room, and may be meant for another place.",
    do="move it elsewhere",
)
def entries_foreign(directory: DirectorySeen) -> Iterator[Symptom]:
    if read_meta_properties(directory.disk) is not None:
        foreign = foreign_entries(directory.disk, KNOWN_ENTRIES)
        if foreign:
            yield Symptom(f"it holds {some(foreign)}")


@DATA.check(
    "partitions-stray",
    "Partitions that were set aside",
    why="A directory had the name of a partition and the id of another topic: it is never served and never deleted.",
    do="`ottla log dump DIR/NAME` shows what is in it; delete it if nobody misses it",
)
def partitions_stray(directory: DirectorySeen) -> Iterator[Symptom]:
    stray = [each for each in directory.partitions() if each.endswith(STRAY_DIRECTORY)]
    if stray:
        yield Symptom(f"it holds {some(stray)}")
