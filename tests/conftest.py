"""Fixtures that more than one folder of tests uses: the real Kafka and the Java harnesses, one of each per session."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from tests.support import parsing, tools
from tests.support.java.programs import CLASSPATH_392, JavaServer
from tests.support.processes.kafka import RealKafka
from tests.support.processes.kdc import Kdc
from tests.support.runs.quick import pytest_collection_modifyitems as pytest_collection_modifyitems
from tests.support.runs.quick import pytest_ignore_collect as pytest_ignore_collect
from tests.support.runs.schedule import LongestFirst
from tests.support.runs.slowest import pytest_terminal_summary as pytest_terminal_summary

# A submission is judged by the same examples each time; at a desk Hypothesis looks for new ones. No example has a
# deadline: a busy machine is no finding.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "desk")
parsing.install()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only what needs no JVM, no Spark and no minutes")
    parser.addoption(
        "--against",
        choices=("ottla", "kafka"),
        default=os.environ.get("OTTLA_TEST_AGAINST", "ottla"),
        help="what the compatibility tests run against; a run against the real Kafka proves the tests themselves",
    )


@pytest.hookimpl(optionalhook=True)  # runs without xdist know no such hook
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst | None:
    return LongestFirst(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "feature(name): the column of docs/compatibility.md that this test stands for")
    config.addinivalue_line("markers", "tool(name): the row of docs/compatibility.md, where no client fixture names it")


@pytest.fixture(scope="session")
def java_tools() -> None:
    """Asks for the JDK, the Kafka jars and the compiled harnesses."""
    tools.require(tools.missing())


@pytest.fixture(scope="session")
def real_kafka(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """One real Kafka 4.3.1 for the session. Tests use topics of their own and leave broker configs as they were."""
    kafka = RealKafka(tmp_path_factory.mktemp("kafka"))
    try:
        yield kafka.start()
    finally:
        kafka.stop()


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A Kerberos realm without principals; programs of this process find it."""
    tools.require(tools.missing_kerberos())
    kdc = Kdc(tmp_path_factory.mktemp("kdc"))
    with pytest.MonkeyPatch.context() as patched:
        for name, value in kdc.environment.items():
            patched.setenv(name, value)
        try:
            yield kdc.start()
        finally:
            kdc.stop()


def _server(main_class: str, factory: pytest.TempPathFactory, **options: str) -> Iterator[JavaServer]:
    server = JavaServer(main_class, factory.mktemp("java") / "stderr.log", **options)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def java_wire(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    """Kafka's generated message classes."""
    yield from _server("ottla.WireServer", tmp_path_factory)


@pytest.fixture(scope="session")
def java_controller(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    """What Kafka's controller decides."""
    yield from _server("ottla.ControllerServer", tmp_path_factory)


@pytest.fixture(scope="session")
def java_commands(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    """Kafka's command-line tools, all in one JVM."""
    yield from _server("ottla.ToolServer", tmp_path_factory)


@pytest.fixture(scope="session")
def java_clients_431(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    """Kafka's Java producer, consumer and admin client, 4.3.1."""
    yield from _server("ottla.ClientServer", tmp_path_factory)


@pytest.fixture(scope="session")
def java_clients_392(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    """The same harness on kafka-clients 3.9.2."""
    yield from _server("ottla.ClientServer", tmp_path_factory, classpath=CLASSPATH_392)


@pytest.fixture(scope="session")
def java_shares(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    """Kafka's Java share consumer, 4.3.1."""
    yield from _server("ottla.ShareServer", tmp_path_factory)
