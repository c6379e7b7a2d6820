"""Formatting by hand: the first voters of a quorum that keeps them in its journal; and the memory of elections."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app
from ottla.cluster.election_file import QUORUM_STATE, read_election, write_election
from ottla.cluster.state import JournalError
from ottla.cluster.store import DIRECTORY, Store, StoreConfig
from ottla.log.checkpoint import read_meta_properties
from ottla.log.disk import Directory, read_all
from ottla.model.ids import uuid_text
from ottla.raft.port import Election, ReplicaKey
from ottla.raft.voters import Endpoint, VoterHistory, VoterSet
from ottla.server.formatting import format_directories, parse_controllers
from ottla.server.identity import BOOTSTRAP, IdentityError
from ottla.sim.disk import SimDisk

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
DISK_ID = b"\x07" * 16
CONFIG = StoreConfig(segment_bytes=8 << 20, segment_ms=1 << 40, bytes_between_snapshots=1 << 30)


def controllers() -> VoterSet:
    return parse_controllers(f"1@h:9093:{uuid_text(DISK_ID)}, 2@[::1]:9094:{uuid_text(bytes(15) + b'2')}", "CONTROLLER")


def formatted(disks: list[SimDisk], *, node_id: int = 1, ignore_formatted: bool = False) -> list[str]:
    return format_directories(
        [(f"/{number}", disk) for number, disk in enumerate(disks)],
        "/0",
        node_id=node_id,
        cluster_id=CLUSTER,
        voters=controllers(),
        now_ms=5,
        rng=random.Random(1),
        ignore_formatted=ignore_formatted,
    )


def test_controllers_are_written_as_kafka_wants_them() -> None:
    voters = controllers()
    assert voters[1].directory == DISK_ID
    assert voters[2].endpoints == (Endpoint("CONTROLLER", "::1", 9094),)
    for wrong in ("1@h:9093", "h:9093:x", f"1@h:port:{uuid_text(DISK_ID)}", "1@h:9093:tooshort"):
        with pytest.raises(ValueError, match=r"form|UUID"):
            parse_controllers(wrong, "CONTROLLER")


def test_a_first_voter_has_the_voters_before_its_first_record() -> None:
    disk, other = SimDisk(), SimDisk()
    assert formatted([disk, other]) == ["/0", "/1"]
    properties = read_meta_properties(disk)
    assert properties is not None and properties["directory.id"] == uuid_text(DISK_ID)
    assert disk.exists(BOOTSTRAP) and not other.exists(BOOTSTRAP) and not other.exists(DIRECTORY)
    store = Store.open(disk, CONFIG, now_ms=5, clean=False)
    store.load()
    history = VoterHistory(VoterSet())
    history.load(store.quorum_records())
    assert history.latest == controllers() and history.kraft_version == 1 and history.from_bootstrap


def test_who_is_not_among_the_first_voters_gets_none() -> None:
    disk = SimDisk()
    formatted([disk], node_id=3)
    assert read_meta_properties(disk) is not None and not disk.exists(DIRECTORY)


def test_what_is_formatted_stays() -> None:
    disk, late = SimDisk(), SimDisk()
    formatted([disk])
    before = read_meta_properties(disk)
    with pytest.raises(IdentityError, match="formatted already"):
        formatted([disk, late])
    assert formatted([disk, late], ignore_formatted=True) == ["/1"]
    assert read_meta_properties(disk) == before


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_elections_are_remembered_in_kafkas_form(kraft_version: int) -> None:
    directory = Directory(SimDisk(), "d")
    directory.disk.make_directory("d")
    assert read_election(directory) == Election()
    election = Election(7, -1, ReplicaKey(2, DISK_ID if kraft_version else bytes(16)))
    write_election(directory, election, [1, 2], kraft_version)
    assert read_election(directory) == election
    stored = json.loads(read_all(directory.open(QUORUM_STATE)))
    assert stored["data_version"] == kraft_version and ("currentVoters" in stored) == (kraft_version == 0)
    directory.open(QUORUM_STATE).truncate(5)
    with pytest.raises(JournalError, match="damaged"):
        read_election(directory)


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=controller\nnode.id=5\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://127.0.0.1:9093\ncontroller.quorum.bootstrap.servers=127.0.0.1:9093\n"
        f"log.dirs={tmp_path / 'data'}\n"
    )
    run = CliRunner().invoke
    base = ["format", str(path), "--cluster-id"]
    assert "say --standalone" in run(app, [*base, CLUSTER]).output
    assert "UUID" in run(app, [*base, "short", "--standalone"]).output
    assert "exclude each other" in run(app, [*base, CLUSTER, "--standalone", "--no-initial-controllers"]).output
    done = run(app, [*base, CLUSTER, "--standalone"])
    assert done.exit_code == 0 and CLUSTER in done.output
    assert run(app, [*base, CLUSTER, "--standalone"]).exit_code == 1
    assert (tmp_path / "data" / DIRECTORY / f"{0:020d}-{0:010d}.checkpoint").exists()
