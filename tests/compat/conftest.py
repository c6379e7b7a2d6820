"""The node under test, the clients, and the scoreboard that docs/compatibility.md is made from.

The same tests run against Ottla (the default) and a real Kafka (`--against kafka`), which proves the tests themselves.
"""

import itertools
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from tests.support import tools
from tests.support.clients import go, nodejs
from tests.support.clients.assigned import Aio, Client, Confluent, Java, KafkaPython
from tests.support.clients.members import GroupClient, JavaGroups, LineClient
from tests.support.clients.python_members import AioGroups, ConfluentGroups, KafkaPythonGroups
from tests.support.clients.sharers import ConfluentShares, LineShares, ShareClient
from tests.support.java.programs import JavaServer
from tests.support.lines import LineServer
from tests.support.processes.brisk import brisk
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.same import Both, Side
from tests.support.runs.scoreboard import Scoreboard, is_whole_run

from ottla.wire.message import Request

Node = OttlaNode | RealKafka
MakeTopic = Callable[..., str]
Names = Callable[[str], str]
CLIENTS = ("java-4.3.1", "java-3.9.2", "confluent-kafka", "aiokafka", "kafka-python")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/compat/" in item.path.as_posix():
            item.add_marker(pytest.mark.compat)
            # kafka-python reads its message definitions in a way that Python 3.11 deprecates.
            item.add_marker(pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"))


@pytest.fixture(scope="session")
def against(request: pytest.FixtureRequest) -> str:
    return str(request.config.getoption("--against"))


@pytest.fixture(scope="session")
def ottla_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """One Ottla node for the session, started with nothing but a directory and an address."""
    node = OttlaNode(tmp_path_factory.mktemp("ottla"))
    try:
        yield node.start()
    finally:
        node.stop()


@pytest.fixture(scope="session")
def node(against: str, request: pytest.FixtureRequest) -> Node:
    """What the tests of this run are about."""
    found: Node = request.getfixturevalue("real_kafka" if against == "kafka" else "ottla_node")
    return found


@pytest.fixture(scope="session")
def brisk_node(against: str, java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node for all tests of groups and transactions (see tests.support.processes.brisk)."""
    node = brisk(against, tmp_path_factory.mktemp("brisk"))
    try:
        yield node.start()
    finally:
        node.stop()


@pytest.fixture(scope="session")
def mortal(against: str, java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that tests may kill, if they start it again."""
    node = brisk(against, tmp_path_factory.mktemp("mortal"))
    try:
        yield node.start()
    finally:
        node.stop()


@pytest.fixture(scope="session")
def both(
    against: str, real_kafka: RealKafka, java_431: Java, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    """A real Kafka and its twin, started from the same properties: Ottla, or a second Kafka to prove the tests."""
    directory = tmp_path_factory.mktemp("twin")
    if against == "kafka":
        twin: Node = RealKafka(directory)
    else:
        twin = OttlaNode(directory, properties=real_kafka.properties)
    try:
        twin.start()
        texts = java_431.ask("error_texts", real_kafka.bootstrap)
        sides = Both(Side("kafka", real_kafka.bootstrap), Side("ottla", twin.bootstrap), texts)
        yield sides
        sides.kafka.close()
        sides.ottla.close()
    finally:
        twin.stop()


def versions_of(cls: type[Request]) -> range:
    """The versions that clients may use: an unstable latest one is not offered."""
    low, high = cls.versions
    return range(low, high + (not cls.latest_unstable))


@pytest.fixture(scope="session")
def java_431(java_clients_431: JavaServer) -> Java:
    return Java(java_clients_431, "4.3.1")


@pytest.fixture(scope="session")
def java_392(java_clients_392: JavaServer) -> Java:
    return Java(java_clients_392, "3.9.2")


def _client(name: str, request: pytest.FixtureRequest) -> Client:
    if name.startswith("java"):
        client: Client = request.getfixturevalue("java_431" if name.endswith("4.3.1") else "java_392")
        return client
    return {"confluent-kafka": Confluent, "aiokafka": Aio, "kafka-python": KafkaPython}[name]()


@pytest.fixture(scope="session", params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Client:
    return _client(request.param, request)


@pytest.fixture(scope="session")
def all_clients(request: pytest.FixtureRequest) -> list[Client]:
    return [_client(name, request) for name in CLIENTS]


@pytest.fixture(scope="session")
def franz_go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineServer]:
    tools.require(tools.missing_go())
    server = go.harness(tmp_path_factory.mktemp("go") / "stderr.log")
    yield server
    server.close()


@pytest.fixture(scope="session")
def kafkajs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineServer]:
    tools.require(tools.missing_node())
    server = nodejs.harness(tmp_path_factory.mktemp("node") / "stderr.log")
    yield server
    server.close()


@pytest.fixture(scope="session")
def group_client(request: pytest.FixtureRequest) -> GroupClient:
    """The client that the test's parameter names (parametrized indirectly)."""
    value = request.getfixturevalue
    clients: dict[str, Callable[[], GroupClient]] = {
        "java-4.3.1": lambda: JavaGroups(value("java_clients_431"), "4.3.1"),
        "java-3.9.2": lambda: JavaGroups(value("java_clients_392"), "3.9.2"),
        "confluent-kafka": ConfluentGroups,
        "aiokafka": AioGroups,
        "kafka-python": KafkaPythonGroups,
        "franz-go": lambda: LineClient(value("franz_go"), "franz-go", go.VERSION, ("cooperative-sticky", "consumer")),
        "kafkajs": lambda: LineClient(value("kafkajs"), "kafkajs", nodejs.VERSION, ("roundrobin",)),
    }
    return clients[request.param]()


@pytest.fixture(scope="session")
def share_client(request: pytest.FixtureRequest) -> ShareClient:
    """The client that the test's parameter names (parametrized indirectly)."""
    value = request.getfixturevalue
    clients: dict[str, Callable[[], ShareClient]] = {
        "java-4.3.1": lambda: LineShares(value("java_shares"), "java", "4.3.1"),
        "confluent-kafka": ConfluentShares,
        "franz-go": lambda: LineShares(value("franz_go"), "franz-go", go.VERSION),
    }
    return clients[request.param]()


@pytest.fixture(scope="session", params=("4.3.1", "3.9.2"))
def java(request: pytest.FixtureRequest) -> Java:
    found: Java = request.getfixturevalue("java_431" if request.param == "4.3.1" else "java_392")
    return found


@pytest.fixture(scope="session")
def new_name() -> Callable[[str], str]:
    """Names that no other test uses."""
    numbers = itertools.count(1)
    return lambda prefix: f"{prefix}-{next(numbers)}"


@pytest.fixture(scope="session")
def make_topic(node: Node, java_431: Java, new_name: Callable[[str], str]) -> MakeTopic:
    """make_topic(prefix, partitions=1, **{"cleanup.policy": …}): a new topic on the node."""

    def make(prefix: str = "t", partitions: int = 1, **configs: str) -> str:
        name = new_name(prefix)
        java_431.ask("create_topic", node.bootstrap, topic=name, partitions=partitions, configs=configs)
        return name

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, pytest.TestReport]:
    report: pytest.TestReport = yield
    # Made here and not at the start: a run of all tests loads this file only when it has got to this folder.
    item.config.stash.setdefault(Scoreboard.KEY, Scoreboard()).note(item, report)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    scoreboard = session.config.stash.get(Scoreboard.KEY, None)
    if scoreboard is not None and session.config.getoption("--against") == "ottla":
        scoreboard.save(anew=is_whole_run(session.config))
