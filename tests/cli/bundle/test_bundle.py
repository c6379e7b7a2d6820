"""`ottla support-bundle`: everything that helps is in it, no secret is, and what is missing is told."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.bundle.unpacked import MeasuredCluster, Unpacked, bundle
from tests.cli.conftest import invoke
from tests.support.ports import free_ports
from tests.support.processes.clusters import running
from tests.support.waiting import until

from ottla.cli.bundle import archive, machine
from ottla.cli.bundle import cluster as of_cluster
from ottla.cli.bundle.redaction import Redaction
from ottla.client.blocking.blocking import Blocking
from ottla.model import limits
from ottla.model.resources import Resource
from ottla.operations.errors import CommandError
from ottla.testing.broker import EmbeddedBroker

# Each has another form, so that a failure names its place.
PLANTED = {
    "keystore": "Kst0re-pa55phrase",
    "jaas": "Jaas-0f-the-n0de",
    "alice": "A1ice-plain-user",
    "unknown": "0dd-setting-va1ue",
    "token": "delegat10n-master-key-of-the-node",
    "environment": "env-va1ue-of-pass",
    "database": "db-url-cr3dential",
    "profile": "pr0file-password!",
    "log line": "l0g-line-password",
    "log json": "l0g-json-secret",
    "log url": "l0g-url-password",
    "log jaas": "l0g-jaas-password",
    "log header": "bG9nOmhlYWRlcnNlY3JldA",
    "log key": "MIIEvgIBADANBgkqhkiG9w0BAQEFAASC",
    "cut key": "w0BAQEFAASCBKcwggSjAgEAAoIBAQC7",
    "client id": "cl1ent-id-url-pw",
}


def planted_log(path: Path) -> Path:
    lines = [
        PLANTED["cut key"],
        "-----END PRIVATE KEY-----",
        "12:00:00.000 INFO server.node: broker 1 is ready",
        f"12:00:01.000 WARNING x: sasl.password={PLANTED['log line']}",
        json.dumps({"message": "login", "client_secret": PLANTED["log json"], "level": "info"}),
        json.dumps({"message": f'PlainLoginModule required password="{PLANTED["log jaas"]}";', "level": "info"}),
        f"12:00:02.000 INFO x: asked http://bob:{PLANTED['log url']}@registry:8081",
        f"12:00:03.000 INFO x: Authorization: Basic {PLANTED['log header']}==",
        "-----BEGIN PRIVATE KEY-----",
        PLANTED["log key"],
        "-----END PRIVATE KEY-----",
        f"12:00:04.000 INFO x: what was found: {PLANTED['keystore']}, {PLANTED['environment']}, {PLANTED['profile']}",
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def planted_settings(path: Path, data: Path) -> Path:
    path.write_text(
        f"process.roles=broker,controller\nnode.id=1\nlog.dirs={data}\ncontroller.listener.names=C\n"
        f"listeners=PLAINTEXT://127.0.0.1:0,C://127.0.0.1:{free_ports(1)[0]}\n"
        "listener.security.protocol.map=C:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        f"ssl.keystore.password={PLANTED['keystore']}\n"
        f"delegation.token.secret.key={PLANTED['token']}\n"
        "listener.name.plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule "
        f'required username="node" password="{PLANTED["jaas"]}" user_alice="{PLANTED["alice"]}";\n'
        f"my.plugin.api.key={PLANTED['unknown']}\n"
        f"my.plugin.url=postgres://app:{PLANTED['database']}@db/x\n"
    )
    return path


def test_no_secret_is_in_any_member(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_PASSPHRASE", PLANTED["environment"])
    monkeypatch.setenv("OTTLA_DATABASE", f"postgres://app:{PLANTED['database']}@db/x")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    metrics_port = free_ports(1)[0]
    settings = {
        "ottla.metrics.listener": f"127.0.0.1:{metrics_port}",
        "ssl.keystore.password": PLANTED["keystore"],
        "delegation.token.secret.key": PLANTED["token"],
        "listener.name.plaintext.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule "
        f'required username="node" password="{PLANTED["jaas"]}" user_alice="{PLANTED["alice"]}";',
    }
    data = tmp_path / "data"
    with EmbeddedBroker(data, settings) as broker, Blocking(broker.bootstrap) as client:
        client.admin.topics.create("t")
        client.send_all("t", [(b"k", b"a record that is nobody's business")])
        client.admin.groups.set_offsets(f"http://u:{PLANTED['client id']}@h", {("t", 0): 0})
        profiles = tmp_path / "config" / "ottla" / "profiles.toml"
        profiles.parent.mkdir(parents=True)
        login = f'"basic.auth.user.info" = "x:{PLANTED["profile"]}"'
        profiles.write_text(f'[p]\nbootstrap = "{broker.bootstrap}"\n{login}\n')
        profiles.chmod(0o600)
        planted_log(data / "node.log")
        config = planted_settings(tmp_path / "server.properties", data)
        log = str(planted_log(tmp_path / "other.log"))
        words = ["--profile", "p", "--data", str(data), "--config", str(config), "--log", log]
        found, run = bundle(tmp_path / "b.tar.gz", *words)
    for place, secret in PLANTED.items():
        places = [name for name, text in found.members.items() if secret in text or secret in name]
        assert not places, f"the secret of the {place} is in {places}"
        assert secret not in run.out + run.err
    assert "nobody's business" not in found.text
    assert found.missing == {}
    for name in ("logs/1-other.log", "logs/2-node.log"):
        assert "broker 1 is ready" in found.members[name]
    shown = found.json("config/1.json")
    assert (shown["ssl.keystore.password"], shown["node.id"]) == ("[hidden]", "1")
    assert "kafka_server_replicamanager_leadercount" in found.members["metrics/node-1.txt"]
    assert "t-0/00000000000000000000.log" in {each["file"] for each in found.lines("data/1/files.jsonl")}
    assert "t" in {each["name"] for each in found.lines("cluster/topics.jsonl")}
    assert "ssl.keystore.password" in found.json("cluster/settings-1.json")["hidden"]
    checks = found.json("doctor.json")
    assert {"setting-unknown", "voters-even"} <= {
        each["check"] for part in ("findings", "fine") for each in checks[part]
    }
    assert "APP_PASSPHRASE" in found.json("environment.json")["others"]
    assert found.json("versions.json")["packages"]["typer"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredCluster]:
    with running(MeasuredCluster(tmp_path_factory.mktemp("cluster"))) as made:
        yield made


def test_cluster_of_which_a_node_is_dead(cluster: MeasuredCluster, tmp_path: Path) -> None:
    with Blocking(cluster.bootstrap) as client:
        client.admin.topics.create("t", partitions=3, replication_factor=3)
        client.admin.groups.set_offsets("g", {("t", 0): 0})
        found, _ = bundle(tmp_path / "whole.tar.gz", "-b", cluster.bootstrap)
        assert found.missing == {}
        assert {name for name in found.members if name.startswith("metrics/")} == {
            f"metrics/node-{id}.txt" for id in cluster.ids
        }
        assert [each["group_id"] for each in found.lines("cluster/groups.jsonl")] == ["g"]
        cluster.kill(3)
        until(
            lambda: [each for each in client.admin.nodes.describe(fenced=True).brokers if each.is_fenced],
        )
        found, run = bundle(tmp_path / "partial.tar.gz", "-b", cluster.bootstrap)
    assert found.missing[f"broker 3 at {cluster.address(3)}"].startswith("it is fenced")
    assert "metrics of node 3" in found.missing and "metrics/node-1.txt" in found.members
    assert "not in the bundle: metrics of node 3" in run.err
    assert "broker-fenced" in {each["check"] for each in found.json("doctor.json")["findings"]}
    assert found.json("cluster/quorum.json")["leader_id"] in (1, 2)


def test_cluster_that_is_away(tmp_path: Path) -> None:
    log = planted_log(tmp_path / "node.log")
    found, _ = bundle(tmp_path / "b.tar.gz", "-b", "127.0.0.1:1", "--log", str(log))
    assert found.missing.keys() == {"the cluster"} and "logs/1-node.log" in found.members
    run = invoke("support-bundle", str(tmp_path / "none.tar.gz"), "-b", "127.0.0.1:1")
    assert run.code == 1 and not (tmp_path / "none.tar.gz").exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b.tar.gz", "node.log"]


def test_it_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_text("mine")
    run = invoke("support-bundle", str(path), "-b", "127.0.0.1:1")
    assert run.code == 1 and "there already" in run.err and path.read_text() == "mine"


def test_a_folder_in_which_this_user_may_not_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:  # root, who may run the tests, may write everywhere
        raise PermissionError(errno.EACCES, "Permission denied")

    expected = pytest.raises(CommandError, match=f"this user may not write in {tmp_path}$")
    with monkeypatch.context() as patched, expected as raised:
        patched.setattr(os, "open", refuse)
        with archive.written_bundle(tmp_path / "b.tar.gz", Redaction()):
            pass
    assert "another folder" in (raised.value.hint or "") and not list(tmp_path.iterdir())


def test_logs_are_bounded(tmp_path: Path) -> None:
    """Of a long log there is the end; its first line is left out, because its beginning is."""
    log = tmp_path / "node.log"
    line = f"password={'x' * 100} " + "y" * 899 + "\n"
    count = 2 * limits.BUNDLE_LOG_BYTES_MAX // len(line)
    log.write_text(line * count + "the last line\n")
    found, run = bundle(tmp_path / "b.tar.gz", "-b", "127.0.0.1:1", "--log", str(log), "--json")
    text = found.members["logs/1-node.log"]
    assert len(text) < limits.BUNDLE_LOG_BYTES_MAX and text.endswith("the last line\n") and "xxx" not in text
    assert text.startswith("password=[hidden]")
    told = {each["name"]: each for each in run.json["members"]}["logs/1-node.log"]
    assert told["left_out"].startswith("the first ")
    assert run.json["path"] == str(tmp_path / "b.tar.gz")


def test_other_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond a bound is left out, and told; the bounds are smaller here."""
    monkeypatch.setattr(machine, "BUNDLE_FILES_MAX", 7)
    monkeypatch.setattr(machine, "BUNDLE_LOGS_MAX", 2)
    monkeypatch.setattr(of_cluster, "BUNDLE_GROUPS_MAX", 3)
    data = tmp_path / "data"
    with EmbeddedBroker(data) as broker, Blocking(broker.bootstrap) as client:
        client.admin.topics.create("t")
        for number in range(5):
            client.admin.groups.set_offsets(f"g{number}", {("t", 0): 0})
            (data / f"node-{number}.log").write_text("a line\n")
        found, run = bundle(tmp_path / "b.tar.gz", "-b", broker.bootstrap, "--data", str(data), "--json")
    assert len(found.lines("cluster/group_descriptions.jsonl")) == 3
    assert found.missing["members of 2 more groups"] == "those of the first 3 are there"
    assert [name for name in found.members if name.startswith("logs/")] == ["logs/1-node-0.log", "logs/2-node-1.log"]
    assert found.missing[f"3 more logs in {data}"] == "of a directory there are 2"
    assert len(found.lines("data/1/files.jsonl")) == 7
    told = {each["name"]: each for each in run.json["members"]}["data/1/files.jsonl"]
    assert told["left_out"] == "all beyond the first 7 files"


