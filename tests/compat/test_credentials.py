"""SCRAM users and quotas by Kafka's own tools, and in directories that move between a real Kafka and Ottla."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import kafka
from tests.support.java.programs import JavaServer, run_tool
from tests.support.ports import free_ports
from tests.support.processes.kafka import CLUSTER_ID, SINGLE_NODE, RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S, until

CONFIGS = "kafka.admin.ConfigCommand"
STORAGE = "kafka.tools.StorageTool"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
DUMP = "org.apache.kafka.tools.DumpLogSegments"

ALICE = "SCRAM-SHA-256=[name=alice,password=alice-secret]"
BOB = "SCRAM-SHA-512=[name=bob,iterations=8192,password=bob-secret]"
USERS = (
    "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096\n"
    "SCRAM credential configs for user-principal 'bob' are SCRAM-SHA-512=iterations=8192"
)


def tool(java: JavaServer, bootstrap: str, *words: str, main: str = CONFIGS, fails: bool = False) -> str:
    """What the tool printed, its lines sorted."""
    answer = java.ask({"main": main, "args": ["--bootstrap-server", bootstrap, *words]})
    assert (answer["code"] != 0) == fails, answer
    return "\n".join(sorted((answer["out"] + answer.get("err", "") if fails else answer["out"]).strip().splitlines()))


def test_users_by_kafka_configs(node: Node, java_commands: JavaServer, new_name: Names) -> None:
    user = new_name("user")
    alter, describe = (("--alter", *USER, *named(user)), ("--describe", *USER, *named(user)))
    for added in ("SCRAM-SHA-256=[iterations=8192,password=one]", "SCRAM-SHA-512=[password=two]"):
        tool(java_commands, node.bootstrap, *alter, "--add-config", added)
    tool(java_commands, node.bootstrap, *alter, "--add-config", "producer_byte_rate=1024,request_percentage=50")
    told = tool(java_commands, node.bootstrap, *describe)
    assert "SCRAM-SHA-256=iterations=8192" in told and "SCRAM-SHA-512=iterations=4096" in told
    assert "producer_byte_rate=1024.0" in told and "request_percentage=50.0" in told
    tool(java_commands, node.bootstrap, *alter, "--delete-config", "SCRAM-SHA-256")
    tool(java_commands, node.bootstrap, *alter, "--delete-config", "request_percentage")
    told = tool(java_commands, node.bootstrap, *describe)
    assert "SCRAM-SHA-512=iterations=4096" in told and "SCRAM-SHA-256" not in told
    assert "producer_byte_rate" in told and "request_percentage" not in told
    few = tool(
        java_commands, node.bootstrap, *alter, "--add-config", "SCRAM-SHA-256=[iterations=1,password=x]", fails=True
    )
    assert "iterations" in few.lower()
    tool(java_commands, node.bootstrap, *alter, "--delete-config", "SCRAM-SHA-512")
    tool(java_commands, node.bootstrap, *alter, "--delete-config", "producer_byte_rate")
    assert tool(java_commands, node.bootstrap, *describe) == ""


USER, CLIENT, ADDRESS = (("--entity-type", kind) for kind in ("users", "clients", "ips"))
DEFAULT = ("--entity-default",)


def named(name: str) -> tuple[str, str]:
    return "--entity-name", name


QUOTAS = [
    ((*USER, *DEFAULT), "consumer_byte_rate=2048"),
    ((*CLIENT, *named("app")), "controller_mutation_rate=2.5"),
    ((*CLIENT, *DEFAULT), "request_percentage=99"),
    ((*USER, *named("u"), *CLIENT, *named("c")), "producer_byte_rate=7"),
    ((*USER, *DEFAULT, *CLIENT, *DEFAULT), "producer_byte_rate=8"),
    ((*ADDRESS, *named("127.0.0.77")), "connection_creation_rate=5"),
    ((*ADDRESS, *DEFAULT), "connection_creation_rate=6"),
]


@pytest.mark.parametrize(("entity", "quota"), QUOTAS)
def test_quotas_by_kafka_configs(node: Node, java_commands: JavaServer, entity: tuple[str, ...], quota: str) -> None:
    key, _, value = quota.partition("=")
    tool(java_commands, node.bootstrap, "--alter", *entity, "--add-config", quota)
    try:
        assert f"{key}={float(value)}" in tool(java_commands, node.bootstrap, "--describe", *entity)
    finally:
        tool(java_commands, node.bootstrap, "--alter", *entity, "--delete-config", key)
    assert tool(java_commands, node.bootstrap, "--describe", *entity) == ""


def test_users_by_librdkafka(node: Node, new_name: Names) -> None:
    user = new_name("librdkafka")
    admin = AdminClient({"bootstrap.servers": node.bootstrap})

    def alter(change: UserScramCredentialAlteration) -> None:
        admin.alter_user_scram_credentials([change])[user].result(WAIT_S)

    def described() -> list[tuple[str, int]]:
        found = admin.describe_user_scram_credentials([user])[user].result(WAIT_S)
        return [(each.mechanism.name, each.iterations) for each in found.scram_credential_infos]

    for mechanism, iterations in ((ScramMechanism.SCRAM_SHA_512, 5_000), (ScramMechanism.SCRAM_SHA_256, 4_096)):
        alter(UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, iterations), b"secret"))
    until(described, lambda found: sorted(found) == [("SCRAM_SHA_256", 4_096), ("SCRAM_SHA_512", 5_000)])
    few = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 1)
    with pytest.raises(KafkaException) as refused:
        alter(UserScramCredentialUpsertion(user, few, b"secret"))
    assert refused.value.args[0].code() == KafkaError.UNACCEPTABLE_CREDENTIAL
    for mechanism in (ScramMechanism.SCRAM_SHA_512, ScramMechanism.SCRAM_SHA_256):
        alter(UserScramCredentialDeletion(user, mechanism))
    with pytest.raises(KafkaException) as missing:
        until(described, lambda found: not found)
    assert missing.value.args[0].code() == KafkaError.RESOURCE_NOT_FOUND


def test_users_by_kafka_python(node: Node, new_name: Names) -> None:
    user = new_name("kafka-python")
    scram = kafka.admin.ScramMechanism.SCRAM_SHA_256
    admin = kafka.KafkaAdminClient(bootstrap_servers=node.bootstrap)
    try:
        wanted = kafka.admin.UserScramCredentialUpsertion(user, scram, "secret", iterations=6_000)
        assert admin.alter_user_scram_credentials([wanted]) == {user: None}
        found = until(lambda: admin.describe_user_scram_credentials([user])[user], lambda each: not each["error"])
        assert found["credential_infos"] == [{"mechanism": scram, "iterations": 6_000}]
        assert admin.alter_user_scram_credentials([kafka.admin.UserScramCredentialDeletion(user, scram)]) == {
            user: None
        }
        until(lambda: admin.describe_user_scram_credentials([user])[user]["error"])
    finally:
        admin.close()


def test_plaintext_clients_get_no_tokens(node: Node, java_commands: JavaServer, tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=PLAINTEXT\n")
    words = ("--command-config", str(properties), "--create", "--max-life-time-period", "-1")
    told = tool(java_commands, node.bootstrap, *words, main=TOKENS, fails=True)
    assert "Delegation Token requests are not allowed" in told


# --- directories that move


def described(java: JavaServer, bootstrap: str) -> list[str]:
    """What there is, without the order of the quotas, which is that of a hash table."""
    entities = [USER, *(entity for entity, _ in QUOTAS)]
    told = [tool(java, bootstrap, "--describe", *entity) for entity in entities]
    return [" ".join(sorted(text.replace(",", "").split())) for text in told]


def settings_of(directory: Path, **more: str) -> tuple[Path, dict[str, str]]:
    """The properties of a node of fixed voters, in a file."""
    port, controller = free_ports(2)
    settings = SINGLE_NODE | {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(directory / "data"),
    }
    settings |= more or {"controller.quorum.voters": f"1@127.0.0.1:{controller}"}
    if "controller.quorum.bootstrap.servers" in settings:
        settings["controller.quorum.bootstrap.servers"] = f"127.0.0.1:{controller}"
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path, settings


@pytest.fixture(params=["fixed voters", "standalone"])
def formatted(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, str], list[str]]:
    """The settings of a node, and the words that format its directory for them."""
    dynamic = request.param == "standalone"
    more = {"controller.quorum.bootstrap.servers": ""} if dynamic else {}
    path, settings = settings_of(tmp_path, **more)
    return path, settings, ["--standalone"] if dynamic else []


def test_we_serve_what_kafka_storage_formatted(
    formatted: tuple[Path, dict[str, str], list[str]], java_commands: JavaServer
) -> None:
    path, settings, words = formatted
    users = [word for user in (ALICE, BOB) for word in ("--add-scram", user)]
    done = run_tool(STORAGE, "format", "-t", CLUSTER_ID, "-c", str(path), *words, *users)
    assert done.returncode == 0, done.stdout + done.stderr
    port = int(settings["advertised.listeners"].rpartition(":")[2])
    ours = OttlaNode.on_file(path, path.parent / "data", port).start()
    try:
        assert tool(java_commands, ours.bootstrap, "--describe", "--entity-type", "users") == USERS
    finally:
        ours.stop()


def test_kafka_serves_what_we_formatted(
    formatted: tuple[Path, dict[str, str], list[str]], java_commands: JavaServer
) -> None:
    path, settings, words = formatted
    users = [word for user in (ALICE, BOB) for word in ("--add-scram", user)]
    command = [sys.executable, "-m", "ottla", "format", str(path), "-t", CLUSTER_ID, *words, *users]
    subprocess.run(command, check=True, capture_output=True)
    listeners = [each.rpartition(":")[2] for each in settings["listeners"].split(",")]
    kafka = RealKafka(path.parent, properties=settings, ports=(int(listeners[0]), int(listeners[1])))
    if words:
        del kafka.properties["controller.quorum.voters"]
    kafka.start()
    try:
        assert tool(java_commands, kafka.bootstrap, "--describe", "--entity-type", "users") == USERS
    finally:
        kafka.stop()


def test_credentials_and_quotas_move_both_ways(tmp_path: Path, java_tools: None, java_commands: JavaServer) -> None:
    kafka = RealKafka(tmp_path / "kafka").start()
    try:
        add_user(java_commands, kafka.bootstrap, "first", "SCRAM-SHA-256")
        for entity, quota in QUOTAS:
            tool(java_commands, kafka.bootstrap, "--alter", *entity, "--add-config", quota)
        before = described(java_commands, kafka.bootstrap)
    finally:
        kafka.stop()
    assert all(before)
    copy = tmp_path / "ours" / "data"
    shutil.copytree(kafka.data_dir, copy)
    ours = OttlaNode(copy.parent, properties=kafka.properties | {"log.dirs": str(copy)}).start()
    try:
        assert described(java_commands, ours.bootstrap) == before
        add_user(java_commands, ours.bootstrap, "second", "SCRAM-SHA-512")
        entity, quota = QUOTAS[0]
        tool(java_commands, ours.bootstrap, "--alter", *entity, "--delete-config", quota.partition("=")[0])
        tool(java_commands, ours.bootstrap, "--alter", *QUOTAS[3][0], "--add-config", "request_percentage=3")
        after = described(java_commands, ours.bootstrap)
    finally:
        ours.stop()
    assert after != before and "'second'" in after[0]
    shutil.rmtree(kafka.data_dir)
    shutil.copytree(copy, kafka.data_dir)
    kafka.start()
    try:
        assert described(java_commands, kafka.bootstrap) == after
    finally:
        kafka.stop()


def add_user(java: JavaServer, bootstrap: str, user: str, mechanism: str) -> None:
    words = (*USER, *named(user), "--add-config", f"{mechanism}=[password=secret]")
    tool(java, bootstrap, "--alter", *words)
