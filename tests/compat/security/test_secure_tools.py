"""Kafka's command-line tools over SASL_SSL, with `--command-config`, as a super user and as one who may little."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.compat.conftest import Names
from tests.compat.security.secure_node import SecureNode
from tests.support.clients.python_members import ConfluentTransactional
from tests.support.java.programs import JavaServer, run_tool
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.model.resources import Resource, ResourceType

TOOLS = "org.apache.kafka.tools"


class Tools:
    """Kafka's tools as one user."""

    def __init__(self, java: JavaServer, secure: SecureNode, user: str, mechanism: str, directory: Path) -> None:
        self._java = java
        self._bootstrap = secure.at("SASL_SSL")
        security = secure.security("SASL_SSL", mechanism, user)
        self.path = security.command_config(directory / f"{user}.properties")

    def __call__(self, main: str, *words: str, fails: bool = False, before: str = "") -> str:
        """Run a tool. `before` is a word that the tool wants before all options."""
        args = ["--bootstrap-server", self._bootstrap, "--command-config", str(self.path), *words]
        args = [before, *args] if before else args
        answer = self._java.ask({"main": main, "args": args})
        assert (answer["code"] != 0) == fails, answer
        return str(answer["out"]) + str(answer.get("err", ""))

    def console(self, main: str, *words: str, text: str = "") -> str:
        args = ["--bootstrap-server", self._bootstrap, "--command-config", str(self.path), *words]
        done = run_tool(f"{TOOLS}.{main}", *args, stdin=text)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def admin(java_commands: JavaServer, secure: SecureNode, tmp_path: Path) -> Tools:
    return Tools(java_commands, secure, "admin", "SCRAM-SHA-512", tmp_path)


@pytest.fixture
def alice(java_commands: JavaServer, secure: SecureNode, tmp_path: Path) -> Tools:
    return Tools(java_commands, secure, "alice", "PLAIN", tmp_path)


def test_topics(admin: Tools, alice: Tools, new_name: Names) -> None:
    hers, another = new_name("alice"), new_name("hidden")
    alice(f"{TOOLS}.TopicCommand", "--create", "--topic", hers, "--partitions", "2")
    admin(f"{TOOLS}.TopicCommand", "--create", "--topic", another)
    until(lambda: admin(f"{TOOLS}.TopicCommand", "--list"), lambda out: hers in out and another in out)
    listed = alice(f"{TOOLS}.TopicCommand", "--list")
    assert hers in listed and another not in listed
    alice(f"{TOOLS}.TopicCommand", "--create", "--topic", new_name("hidden"), fails=True)
    alice(f"{TOOLS}.TopicCommand", "--delete", "--topic", hers)


def test_users_and_quotas(admin: Tools, alice: Tools, new_name: Names) -> None:
    user = new_name("user")
    entity = ("--entity-type", "users", "--entity-name", user)
    admin("kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", "SCRAM-SHA-256=[password=secret]")
    admin("kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", "producer_byte_rate=1000")

    def described() -> str:
        return admin("kafka.admin.ConfigCommand", "--describe", *entity)

    out = until(described, lambda text: "SCRAM-SHA-256" in text and "producer_byte_rate=1000" in text)
    assert "secret" not in out
    alice("kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", "producer_byte_rate=1", fails=True)


def test_acls(admin: Tools, alice: Tools, new_name: Names) -> None:
    name = new_name("acl")
    words = ("--add", "--allow-principal", "User:bob", "--operation", "Read", "--topic", name)
    admin(f"{TOOLS}.AclCommand", *words)
    until(lambda: admin(f"{TOOLS}.AclCommand", "--list", "--topic", name), lambda out: "User:bob" in out)
    assert "ClusterAuthorizationException" in alice(f"{TOOLS}.AclCommand", *words, fails=True)


def test_console_clients_and_groups(admin: Tools, alice: Tools, secure: SecureNode, new_name: Names) -> None:
    name = new_name("alice")
    secure.create(name)
    alice.console("ConsoleProducer", "--topic", name, text="one\ntwo\n")
    words = ("--topic", name, "--group", name, "--from-beginning", "--max-messages", "2")
    assert alice.console("consumer.ConsoleConsumer", *words).split() == ["one", "two"]
    groups = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
    out = alice(groups, "--describe", "--group", name)
    assert name in out
    assert "GroupAuthorizationException" in alice(groups, "--describe", "--group", "hidden")


def test_verifiable_clients(alice: Tools, secure: SecureNode, new_name: Names) -> None:
    """In JVMs of their own: they report when the JVM ends."""
    name = secure.create(new_name("alice"))
    said = alice.console("VerifiableProducer", "--topic", name, "--max-messages", "5")
    assert '"acked":5' in said
    words = ("--topic", name, "--group-id", name, "--max-messages", "5", "--reset-policy", "earliest")
    events = map(json.loads, alice.console("VerifiableConsumer", *words).splitlines())
    assert sum(each["count"] for each in events if each["name"] == "records_consumed") == 5


def test_metadata_quorum(admin: Tools, alice: Tools) -> None:
    assert "LeaderId:" in admin(f"{TOOLS}.MetadataQuorumCommand", "describe", "--status")
    refused = alice(f"{TOOLS}.MetadataQuorumCommand", "describe", "--status", fails=True)
    assert "ClusterAuthorizationException" in refused


