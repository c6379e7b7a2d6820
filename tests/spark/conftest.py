"""One Spark session and one node per test process; tests use topics of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import spark as sparks
from tests.support import tools
from tests.support.java import BRIEF
from tests.support.node import OttlaNode

CONF = Path(__file__).with_name("conf")


@pytest.fixture(scope="session", autouse=True)
def brief_jvms() -> Iterator[None]:
    """What `conf` says of drivers and executors, for launchers and daemons too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(CONF))
        patch.setenv("SPARK_LAUNCHER_OPTS", " ".join(BRIEF))
        patch.setenv("SPARK_DAEMON_JAVA_OPTS", " ".join(BRIEF))
        yield


@pytest.fixture(scope="session")
def spark_tools(java_tools: None) -> None:
    """Asks for pyspark and the jars of Spark's own connector, spark-avro and Delta."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")
    tools.require(None if tools.SPARK_LIBS.exists() else "the Spark jars are not installed; run scripts/tools")


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
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaNode]:
    """One Ottla node in a process of its own for all tests that do not kill it."""
    node = OttlaNode(tmp_path_factory.mktemp("node"))
    try:
        yield node.start()
    finally:
        node.stop()
