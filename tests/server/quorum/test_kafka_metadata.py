"""Kafka as the judge of our metadata, and its own metadata as our test: dumped, taken over, and given back."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from tests.server.admin import StillLoop
from tests.support.java.programs import JavaServer
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import WAIT_S, until

from ottla.cluster.commands.allocate_producer_ids import AllocateProducerIds
from ottla.cluster.commands.alter_configs import ConfigAlteration, IncrementalAlterConfigs, Op
from ottla.cluster.commands.create_topics import CreateTopics
from ottla.cluster.commands.create_topics import TopicToCreate as Topic
from ottla.cluster.commands.delete_topics import DeleteTopics, DoomedTopic
from ottla.cluster.commands.update_features import FeatureUpdate, FeatureUpgrade, UpdateFeatures
from ottla.cluster.store import DIRECTORY
from ottla.log.files.checkpoint import write_clean_shutdown
from ottla.model import limits
from ottla.model.resources import Resource
from ottla.server.loop.runtime import Runtime
from ottla.server.peers.peers import Peers
from ottla.server.ports.os_disk import OsDisk
from ottla.server.quorum.quorum_member import QuorumMember
from ottla.server.settings.configs import Configs
from ottla.server.storage.directories import open_directories

pytestmark = [pytest.mark.compat, pytest.mark.slow]

DUMP = "org.apache.kafka.tools.DumpLogSegments"
NOW_MS = 1_700_000_000_000


def open_host(path: Path, **properties: str) -> QuorumMember:
    configs = Configs({"node.id": "1", "log.dirs": str(path), **properties})
    loop: Any = StillLoop()
    runtime = Runtime(loop, now_ms=lambda: NOW_MS, rng=random.Random(1))
    member = QuorumMember(runtime, configs, open_directories(configs.log_dirs(), OsDisk), Peers("test"), _nobody)
    member.start_alone()
    return member


async def _nobody(request: Any) -> Any:
    raise AssertionError("nothing is asked of this controller")


def submit(host: QuorumMember, command: Any) -> Any:
    return host.controller.submit(command).taken()


def close_host(host: QuorumMember, path: Path) -> None:
    host.close()
    write_clean_shutdown(OsDisk(str(path)))


def fill(host: QuorumMember) -> None:
    """Something of every command."""
    configs = (("retention.ms", "12345"), ("cleanup.policy", "compact"))
    submit(host, CreateTopics((Topic("kept", 3, 1, configs=configs), Topic("gone", 2, 1))))
    submit(host, DeleteTopics((DoomedTopic("gone"),)))
    alterations = (ConfigAlteration("log.retention.ms", Op.SET, "99999"),)
    group = (ConfigAlteration("consumer.session.timeout.ms", Op.SET, "50000"),)
    submit(host, IncrementalAlterConfigs(((Resource(4, "1"), alterations), (Resource(32, "g"), group))))
    submit(host, UpdateFeatures((FeatureUpdate("streams.version", 0, FeatureUpgrade.SAFE_DOWNGRADE),)))
    broker = host.metadata.state.brokers[1]
    submit(host, AllocateProducerIds(broker.id, broker.epoch))


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory we wrote in two lives, with a snapshot between them."""
    path = tmp_path / "data"
    host = open_host(path)
    fill(host)
    host.snapshots.upkeep(NOW_MS + 3_600_000)
    close_host(host, path)
    host = open_host(path)
    # Behind the snapshot, so that Kafka has to replay them: one batch of 10,001 records, and a transaction of two
    # batches. Deleted again, because a real Kafka takes minutes to open so many partitions.
    for name, records_per_batch in (("wide", limits.RECORDS_PER_METADATA_BATCH_MAX), ("wider", 6_000)):
        monkeypatch.setattr("ottla.cluster.journal.RECORDS_PER_METADATA_BATCH_MAX", records_per_batch)
        submit(host, CreateTopics((Topic(name, 10_000, 1),)))
        submit(host, DeleteTopics((DoomedTopic(name),)))
    submit(host, CreateTopics((Topic("late", 1, 1),)))
    close_host(host, path)
    return path


