"""ACLs as Kafka's tools and the admin clients of other libraries use them, on a node with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Confluent, Java, KafkaPython, kafka
from tests.support.clients.members import LineClient
from tests.support.java.programs import JavaServer
from tests.support.lines import HarnessError
from tests.support.processes.kafka import SINGLE_NODE, RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.acls import GUARDED
from tests.support.waiting import WAIT_S, until

ACL_COMMAND = "org.apache.kafka.tools.AclCommand"


@pytest.fixture(scope="module")
def guarded(against: str, java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with an authorizer, in which every client is a super user."""
    directory = tmp_path_factory.mktemp("guarded")
    found: Node = (
        RealKafka(directory, properties=GUARDED)
        if against == "kafka"
        else OttlaNode(directory, properties=SINGLE_NODE | GUARDED)
    )
    try:
        yield found.start()
    finally:
        found.stop()


def kafka_acls(java_commands: JavaServer, bootstrap: str, *words: str, code: int = 0) -> str:
    answer = java_commands.ask({"main": ACL_COMMAND, "args": ["--bootstrap-server", bootstrap, *words]})
    assert answer["code"] == code, answer
    return str(answer["out"] + answer["err"])


@pytest.mark.tool("kafka-acls 4.3.1")
@pytest.mark.feature("tool")
def test_kafka_acls(java_commands: JavaServer, guarded: Node, new_name: Names) -> None:
    name = new_name("acl")

    def run(*words: str) -> str:
        return kafka_acls(java_commands, guarded.bootstrap, *words)

    run("--add", "--allow-principal", "User:alice", "--producer", "--topic", name, "--transactional-id", name)
    run("--add", "--allow-principal", "User:alice", "--consumer", "--topic", name, "--group", name)
    run(
        "--add", "--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--operation", "All", "--topic", name,
        "--resource-pattern-type", "prefixed",
    )  # fmt: skip
    wanted = ["WRITE", "READ", "DESCRIBE", "CREATE", "permissionType=DENY", "patternType=PREFIXED"]
    until(lambda: run("--list", "--topic", name + "-x", "--resource-pattern-type", "match"), lambda out: "DENY" in out)
    listed = run("--list")
    assert all(each in listed for each in wanted), listed
    assert "operation=READ" in run("--list", "--group", name)
    assert "operation=WRITE" in run("--list", "--transactional-id", name)
    assert name in run("--list", "--principal", "User:alice", "--topic", name)
    run("--remove", "--force", "--topic", name, "--resource-pattern-type", "any")
    until(lambda: run("--list", "--topic", name, "--resource-pattern-type", "any"), lambda out: name not in out)
    run("--remove", "--force", "--group", name)
    run("--remove", "--force", "--transactional-id", name)
    until(lambda: run("--list"), lambda out: name not in out)


@pytest.mark.feature("ACLs")
def test_java_admin(java: Java, guarded: Node, new_name: Names) -> None:
    name = new_name("acl")
    acls = [
        ["GROUP", name, "PREFIXED", "User:a", "*", "READ", "ALLOW"],
        ["TOPIC", name, "LITERAL", "User:a", "*", "READ", "ALLOW"],
        ["TOPIC", name, "LITERAL", "User:b", "10.0.0.1", "ALL", "DENY"],
        ["TRANSACTIONAL_ID", name, "LITERAL", "User:a", "*", "WRITE", "ALLOW"],
    ]
    everything = [None, name, None, None, None, None, None]
    java.ask("create_acls", guarded.bootstrap, acls=acls)
    until(lambda: java.ask("describe_acls", guarded.bootstrap, filter=everything), lambda found: found == acls)
    matching = ["TOPIC", name, "MATCH", "User:b", None, None, None]
    assert java.ask("describe_acls", guarded.bootstrap, filter=matching) == [acls[2]]
    assert java.ask("delete_acls", guarded.bootstrap, filter=matching) == [acls[2]]
    assert java.ask("delete_acls", guarded.bootstrap, filter=everything) == [acls[0], acls[1], acls[3]]
    with pytest.raises(HarnessError) as refused:
        java.ask("create_acls", guarded.bootstrap, acls=[["CLUSTER", "c", "LITERAL", "User:a", "*", "ALL", "ALLOW"]])
    assert refused.value.name == "InvalidRequestException"


@pytest.mark.feature("ACLs")
def test_java_admin_without_an_authorizer(java: Java, node: Node) -> None:
    everything = [None] * 7
    with pytest.raises(HarnessError) as refused:
        java.ask("describe_acls", node.bootstrap, filter=everything)
    assert refused.value.name == "SecurityDisabledException"


@pytest.mark.feature("ACLs")
@pytest.mark.parametrize("client", [Confluent()], ids=["confluent-kafka"])
def test_confluent(client: Confluent, guarded: Node, new_name: Names) -> None:
    name = new_name("acl")
    admin = AdminClient({"bootstrap.servers": guarded.bootstrap})
    place = ResourceType.TOPIC, name, ResourcePatternType.PREFIXED
    binding = AclBinding(*place, "User:x", "*", AclOperation.WRITE, AclPermissionType.ALLOW)
    wanted = AclBindingFilter(*place, None, None, AclOperation.ANY, AclPermissionType.ANY)
    admin.create_acls([binding])[binding].result(WAIT_S)
    until(lambda: admin.describe_acls(wanted).result(WAIT_S), lambda found: found == [binding])
    assert admin.delete_acls([wanted])[wanted].result(WAIT_S) == [binding]
    until(lambda: admin.describe_acls(wanted).result(WAIT_S), lambda found: found == [])


