"""Formatting data directories by hand, as `kafka-storage format` does: for quorums whose voters live in the journal.

A quorum of fixed voters needs none of this: a fresh directory is formatted when it is met (see `identity`). With
voters in the journal (kraft.version 1, KIP-853) somebody has to say who votes first: that is the snapshot before the
first record, `00000000000000000000-0000000000.checkpoint`, on each of the first voters.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.cluster.journal import Control, snapshot_batches
from ottla.cluster.snapshot_files import SnapshotFiles
from ottla.cluster.store import DIRECTORY
from ottla.log.checkpoint import read_meta_properties
from ottla.log.disk import Directory, Disk
from ottla.model.ids import BitSource, random_uuid, uuid_bytes
from ottla.raft.port import Place
from ottla.raft.voters import Endpoint, Voter, VoterSet, encode_kraft_version
from ottla.records.control import ControlType
from ottla.server.identity import IdentityError, write_bootstrap, write_identity


def parse_controllers(text: str, listener: str) -> VoterSet:
    """`id@host:port:directory,...`; ValueError if it is not of that form."""
    voters = []
    for entry in text.split(","):
        voter_id, at, rest = entry.strip().partition("@")
        address, _, directory = rest.rpartition(":")
        host, _, port = address.rpartition(":")
        if not (at and host and port.isdecimal() and voter_id.isdecimal()):
            raise ValueError(f"{entry.strip()!r} is not of the form ID@HOST:PORT:DIRECTORY")
        end = Endpoint(listener, host.strip("[]"), int(port))
        voters.append(Voter(int(voter_id), uuid_bytes(directory), (end,)))
    return VoterSet(voters)


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
) -> list[str]:
    """Format each directory that is not yet; their paths. `home` is where the metadata goes, `voters` the first ones of
    a quorum that keeps them in its journal."""
    fresh = [(path, disk) for path, disk in disks if read_meta_properties(disk) is None]
    done = [path for path, disk in disks if (path, disk) not in fresh]
    if done and not ignore_formatted:
        raise IdentityError(f"{', '.join(done)}: formatted already")
    for path, disk in fresh:
        disk.make_directory("")
        directory_id = random_uuid(rng)
        if path == home:
            write_bootstrap(disk, now_ms)
            if voters is not None and node_id in voters:
                directory_id = voters[node_id].directory
                _write_voters(disk, voters, now_ms)
        write_identity(disk, node_id, cluster_id, directory_id)
    return [path for path, _ in fresh]


def _write_voters(disk: Disk, voters: VoterSet, now_ms: int) -> None:
    disk.make_directory(DIRECTORY)
    quorum = [
        Control(ControlType.KRAFT_VERSION, encode_kraft_version(1)),
        Control(ControlType.KRAFT_VOTERS, voters.encode()),
    ]
    pieces = snapshot_batches([], epoch=0, last_timestamp=0, now_ms=now_ms, quorum=quorum)
    SnapshotFiles(Directory(disk, DIRECTORY)).write(Place(0, 0), pieces)
