"""The node's identity: cluster id, node id and directory ids, read from `meta.properties` or given to fresh
directories.

Kafka requires a format tool; here a node formats an empty directory by itself. It never uses a directory of another
node or cluster, and never begins a new journal beside directories that had one elsewhere: a disk that is not mounted
must not look like a new cluster. A voter that is one of several fixed voters and starts with an empty disk records that
nobody vouched for this disk: the voter may have lost an earlier one (ADR 0022).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.features import DEFAULT_LEVELS
from ottla.cluster.journal import snapshot_batches
from ottla.cluster.snapshot import feature
from ottla.cluster.store import DIRECTORY as JOURNAL
from ottla.cluster.store import DOUBT
from ottla.log.files.checkpoint import META_PROPERTIES, read_meta_properties, write_meta_properties
from ottla.log.files.disk import Directory, Disk, replace_file
from ottla.model.ids import FIRST_LEADER_EPOCH, BitSource, random_uuid, uuid_bytes, uuid_text
from ottla.server.storage.directories import DataDirectory

log = logging.getLogger(__name__)

BOOTSTRAP = "bootstrap.checkpoint"
RESTORE = f"restore {META_PROPERTIES} (version=1, node.id and cluster.id as they were), or choose an empty directory"
_VERSION = "1"  # the version of meta.properties since KRaft
_VOTERS_WITH_DOUBT = 3  # with fewer voters, a majority is all of them


class IdentityError(Exception):
    """The data directories do not belong to this node, or not to each other; `hint` tells the operator what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Identity(NamedTuple):
    node_id: int
    cluster_id: str
    directory_ids: tuple[bytes, ...]  # parallel to the data directories
    home: DataDirectory  # the directory of the metadata journal
    home_id: bytes


def identify(
    directories: Sequence[DataDirectory],
    node_id: int,
    metadata_path: str,
    now_ms: int,
    rng: BitSource,
    cluster_id: str | None = None,
    of_voters: Sequence[str] = (),
) -> Identity:
    """Read or write the identity of every data directory.

    Fresh directories of nodes that are configured with the same voters get the same cluster id.
    """
    for directory in directories:
        directory.disk.make_directory("")
    found = [_stored_properties(directory) for directory in directories]
    cluster_id = _agree_on_cluster(found, cluster_id) or _new_cluster(of_voters, rng)
    home = _home(directories, found, metadata_path)
    if all(properties is None for properties in found):
        if len(of_voters) >= _VOTERS_WITH_DOUBT and any(voter.startswith(f"{node_id}@") for voter in of_voters):
            replace_file(Directory(home.disk, ""), DOUBT, b"")
        write_bootstrap(home.disk, now_ms)  # before meta.properties, which says that the directory is complete
    ids = []
    for directory, properties in zip(directories, found, strict=True):
        if properties is None:
            directory_id = random_uuid(rng)
            _format(directory, node_id, cluster_id, directory_id)
        else:
            _check_node(directory, properties, node_id)
            directory_id = _directory_id(directory, properties, rng)
        directory.id = directory_id
        ids.append(directory_id)
    return Identity(node_id, cluster_id, tuple(ids), home, ids[list(directories).index(home)])


def _stored_properties(directory: DataDirectory) -> dict[str, str] | None:
    """Return the stored properties, or None if the directory was never formatted; raise IdentityError if they are
    damaged.
    """
    properties = read_meta_properties(directory.disk)
    if properties is None:
        return None
    missing = [name for name in ("cluster.id", "node.id") if not properties.get(name)]
    if properties.get("broker.id"):  # the name before KRaft
        missing = [name for name in missing if name != "node.id"]
    if missing:
        raise IdentityError(
            f"{directory.path}/{META_PROPERTIES} is damaged: it does not say {' and '.join(missing)}", RESTORE
        )
    if "directory.id" in properties:
        try:
            uuid_bytes(properties["directory.id"])
        except ValueError as error:
            raise IdentityError(f"{directory.path}/{META_PROPERTIES} is damaged: {error}", RESTORE) from None
    return properties


def _home(
    directories: Sequence[DataDirectory], found: Sequence[dict[str, str] | None], metadata_path: str
) -> DataDirectory:
    """Return the directory with the journal; for a new node, the one that the configuration names."""
    for sign in (JOURNAL, BOOTSTRAP):
        for directory in directories:
            if directory.disk.exists(sign):
                return directory
    paths = ", ".join(directory.path for directory in directories)
    if any(properties is not None for properties in found):
        raise IdentityError(f"none of {paths} holds the metadata that belongs to them: is a disk missing?")
    for directory in directories:
        if directory.path == metadata_path:
            return directory
    raise IdentityError(f"the metadata shall lie in {metadata_path}, which is not among {paths}")


def write_bootstrap(
    disk: Disk, now_ms: int, levels: Mapping[str, int] = DEFAULT_LEVELS, more: Iterable[MetadataEntry] = ()
) -> None:
    """Write the first records of a new cluster, in the form of Kafka's formatter: its features, and `more`."""
    entries = [*(feature(name, level) for name, level in levels.items()), *more]
    pieces = snapshot_batches(entries, epoch=FIRST_LEADER_EPOCH, last_timestamp=0, now_ms=now_ms)
    replace_file(Directory(disk, ""), BOOTSTRAP, b"".join(pieces))


def _agree_on_cluster(found: Sequence[dict[str, str] | None], wanted: str | None) -> str | None:
    known = dict.fromkeys(properties["cluster.id"] for properties in found if properties and "cluster.id" in properties)
    if len(known) > 1:
        raise IdentityError(f"the data directories belong to different clusters: {', '.join(known)}")
    stored = next(iter(known), None)
    if wanted and stored and wanted != stored:
        raise IdentityError(f"the data directories belong to cluster {stored}, not to {wanted}")
    return stored or wanted


def _new_cluster(voters: Sequence[str], rng: BitSource) -> str:
    if not voters:
        return uuid_text(random_uuid(rng))
    import hashlib  # a single node does not need it, and should start quickly

    digest = hashlib.sha256(",".join(sorted(voters)).encode()).digest()
    while (text := uuid_text(digest[:16])).startswith("-"):  # command-line tools would take it for an option
        digest = hashlib.sha256(digest).digest()
    return text


def _check_node(directory: DataDirectory, properties: dict[str, str], node_id: int) -> None:
    stored = properties.get("node.id", properties.get("broker.id"))
    if stored is not None and stored != str(node_id):
        raise IdentityError(f"{directory.path} belongs to node {stored}, this is node {node_id}")


def _directory_id(directory: DataDirectory, properties: dict[str, str], rng: BitSource) -> bytes:
    """Return the stored directory id; a directory that an old Kafka formatted has none yet and gets one."""
    if "directory.id" in properties:
        return uuid_bytes(properties["directory.id"])
    directory_id = random_uuid(rng)
    write_meta_properties(directory.disk, {**properties, "directory.id": uuid_text(directory_id)})
    return directory_id


def _format(directory: DataDirectory, node_id: int, cluster_id: str, directory_id: bytes) -> None:
    log.info("formatting %s for node %d of cluster %s", directory.path, node_id, cluster_id)
    write_identity(directory.disk, node_id, cluster_id, directory_id)


def write_identity(disk: Disk, node_id: int, cluster_id: str, directory_id: bytes) -> None:
    """Write `meta.properties`, which marks a directory as formatted for a node of a cluster."""
    write_meta_properties(
        disk,
        {
            "version": _VERSION,
            "cluster.id": cluster_id,
            "node.id": str(node_id),
            "directory.id": uuid_text(directory_id),
        },
    )