@pytest.mark.feature("ACLs")
@pytest.mark.parametrize("client", [KafkaPython()], ids=["kafka-python"])
def test_kafka_python(client: KafkaPython, guarded: Node, new_name: Names) -> None:
    from kafka.admin import (
        ACL,
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        ResourcePattern,
        ResourcePatternFilter,
    )
    from kafka.admin import ResourceType as Kind

    name = new_name("acl")
    admin: Any = kafka.KafkaAdminClient(bootstrap_servers=guarded.bootstrap)
    try:
        entry = ACL(
            principal="User:x",
            host="*",
            operation=ACLOperation.READ,
            permission_type=ACLPermissionType.ALLOW,
            resource_pattern=ResourcePattern(Kind.TOPIC, name, ACLResourcePatternType.LITERAL),
        )
        wanted = ACLFilter(
            principal=None,
            host=None,
            operation=ACLOperation.ANY,
            permission_type=ACLPermissionType.ANY,
            resource_pattern=ResourcePatternFilter(Kind.TOPIC, name, ACLResourcePatternType.ANY),
        )
        assert len(admin.create_acls([entry])["succeeded"]) == 1
        until(lambda: admin.describe_acls(wanted)[0], lambda found: found == [entry])
        ((_, removed, _),) = admin.delete_acls([wanted])
        assert removed == [entry]
    finally:
        admin.close()


@pytest.mark.feature("ACLs")
@pytest.mark.parametrize("group_client", ["franz-go", "kafkajs"], indirect=True)
def test_other_admins(group_client: LineClient, guarded: Node, new_name: Names) -> None:
    name = new_name("acl")
    acls = [
        ["GROUP", name, "PREFIXED", "User:a", "*", "READ", "ALLOW"],
        ["TOPIC", name, "LITERAL", "User:a", "*", "READ", "ALLOW"],
        ["TOPIC", name, "LITERAL", "User:b", "10.0.0.1", "ALL", "DENY"],
        ["TRANSACTIONAL_ID", name, "LITERAL", "User:a", "*", "WRITE", "ALLOW"],
    ]

    def found(verb: str, *filter: str | None) -> list[list[str]]:
        return sorted(group_client.ask(verb, guarded.bootstrap, filter=filter))

    everything = (None, name, None, None, None, None, None)
    group_client.ask("create_acls", guarded.bootstrap, acls=acls)
    until(lambda: found("describe_acls", *everything) == acls)
    matching = ("TOPIC", name, "MATCH", "User:b", None, None, "DENY")
    assert found("describe_acls", *matching) == [acls[2]]
    assert found("delete_acls", *matching) == [acls[2]]
    assert found("delete_acls", *everything) == [acls[0], acls[1], acls[3]]
    until(lambda: found("describe_acls", *everything) == [])


@pytest.mark.feature("ACLs")
@pytest.mark.parametrize("group_client", ["franz-go", "kafkajs"], indirect=True)
def test_other_admins_without_an_authorizer(group_client: LineClient, node: Node) -> None:
    with pytest.raises(HarnessError, match=r"SECURITY_DISABLED|Security features are disabled"):
        group_client.ask("describe_acls", node.bootstrap, filter=[None] * 7)


@pytest.mark.slow
@pytest.mark.tool("data directory of Kafka 4.3.1")
@pytest.mark.feature("ACLs")
def test_acls_move_with_the_directory(java_tools: None, tmp_path: Path, java_commands: JavaServer) -> None:
    """From a real Kafka to Ottla and back: each serves what the other wrote."""

    def listed(bootstrap: str) -> list[str]:
        out = kafka_acls(java_commands, bootstrap, "--list")
        return sorted(line for line in out.splitlines() if line.strip())

    def add(bootstrap: str, principal: str, *words: str) -> None:
        kafka_acls(java_commands, bootstrap, "--add", "--allow-principal", principal, "--operation", "Read", *words)
        until(lambda: listed(bootstrap), lambda found: principal in "".join(found))

    theirs = RealKafka(tmp_path, properties=GUARDED).start()
    try:
        add(theirs.bootstrap, "User:theirs", "--topic", "t", "--group", "g")
        add(theirs.bootstrap, "User:prefix", "--topic", "p", "--resource-pattern-type", "prefixed")
        before = listed(theirs.bootstrap)
        theirs.stop()
        ours = OttlaNode.in_place_of(theirs).start()
        try:
            assert listed(ours.bootstrap) == before
            add(ours.bootstrap, "User:ours", "--topic", "u")
            kafka_acls(java_commands, ours.bootstrap, "--remove", "--force", "--group", "g")
            after = listed(ours.bootstrap)
            assert "User:ours" in "".join(after) and "GROUP" not in "".join(after)
        finally:
            ours.stop()
        theirs.start()
        assert listed(theirs.bootstrap) == after
        theirs.stop()
    finally:
        theirs.kill()