def test_the_whole_bundle_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is full, members are cut or left out, and the manifest, which says so, is still there."""
    whole, each_max = 100_000, 40_000
    monkeypatch.setattr(archive, "BUNDLE_BYTES_MAX", whole)
    monkeypatch.setattr(archive, "BUNDLE_MEMBER_BYTES_MAX", each_max)
    logs = [tmp_path / f"{number}.log" for number in range(4)]
    for log in logs:
        log.write_text("".join(f"line {number} of {log.name}\n" for number in range(4_000)))
    words = [word for log in logs for word in ("--log", str(log))]
    found, run = bundle(tmp_path / "b.tar.gz", "-b", "127.0.0.1:1", *words, "--json")
    sizes = {each["name"]: each["size_bytes"] for each in run.json["members"]}
    assert sum(sizes.values()) <= whole and all(size <= each_max for size in sizes.values())
    assert found.members["logs/1-0.log"].endswith("line 3999 of 0.log\n")
    assert all(each["left_out"] for each in run.json["members"] if each["name"].startswith("logs/"))
    assert sizes["logs/4-3.log"] < 2_000, "there was next to no room for it"


def test_a_binary_log_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "node.log"
    log.write_bytes(os.urandom(100) + b"\0")
    found, _ = bundle(tmp_path / "b.tar.gz", "-b", "127.0.0.1:1", "--log", str(log))
    assert found.missing[f"the end of {log}"] == "it is no text"


def test_metrics_that_are_another_nodes(tmp_path: Path) -> None:
    """The setting of a node names an address where another one answers, as on another machine."""
    (port,) = free_ports(1)
    with EmbeddedBroker(tmp_path / "a", {"node.id": 7, "ottla.metrics.listener": f"127.0.0.1:{port}"}) as broker:
        found, _ = bundle(tmp_path / "7.tar.gz", "-b", broker.bootstrap)
        assert found.missing == {}
        with Blocking(broker.bootstrap) as client:
            assert client.admin.configs.describe(Resource.broker(7))
    with EmbeddedBroker(tmp_path / "b") as broker:
        found = Unpacked(bundle(tmp_path / "8.tar.gz", "-b", broker.bootstrap)[0].path)
        assert found.missing == {"metrics of node 1": "it has no ottla.metrics.listener"}
