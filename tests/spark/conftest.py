"""One Spark session and one node per test process; tests use topics of their own."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support import tools
from tests.support.java import archives
from tests.support.processes.node import OttlaNode
from tests.support.spark import sessions as sparks


@pytest.fixture(scope="session")
def spark_tools(java_tools: None) -> Iterator[None]:
    """Asks for pyspark and the jars of Spark's own connector, spark-avro and Delta. JVMs are told to be brief."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")
    tools.require(None if tools.SPARK_LIBS.exists() else "the Spark jars are not installed; run scripts/tools")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in archives.spark_environment().items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def spark(spark_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A classic local session with two cores; connector, spark-avro and Delta on its class path."""
    directory = tmp_path_factory.mktemp("spark")
    session = sparks.start_session(
        **{"spark.sql.warehouse.dir": str(directory / "warehouse"), "spark.local.dir": str(directory / "local")}
    )
    try:
        yield session
    finally:
        sparks.stop_session(session)


@pytest.fixture(scope="session")
def elsewhere(spark_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Any]]:
    """A standalone cluster or a Connect server: started when the first test asks for it, and there for the others."""
    kinds = {"standalone": sparks.StandaloneCluster, "connect": sparks.ConnectServer}
    running: dict[str, Any] = {}

    def find(kind: str) -> Any:
        if kind not in running:
            running[kind] = kinds[kind](tmp_path_factory.mktemp(kind))
        return running[kind]

    yield find
    for each in running.values():
        each.close()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """One Ottla node in a process of its own for all tests that do not kill it."""
    node = OttlaNode(tmp_path_factory.mktemp("node"))
    try:
        yield node.start()
    finally:
        node.stop()