def dump(java_commands: JavaServer, file: Path) -> list[str]:
    answer = java_commands.ask({"main": DUMP, "args": ["--cluster-metadata-decoder", "--files", str(file)]})
    assert answer["code"] == 0, answer
    assert "isvalid: false" not in answer["out"] and "ERROR" not in answer["out"]
    lines: list[str] = answer["out"].splitlines()
    return lines


def payloads(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line.partition("payload: ")[2]) for line in lines if "payload: " in line]


def test_kafka_decodes_every_record(ours: Path, java_commands: JavaServer) -> None:
    found: list[dict[str, Any]] = []
    leader_changes = 0
    for file in sorted((ours / DIRECTORY).glob("*.log")):
        lines = dump(java_commands, file)
        found += payloads(lines)
        leader_changes += sum("LeaderChange: " in line for line in lines)
    assert leader_changes == 2
    types = [record["type"] for record in found]
    assert types.count("TOPIC_RECORD") == 5 and types.count("REMOVE_TOPIC_RECORD") == 3
    assert types.count("PARTITION_RECORD") == 3 + 2 + 10_000 + 10_000 + 1
    assert types.count("REGISTER_BROKER_RECORD") == types.count("BROKER_REGISTRATION_CHANGE_RECORD") == 2
    assert {"CONFIG_RECORD", "FEATURE_LEVEL_RECORD", "PRODUCER_IDS_RECORD", "REGISTER_CONTROLLER_RECORD"} <= set(types)
    # The bootstrap, and the one command that was too large for a single batch.
    assert types.count("BEGIN_TRANSACTION_RECORD") == types.count("END_TRANSACTION_RECORD") == 2


def test_kafka_decodes_our_snapshots(ours: Path, java_commands: JavaServer) -> None:
    (snapshot,) = (ours / DIRECTORY).glob("*.checkpoint")
    lines = dump(java_commands, snapshot)
    types = [record["type"] for record in payloads(lines)]
    assert types[0] == "FEATURE_LEVEL_RECORD" and types.count("TOPIC_RECORD") == 1
    assert any("SnapshotHeader" in line for line in lines) and any("SnapshotFooter" in line for line in lines)
    levels = [record["data"] for record in payloads(dump(java_commands, ours / "bootstrap.checkpoint"))]
    assert {record["name"]: record["featureLevel"] for record in levels}["metadata.version"] == 30


def test_kafka_takes_our_metadata_over(ours: Path, java_tools: None) -> None:
    kafka = RealKafka(ours.parent)
    assert kafka.data_dir == ours
    kafka.start()
    try:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        topics = admin.list_topics(timeout=WAIT_S).topics
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {"kept": 3, "late": 1}
        resource = ConfigResource(ConfigResource.Type.TOPIC, "kept")
        described = admin.describe_configs([resource])[resource].result(timeout=WAIT_S)
        assert (described["retention.ms"].value, described["cleanup.policy"].value) == ("12345", "compact")
    finally:
        kafka.stop()


CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
OTHERS = [
    (CONFIGS, "--entity-type", "users", "--entity-name", "u", "--entity-type", "clients", "--entity-default"),
    (CONFIGS, "--entity-type", "users", "--entity-name", "s"),
    (CONFIGS, "--entity-type", "client-metrics", "--entity-name", "m"),
    (CONFIGS, "--entity-type", "groups", "--entity-name", "g"),
    (CONFIGS, "--entity-type", "brokers", "--entity-default"),
    (CONFIGS, "--entity-type", "ips", "--entity-name", "127.0.0.9"),
]
VALUES = [
    "producer_byte_rate=1000,request_percentage=20.5",
    "SCRAM-SHA-256=[iterations=4096,password=secret]",
    "interval.ms=60000,metrics=[a.b,c]",
    "consumer.session.timeout.ms=50000",
    "log.retention.ms=123456",
    "connection_creation_rate=7",
]


