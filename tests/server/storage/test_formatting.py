"""Formatting by hand: the first voters of a quorum that keeps them in its journal; and the memory of elections."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ottla.cli.app import app
from ottla.cluster.election_file import QUORUM_STATE, read_election, write_election
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.features import DEFAULT_LEVELS, ELR_VERSION
from ottla.cluster.journal import snapshot_items
from ottla.cluster.state import JournalError
from ottla.cluster.store import DIRECTORY, DOUBT, MetadataStore, StoreConfig
from ottla.log.files.checkpoint import read_meta_properties
from ottla.log.files.disk import Directory, read_all
from ottla.model.ids import uuid_text
from ottla.raft.journal import ElectionState, ReplicaKey
from ottla.raft.voters import QuorumEndpoint, VoterHistory, VoterSet
from ottla.security.sasl.scram.arguments import parse_scram_user
from ottla.server.storage.directories import DataDirectory
from ottla.server.storage.formatting import format_directories, initial_levels, parse_controllers
from ottla.server.storage.identity import BOOTSTRAP, IdentityError, identify
from ottla.sim.world.disk import Crash, SimDisk
from ottla.wire.journal.cluster_metadata import FeatureLevelRecord, UserScramCredentialRecord

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
    assert voters[2].endpoints == (QuorumEndpoint("CONTROLLER", "::1", 9094),)
    for wrong in ("1@h:9093", "h:9093:x", f"1@h:port:{uuid_text(DISK_ID)}", "1@h:9093:tooshort"):
        with pytest.raises(ValueError, match=r"form|UUID"):
            parse_controllers(wrong, "CONTROLLER")


def test_a_first_voter_has_the_voters_before_its_first_record() -> None:
    disk, other = SimDisk(), SimDisk()
    assert formatted([disk, other]) == ["/0", "/1"]
    properties = read_meta_properties(disk)
    assert properties is not None and properties["directory.id"] == uuid_text(DISK_ID)
    assert disk.exists(BOOTSTRAP) and not other.exists(BOOTSTRAP) and not other.exists(DIRECTORY)
    store = MetadataStore.open(disk, CONFIG, now_ms=lambda: 5, clean=False)
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
    assert read_election(directory) == ElectionState()
    election = ElectionState(7, -1, ReplicaKey(2, DISK_ID if kraft_version else bytes(16)))
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


@pytest.mark.parametrize(
    ("release", "levels"),
    [
        ("4.3", DEFAULT_LEVELS),
        ("4.1", {"metadata.version": 27, ELR_VERSION: 1, "group.version": 1, "transaction.version": 2}),
        ("4.0", {"metadata.version": 25, "group.version": 1, "transaction.version": 2}),
        ("4.0-IV1", {"metadata.version": 23, "group.version": 1}),
        ("3.7", {"metadata.version": 19}),
    ],
)
def test_a_release_has_its_features(release: str, levels: dict[str, int]) -> None:
    """As `kafka-storage version-mapping` of 4.3.1 says."""
    assert initial_levels(release, [], dynamic=False) == levels


def test_features_are_chosen_one_by_one() -> None:
    assert initial_levels(None, [], dynamic=True) == DEFAULT_LEVELS
    assert initial_levels("4.0", ["group.version=0", "share.version=1"], dynamic=False) == {
        "metadata.version": 25,
        "share.version": 1,
        "transaction.version": 2,
    }
    assert initial_levels(None, ["metadata.version=24"], dynamic=True)["transaction.version"] == 2
    assert initial_levels("3.8", [], dynamic=True) == {"metadata.version": 20}


@pytest.mark.parametrize(
    ("release", "chosen", "dynamic", "problem"),
    [
        ("5.0", [], False, "Unknown metadata.version '5.0'"),
        ("4.0", ["metadata.version=25"], False, "to avoid ambiguity"),
        (None, ["nope=1"], False, "Unsupported feature: nope"),
        (None, ["group.version=7"], False, "No feature:group.version with feature level 7"),
        (None, ["group.version"], False, "not of the form FEATURE=LEVEL"),
        (None, ["kraft.version=1"], False, "Cannot set kraft.version to 1"),
        (None, ["kraft.version=0"], True, "Cannot set kraft.version to 0"),
        ("3.9", [f"{ELR_VERSION}=1"], False, "depends on metadata.version level 23"),
    ],
)
def test_features_that_do_not_go_together(release: str | None, chosen: list[str], dynamic: bool, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        initial_levels(release, chosen, dynamic=dynamic)


def test_a_cluster_begins_with_an_older_release(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={tmp_path / 'data'}\n"
        "controller.quorum.voters=1@127.0.0.1:9093\n"
    )
    words = ["format", str(path), "-t", CLUSTER, "--release-version", "4.0", "--feature", "share.version=1"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    found = snapshot_items((tmp_path / "data" / BOOTSTRAP).read_bytes(), BOOTSTRAP)
    records = [each.content.record for each in found if isinstance(each.content, MetadataEntry)]
    levels = {record.name: record.feature_level for record in records if isinstance(record, FeatureLevelRecord)}
    assert levels == {"metadata.version": 25, "group.version": 1, "share.version": 1, "transaction.version": 2}


def identified(disk: SimDisk, voters: list[str], node_id: int = 1) -> None:
    directory = DataDirectory("/0", disk)
    identify([directory], node_id, "/0", 5, random.Random(1), cluster_id=CLUSTER, of_voters=voters)


@pytest.mark.parametrize(
    ("voters", "node_id", "doubted"),
    [
        (["1@h:1", "2@h:2", "3@h:3"], 1, True),
        (["1@h:1", "2@h:2", "3@h:3"], 4, False),
        (["10@h:1", "2@h:2", "3@h:3"], 1, False),
        (["1@h:1", "2@h:2"], 1, False),
        (["1@h:1"], 1, False),
        ([], 1, False),
    ],
)
def test_a_voter_of_several_that_formats_itself_is_in_doubt(voters: list[str], node_id: int, doubted: bool) -> None:
    disk = SimDisk()
    identified(disk, voters, node_id)
    assert disk.exists(DOUBT) is doubted
    disk = disk.crash(Crash.POWER)
    assert disk.exists(DOUBT) is doubted, "the mark is there before the directory counts as formatted"
    store = MetadataStore.open(disk, CONFIG, now_ms=lambda: 5, clean=False)
    assert store.in_doubt is doubted
    store.end_doubt()
    assert not store.in_doubt
    identified(disk, voters, node_id)
    assert not store.in_doubt, "what is formatted stays as it is"


def test_formatting_by_hand_vouches_for_what_a_node_formatted_itself() -> None:
    disk = SimDisk()
    identified(disk, ["1@h:1", "2@h:2", "3@h:3"])

    def by_hand(cluster_id: str, ignore_formatted: bool) -> list[str]:
        return format_directories(
            [("/0", disk)],
            "/0",
            node_id=1,
            cluster_id=cluster_id,
            voters=None,
            now_ms=5,
            rng=random.Random(1),
            ignore_formatted=ignore_formatted,
        )

    assert by_hand(CLUSTER, ignore_formatted=True) == []
    with pytest.raises(IdentityError, match="formatted already"):
        by_hand(uuid_text(DISK_ID), ignore_formatted=False)
    assert disk.exists(DOUBT), "a script that formats before each start knows nothing, nor does whoever means another"
    assert by_hand(CLUSTER, ignore_formatted=False) == ["/0"]
    assert not disk.exists(DOUBT)
    with pytest.raises(IdentityError, match="formatted already"):
        by_hand(CLUSTER, ignore_formatted=False)


def test_users_of_the_first_hour(tmp_path: Path) -> None:
    """`--add-scram` writes the credentials into the bootstrap, from which a new cluster has them."""
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
        f"controller.quorum.voters=1@127.0.0.1:9093\nlog.dirs={tmp_path / 'data'}\n"
    )
    users = tmp_path / "users"
    users.write_text("SCRAM-SHA-512=[name=bob,password=hidden]\n\nSCRAM-SHA-256=[name=carol,password=hidden]\n")
    command = ["format", str(properties), "--add-scram", f"@{users}"]
    warned = CliRunner().invoke(app, [*command, "-S", "SCRAM-SHA-256=[name=alice,password=hidden]"])
    assert warned.exit_code == 0, warned.output
    assert "others may see this password" in warned.output and "hidden" not in warned.output
    stored = snapshot_items((tmp_path / "data" / BOOTSTRAP).read_bytes(), BOOTSTRAP)
    records = [item.content.record for item in stored if isinstance(item.content, MetadataEntry)]
    credentials = [record for record in records if isinstance(record, UserScramCredentialRecord)]
    assert [(each.name, each.mechanism) for each in credentials] == [("bob", 2), ("carol", 1), ("alice", 1)]
    assert credentials[1].stored_key != credentials[2].stored_key  # each with a salt of its own
    assert [type(record) for record in records[: len(DEFAULT_LEVELS)]] == [FeatureLevelRecord] * len(DEFAULT_LEVELS)


def test_users_need_a_metadata_version_that_can_store_them() -> None:
    disk = SimDisk()
    user = parse_scram_user("SCRAM-SHA-256=[name=a,password=b]", random.Random(1).randbytes)
    with pytest.raises(ValueError, match=r"SCRAM is only supported in metadata\.version 3\.5-IV2 or later"):
        format_directories(
            [("/0", disk)],
            "/0",
            node_id=1,
            cluster_id=CLUSTER,
            voters=None,
            now_ms=5,
            rng=random.Random(1),
            levels=initial_levels("3.4", [], dynamic=False),
            users=[user],
        )
    assert read_meta_properties(disk) is None
