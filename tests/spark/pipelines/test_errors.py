"""What is wrong with a pipeline is one line with file and line: `ottla pipeline check` and `run`, on a real Spark."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes.node import OttlaNode
from tests.support.processes.registry import RegistryProcess, ask
from typer.testing import CliRunner

from ottla.cli.app import app
from ottla.cli.terminal import output
from ottla.client.blocking.blocking import Blocking
from ottla.client.options import wall_clock_ms
from ottla.spark.pipelines.status import Board
from ottla.spark.runtime import quiet

pytestmark = [pytest.mark.spark]

PYTHON = """from ottla.spark import late_to, pipeline, to, topic

@pipeline.stream
def orders():
    return topic("errors.orders").selectExpr("cast(key as string) key", "cast(value as string) text")

@pipeline.query
def copies(orders):
    return to(orders, "errors.copies")
"""
SQL = """-- orders
CREATE STREAM orders FROM TOPIC 'errors.orders' WITH (starting = 'latest');

INSERT INTO TOPIC 'errors.copies' WITH (key = 'key')
  SELECT CAST(key AS STRING) AS key, CAST(value AS STRING) AS text FROM orders;
"""
AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
Check = Callable[..., list[str]]


@pytest.fixture(scope="module")
def topics(node: OttlaNode) -> None:
    with Blocking(node.bootstrap) as client:
        for name in ("errors.orders", "errors.copies"):
            client.admin.topics.create(name, 1)


@pytest.fixture
def client(node: OttlaNode) -> Iterator[Blocking]:
    with Blocking(node.bootstrap) as made:
        yield made


@pytest.fixture
def check(
    topics: None, node: OttlaNode, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Check]:
    """The errors that the command prints, without the file's folder; nothing for a pipeline that is right."""
    from ottla.cli.pipeline import parts as pipeline_parts

    def session(*given: Any, is_silent: bool = False) -> Any:
        spark.conf.set("spark.ottla.bootstrap", node.bootstrap)
        if given[-1] is not None:
            spark.conf.set("spark.ottla.registry", given[-1])
        return nullcontext(spark)

    monkeypatch.setattr(pipeline_parts, "session", session)
    quiet.mute()

    def run(text: str, *options: str, name: str = "shop.py", command: str = "check") -> list[str]:
        file = tmp_path / name
        file.write_text(text)
        output._console.cache_clear()  # consoles hold on to the streams of the run that made them
        done = CliRunner().invoke(app, ["pipeline", command, str(file), "--bootstrap", node.bootstrap, *options])
        assert "Traceback" not in done.stderr
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert done.exit_code == (1 if errors else 0), done.output
        return [line.removeprefix("error: ").replace(f"{tmp_path}/", "") for line in errors]

    yield run
    spark.conf.unset("spark.ottla.registry")


def test_what_is_right_is_not_complained_about(check: Check) -> None:
    assert check(PYTHON) == []
    assert check(SQL, name="shop.sql") == []


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_topic_that_is_not_there(check: Check, client: Blocking, command: str) -> None:
    no_source = PYTHON.replace("errors.orders", "errors.order")
    assert check(no_source, command=command) == ["shop.py:7: copies: there is no topic 'errors.order' to read from"]
    no_target = SQL.replace("errors.copies", "errors.copy")
    assert check(no_target, name="shop.sql", command=command) == [
        "shop.sql:4: errors.copy: there is no topic 'errors.copy' to write to: ottla topic create errors.copy"
    ]
    if command == "run":
        told = Board(client).all(wall_clock_ms())["shop"]
        assert told.state == "failed" and "there is no topic 'errors.copy' to write to" in str(told.error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            PYTHON.replace('"errors.orders"', '"errors.orders", failOnDataLos="false"'),
            "shop.py:5: orders: unknown option 'failondatalos': did you mean 'failOnDataLoss'?",
        ),
        (
            PYTHON.replace('"errors.copies"', '"errors.copies", delivry="at_least_once"'),
            "shop.py:7: copies: unknown option 'delivry': did you mean 'delivery'?",
        ),
        (
            PYTHON.replace("query\n", "query(output='errors.copies', tirgger='1 second')\n"),
            "shop.py:7: @pipeline.query has no setting 'tirgger': did you mean 'trigger'?",
        ),
    ],
)
def test_options_with_typos(check: Check, text: str, error: str) -> None:
    assert check(text) == [error]


MANY = """from pyspark.sql import functions as F
from ottla.spark import pipeline, topic

@pipeline.stream
def raw():
    return topic("errors.orders")

@pipeline.stream
def wrong(raw):
    return raw.select("usr")

@pipeline.stream
def above(wrong):
    return wrong

@pipeline.query(output="errors.nowhere")
def first(raw):
    return raw.select("value")

@pipeline.query(output="errors.copies")
def second(above):
    return above

@pipeline.query(output="errors.copies")
def third():
    return "SELECT value FROM above"

@pipeline.query(output="errors.copies")
def fourth(raw):
    return raw.select("value", F.col("nothing"))
"""


def test_each_problem_is_told_once_in_the_order_of_the_file(check: Check) -> None:
    found = [line.partition(" [")[0] for line in check(MANY)]
    assert found == [
        "shop.py:10: wrong:",
        "shop.py:16: first: there is no topic 'errors.nowhere' to write to: ottla topic create errors.nowhere",
        "shop.py:30: fourth:",
    ]


def test_options_with_typos_in_sql(check: Check) -> None:
    (error,) = check(SQL.replace("starting =", "startingOfsets ="), name="shop.sql")
    assert error.startswith("shop.sql:2: orders: ") and error.endswith("did you mean 'startingOffsets'?")
    (error,) = check(SQL.replace("key = 'key'", "kye = 'key'"), name="shop.sql")
    assert error == "shop.sql:4: errors.copies: unknown option 'kye'"
    (error,) = check(SQL.replace("AS text FROM orders", "AS text FROM order"), name="shop.sql")
    assert error.startswith("shop.sql:4: errors.copies: [TABLE_OR_VIEW_NOT_FOUND]")


def test_columns_that_do_not_fit_the_subject(check: Check, node: OttlaNode, tmp_path: Path) -> None:
    registry = RegistryProcess(tmp_path, node.bootstrap).start()
    try:
        told = ("--registry", registry.url)
        (error,) = check(PYTHON.replace('"errors.orders"', '"errors.orders", value="avro"'), *told)
        assert error.startswith("shop.py:5: orders: ") and "errors.orders-value" in error
        typed = PYTHON.replace('"errors.copies"', '"errors.copies", format="avro"')
        assert check(typed, *told) == []  # there is no schema yet: the first run registers one
        assert ask(registry.url, "POST", "/subjects/errors.copies-value/versions", {"schema": AVRO}).status == 200
        (error,) = check(typed, *told)
        assert error.startswith("shop.py:7: copies: its columns do not fit the schema of topic 'errors.copies': ")
        assert "expected: Order" in error and "oldSchema" not in error  # the reason, not the schema
        latest = PYTHON.replace('"errors.copies"', '"errors.copies", format="avro", **{"value.version": "latest"}')
        (error,) = check(latest, *told)
        assert error.endswith(" of topic 'errors.copies': the schema has no field text")
        assert ask(registry.url, "GET", "/subjects/errors.copies-value/versions").content == [1]
    finally:
        registry.stop()