def tool(java_commands: JavaServer, kafka: RealKafka, main: str, *words: str) -> str:
    answer = java_commands.ask({"main": main, "args": ["--bootstrap-server", kafka.bootstrap, *words]})
    assert answer["code"] == 0, answer
    return "\n".join(sorted(answer["out"].splitlines()))


def described(java_commands: JavaServer, kafka: RealKafka) -> list[str]:
    found = [tool(java_commands, kafka, main, "--describe", *words) for main, *words in OTHERS]
    return [*found, tool(java_commands, kafka, ACLS, "--list")]


def test_we_keep_what_only_kafka_uses(tmp_path: Path, java_tools: None, java_commands: JavaServer) -> None:
    """Quotas, credentials, ACLs and the like, over a snapshot of ours."""
    guarded = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    kafka = RealKafka(tmp_path, properties=guarded).start()
    try:
        for (main, *words), values in zip(OTHERS, VALUES, strict=True):
            tool(java_commands, kafka, main, "--alter", *words, "--add-config", values)
        for topic in ("a", "b"):
            words = ("--topic", topic, "--allow-principal", "User:x", "--operation", "Read")
            tool(
                java_commands, kafka, ACLS, "--add", *words, *(["--resource-pattern-type", "prefixed"] * (topic == "b"))
            )
        before = described(java_commands, kafka)
    finally:
        kafka.stop()
    assert all(before) and "SCRAM-SHA-256=iterations=4096" in before[1]
    host = open_host(kafka.data_dir)
    host.snapshots.upkeep(NOW_MS + 3_600_000)
    close_host(host, kafka.data_dir)
    newest = max((kafka.data_dir / DIRECTORY).glob("*.checkpoint"))
    types = {record["type"] for record in payloads(dump(java_commands, newest))}
    assert {"CLIENT_QUOTA_RECORD", "USER_SCRAM_CREDENTIAL_RECORD", "ACCESS_CONTROL_ENTRY_RECORD"} <= types
    kafka.start()
    try:
        assert described(java_commands, kafka) == before
    finally:
        kafka.stop()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_we_take_kafkas_metadata_over(end: str, tmp_path: Path, java_tools: None) -> None:
    """With snapshots of its own, stopped in order or killed, and given back to it afterwards."""
    kafka = RealKafka(tmp_path, properties={"metadata.log.max.record.bytes.between.snapshots": "5000"})
    kafka.start()
    try:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        wanted = [NewTopic(f"t{number}", 5, 1, config={"retention.ms": "777"}) for number in range(20)]
        for future in admin.create_topics(wanted).values():
            future.result(timeout=WAIT_S)
        admin.delete_topics(["t19"])["t19"].result(timeout=WAIT_S)
        # Kafka's broker hears of it, and writes its snapshots, when it finds the time.
        kept = [f"t{number}" for number in range(19)]
        until(lambda: sorted(admin.list_topics(timeout=WAIT_S).topics), lambda found: found == sorted(kept))
        until(lambda: list((kafka.data_dir / DIRECTORY).glob("*.checkpoint")))
    finally:
        getattr(kafka, end)()
    copy = tmp_path / "again" / "data"
    shutil.copytree(kafka.data_dir, copy)
    host = open_host(copy)
    state = host.metadata.state
    assert sorted(state.topics) == sorted(kept)
    for topic in state.topics.values():
        assert [(each.index, each.leader, each.isr) for each in topic.partitions] == [(i, 1, (1,)) for i in range(5)]
        assert state.config(2, topic.name) == {"retention.ms": "777"}
    submit(host, CreateTopics((Topic("ours", 2, 1),)))
    host.snapshots.upkeep(NOW_MS + 3_600_000)
    close_host(host, copy)
    again = RealKafka(copy.parent).start()
    try:
        admin = AdminClient({"bootstrap.servers": again.bootstrap})
        until(lambda: sorted(admin.list_topics(timeout=WAIT_S).topics), lambda found: found == sorted([*kept, "ours"]))
    finally:
        again.stop()
