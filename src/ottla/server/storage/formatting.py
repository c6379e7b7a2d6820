"""Formatting data directories by hand, as `kafka-storage format` does: for quorums whose voters are stored in the
journal.

A quorum of fixed voters does not need this: a node formats a fresh directory by itself (see `identity`); an operator
who formats it by hand vouches for it. With voters in the journal (kraft.version 1, KIP-853) the first voters have to be
given: they are in the snapshot before the first record, `00000000000000000000-0000000000.checkpoint`, on each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.cluster.commands.alter_scram_credentials import scram_entry, unknown_users_entry
from ottla.cluster.features import (
    DEFAULT_LEVELS,
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SCRAM,
    SUPPORTED_FEATURES,
    levels_of,
    metadata_version_of,
    missing_dependency,
)
from ottla.cluster.journal import Control, snapshot_batches
from ottla.cluster.snapshot_files import SnapshotFiles
from ottla.cluster.store import DIRECTORY, DOUBT
from ottla.log.files.checkpoint import read_meta_properties
from ottla.log.files.disk import Directory, Disk
from ottla.model.ids import FIRST_LEADER_EPOCH, BitSource, random_uuid, uuid_bytes
from ottla.raft.journal import EMPTY_LOG
from ottla.raft.voters import QuorumEndpoint, Voter, VoterSet, encode_kraft_version
from ottla.records.control import ControlType
from ottla.security.sasl.scram.arguments import ScramUser
from ottla.server.storage.identity import IdentityError, write_bootstrap, write_identity
from ottla.server.storage.vacancy import check_vacant


def parse_controllers(text: str, listener: str) -> VoterSet:
    """Parse `id@host:port:directory,...`; raise ValueError if the text is not of that form."""
    voters = []
    for entry in text.split(","):
        voter_id, at, rest = entry.strip().partition("@")
        address, _, directory = rest.rpartition(":")
        host, _, port = address.rpartition(":")
        if not (at and host and port.isdecimal() and voter_id.isdecimal()):
            raise ValueError(f"{entry.strip()!r} is not of the form ID@HOST:PORT:DIRECTORY")
        end = QuorumEndpoint(listener, host.strip("[]"), int(port))
        voters.append(Voter(int(voter_id), uuid_bytes(directory), (end,)))
    return VoterSet(voters)


def initial_levels(release: str | None, chosen: Sequence[str], *, dynamic: bool) -> dict[str, int]:
    """Return the feature levels of a new cluster: those of a release (else the latest), changed by `name=level` in
    `chosen`.

    `dynamic` means that the voters are stored in the journal: kraft.version is 1. Raise ValueError if levels conflict.
    """
    wanted = dict(map(_name_and_level, chosen))
    if release is not None and METADATA_VERSION in wanted:
        raise ValueError(f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity.")
    unknown = sorted(wanted.keys() - SUPPORTED_FEATURES.keys())
    if unknown:
        known = ", ".join(SUPPORTED_FEATURES)
        raise ValueError(f"Unsupported feature: {unknown[0]}. Supported features are: {known}")
    for name, level in wanted.items():
        if level not in SUPPORTED_FEATURES[name]:
            raise ValueError(f"No feature:{name} with feature level {level}")
    base = metadata_version_of(release) if release else wanted.get(METADATA_VERSION, DEFAULT_LEVELS[METADATA_VERSION])
    kraft = wanted.pop(KRAFT_VERSION, int(dynamic))
    if bool(kraft) != dynamic:
        raise ValueError(
            f"Cannot set {KRAFT_VERSION} to {kraft}: it is 1 where one of --standalone, --initial-controllers or "
            "--no-initial-controllers is used, and 0 with controller.quorum.voters"
        )
    levels = {**levels_of(base), **wanted}
    for name, level in levels.items():
        problem = missing_dependency(name, level, levels)
        if problem is not None:
            raise ValueError(problem)
    return {name: level for name, level in levels.items() if level}


def _name_and_level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals or not level.strip().isdecimal():
        raise ValueError(f"{text!r} is not of the form FEATURE=LEVEL")
    return name.strip(), int(level)


def format_directories(
    disks: Sequence[tuple[str, Disk]],
    home: str,
    *,
    node_id: int,
    cluster_id: str,
    voters: VoterSet | None,
    now_ms: int,
    rng: BitSource,
    ignore_formatted: bool = False,
    levels: Mapping[str, int] = DEFAULT_LEVELS,
    users: Sequence[ScramUser] = (),
) -> list[str]:
    """Format each directory that is not formatted yet; return their paths.

    `home` is the directory of the metadata, `voters` are the first voters of a quorum that stores them in its journal,
    `levels` are the features of a new cluster, and `users` can log in from its first start. Formatting a directory
    again that a node formatted by itself as a voter vouches for it (ADR 0022).
    """
    if users and levels.get(METADATA_VERSION, 0) < SCRAM:
        lowest = METADATA_VERSION_NAMES[SCRAM]
        raise ValueError(f"SCRAM is only supported in {METADATA_VERSION} {lowest} or later.")
    fresh = [(path, disk) for path, disk in disks if read_meta_properties(disk) is None]
    done = [path for path, disk in disks if (path, disk) not in fresh]
    if done and not ignore_formatted:
        if not fresh and voters is None and any(_vouch(disk, cluster_id) for _, disk in disks):
            return done
        raise IdentityError(f"{', '.join(done)}: formatted already")
    check_vacant((path for path, _ in fresh), dict(fresh).__getitem__)
    for path, disk in fresh:
        disk.make_directory("")
        directory_id = random_uuid(rng)
        if path == home:
            secret = [unknown_users_entry(rng)] if users else []
            write_bootstrap(disk, now_ms, levels, [*secret, *(scram_entry(*user) for user in users)])
            if voters is not None and node_id in voters:
                directory_id = voters[node_id].directory
                _write_voters(disk, voters, now_ms)
        write_identity(disk, node_id, cluster_id, directory_id)
    return [path for path, _ in fresh]


def _vouch(disk: Disk, cluster_id: str) -> bool:
    """Remove the mark of doubt: by formatting, the operator states that no data is lost, or that it is lost for good
    (ADR 0022).
    """
    properties = read_meta_properties(disk)
    if not disk.exists(DOUBT) or properties is None or properties.get("cluster.id") != cluster_id:
        return False
    disk.remove(DOUBT)
    disk.sync_directory("")
    return True


def _write_voters(disk: Disk, voters: VoterSet, now_ms: int) -> None:
    disk.make_directory(DIRECTORY)
    quorum = [
        Control(ControlType.KRAFT_VERSION, encode_kraft_version(1)),
        Control(ControlType.KRAFT_VOTERS, voters.encode()),
    ]
    pieces = snapshot_batches([], epoch=FIRST_LEADER_EPOCH, last_timestamp=0, now_ms=now_ms, quorum=quorum)
    SnapshotFiles(Directory(disk, DIRECTORY)).write(EMPTY_LOG, pieces)
