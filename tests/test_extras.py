"""Each extra of pyproject.toml brings all that it needs, and the core works without any: in environments of their own.

The extras for Spark are tried in tests/spark/runtime/test_extra.py.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.support.extras import make_environment, required
from tests.support.waiting import WAIT_S

pytestmark = pytest.mark.slow

SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
PUBLIC_NAMES = "import ottla; print(len([getattr(ottla, name) for name in ottla.__all__]))"
ARROW = """
import sys
from ottla import Blocking, Span
with Blocking(sys.argv[1]) as client:
    print(sum(batch.num_rows for batch in client.iterate(client.ranges([Span("orders", 0)]).arrow())))
"""


class Node(NamedTuple):
    """`ottla up` in an environment with nothing but the core, and the addresses that it prints."""

    python: Path
    bootstrap: str
    registry: str


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    python = make_environment(tmp_path_factory.mktemp("core"))
    words = [str(python), "-m", "ottla", "up", "--ephemeral", "-l", "127.0.0.1:0", "-r", "127.0.0.1:0"]
    words += ["--console", "off"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=alone()) as process:
        try:
            assert process.stdout is not None
            bootstrap = process.stdout.readline().split(" at ")[1].strip()
            registry = next(line for line in process.stdout if line.startswith("Schema registry at ")).split()[-1]
            up = Node(python, bootstrap, registry)
            assert ottla(up, "schema", "register", "orders-value", "-", stdin=SCHEMA).returncode == 0
            assert ottla(up, "produce", "orders", '{"id": 7}', "--value", "avro").returncode == 0
            yield up
        finally:
            process.terminate()


def alone() -> dict[str, str]:
    """This process' environment, without the packages that it has beside its own."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def ottla(
    node: Node, *arguments: str, python: Path | None = None, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with the Python of an environment, the core's unless given."""
    addresses = {"OTTLA_BOOTSTRAP": node.bootstrap, "OTTLA_REGISTRY": node.registry}
    words = [str(python or node.python), "-m", "ottla", *arguments]
    return subprocess.run(
        words, input=stdin, capture_output=True, text=True, timeout=WAIT_S, env=alone() | addresses, check=False
    )


def test_the_core_has_only_its_own_packages() -> None:
    core = required()
    assert {"cramjam", "crc32c", "typer", "starlette"} <= core
    assert not core & {"pytest", "numpy", "pyarrow", "duckdb", "pyspark", "fastavro", "pytz"}


def test_the_core_serves_produces_and_consumes(node: Node) -> None:
    done = ottla(node, "consume", "orders", "--from-beginning", "-n", "1", "--value", "avro", "-F", "raw")
    assert json.loads(done.stdout) == {"id": 7}, done.stderr
    words = [str(node.python), "-c", PUBLIC_NAMES]
    found = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, env=alone(), check=False)
    assert int(found.stdout) > 50, found.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["sql", "select 1"], "sql"),
        (["demo", "--once"], "spark"),
        (["pipeline", "check", "pipeline.py"], "spark"),
    ],
    ids=["sql", "demo", "pipeline"],
)
def test_the_core_says_which_extra_a_command_needs(node: Node, words: list[str], extra: str) -> None:
    done = ottla(node, *words)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "pip install" in done.stderr and extra in done.stderr


def test_arrow_reads_columns(node: Node, tmp_path: Path) -> None:
    words = [str(make_environment(tmp_path, "arrow")), "-c", ARROW, node.bootstrap]
    done = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, env=alone(), check=False)
    assert done.stdout.strip() == "1", done.stderr


def test_sql_shows_all_columns(node: Node, tmp_path: Path) -> None:
    python = make_environment(tmp_path, "sql")
    query = "select * from topic('orders')"
    row = json.loads(ottla(node, "sql", query, "--json", python=python).stdout)
    assert row["topic"] == "orders" and row["value"] == {"id": 7} and row["timestamp"].endswith("+00:00")
    table = ottla(node, "sql", query, python=python)
    assert table.returncode == 0 and len(table.stdout.splitlines()) == 2, table.stderr