def test_delegation_tokens(admin: Tools, alice: Tools) -> None:
    out = alice(f"{TOOLS}.DelegationTokenCommand", "--create", "--max-life-time-period", "-1")
    assert "User:alice" in out
    until(
        lambda: alice(f"{TOOLS}.DelegationTokenCommand", "--describe", "--owner-principal", "User:alice"),
        lambda text: "User:alice" in text,
    )


class Case(NamedTuple):
    """A tool with words, and what it says to a super user. `{topic}` stands for a topic with three offsets, whose name
    is also a transactional id; `{first}` for a file that names its first offset for deletion.
    """

    main: str
    words: str
    says: str = ""
    before: str = ""


EVERY_TOOL = {
    "get-offsets": Case("GetOffsetShell", "--topic {topic}", "{topic}:0:"),
    "log-dirs": Case("LogDirsCommand", "--describe --topic-list {topic}", '"partition":"{topic}-0"'),
    "transactions": Case("TransactionsCommand", "list", "{topic}"),
    "reassign-partitions": Case("reassign.ReassignPartitionsCommand", "--list", "No partition reassignments found"),
    "leader-election": Case(
        "LeaderElectionCommand", "--election-type preferred --topic {topic} --partition 0", "Valid replica already"
    ),
    "delete-records": Case("DeleteRecordsCommand", "--offset-json-file {first}", "low_watermark: 1"),
    "features": Case("FeatureCommand", "describe", "metadata.version"),
    "groups": Case("GroupsCommand", "--list", "PROTOCOL"),
    "share-groups": Case("consumer.group.ShareGroupCommand", "--describe --all-groups"),
    "streams-groups": Case("streams.StreamsGroupCommand", "--describe --all-groups"),
    "producer-perf-test": Case(
        "ProducerPerformance", "--topic {topic} --num-records 10 --record-size 10 --throughput -1", "10 records sent"
    ),
    "consumer-perf-test": Case(
        "ConsumerPerformance", "--topic {topic} --group {topic} --num-records 2 --from-latest", "data.consumed.in.nMsg"
    ),
    "client-metrics": Case("ClientMetricsCommand", "--list"),
    "cluster": Case("ClusterTool", "", "Cluster ID: ", before="cluster-id"),
    "cluster-endpoints": Case("ClusterTool", "", "unfenced", before="list-endpoints"),
    "broker-api-versions": Case("BrokerApiVersionsCommand", "", "Produce(0)"),
    "e2e-latency": Case(
        "EndToEndLatency", "--topic {topic} --num-records 3 --producer-acks all --record-size 9", "Percentiles"
    ),
    "console-share-consumer": Case(
        "consumer.ConsoleShareConsumer",
        "--topic {topic} --group {topic}-share --max-messages 1 --timeout-ms 60000",
        "a",
    ),
    "share-consumer-perf-test": Case(
        "ShareConsumerPerformance", "--topic {topic} --group {topic}-share --num-records 1", "data.consumed.in.MB"
    ),
    "streams-application-reset": Case(
        "StreamsResetter",
        "--application-id {topic}-app --input-topics {topic}",
        "Reset-offsets for input topics [{topic}]",
    ),
}
# What Kafka's tools say to alice about a topic that is not hers, and about the cluster.
REFUSED = {
    "log-dirs": "ClusterAuthorizationException",
    "reassign-partitions": "ClusterAuthorizationException",
    "leader-election": "Not authorized to perform leader election",
    "delete-records": "TopicAuthorizationException",
    "get-offsets": "Could not match any topic-partitions with the specified filters",
    "client-metrics": "Cluster authorization failed",
    "streams-application-reset": "AuthorizationException",
}
COMPLETES = ("delete-records",)  # it says of each partition how it went, and succeeds


class Stage(NamedTuple):
    """The names that cases use."""

    topic: str
    first: Path

    def fill(self, text: str) -> str:
        return text.replace("{topic}", self.topic).replace("{first}", str(self.first))


@pytest.fixture(scope="module")
def stage(secure: SecureNode, new_name: Names, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A topic that alice may not see, with a transaction of three records."""
    topic = secure.create(new_name("hidden"))
    producer = ConfluentTransactional(secure.at("PLAINTEXT"), topic)
    producer.begin()
    producer.send(topic, 0, ["a", "b"])
    producer.commit()  # whose marker is a third offset
    with Blocking(secure.at("PLAINTEXT")) as client:
        client.admin.configs.set(
            Resource(ResourceType.GROUP, f"{topic}-share"), {"share.auto.offset.reset": "earliest"}
        )
    first = tmp_path_factory.mktemp("tools") / "first.json"
    first.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 1}], "version": 1}))
    return Stage(topic, first)


@pytest.mark.parametrize("name", EVERY_TOOL)
def test_every_tool(name: str, admin: Tools, stage: Stage) -> None:
    case = EVERY_TOOL[name]
    said = admin(f"{TOOLS}.{case.main}", *stage.fill(case.words).split(), before=case.before)
    assert stage.fill(case.says) in said


@pytest.mark.parametrize("name", REFUSED)
def test_who_may_not_is_told_so(name: str, alice: Tools, stage: Stage) -> None:
    case = EVERY_TOOL[name]
    words = stage.fill(case.words).split()
    said = alice(f"{TOOLS}.{case.main}", *words, before=case.before, fails=name not in COMPLETES)
    assert REFUSED[name] in said
