"""Pipeline files as they are read: every mistake has its line. No Spark is started here."""

from pathlib import Path

import pytest

from ottla.spark.pipelines.definition import PipelineError
from ottla.spark.pipelines.load import Pipeline, load
from ottla.spark.pipelines.statements import read_statements, split

GOOD = """
from ottla.spark import pipeline

@pipeline.stream
def orders(spark):
    return spark

@pipeline.stream("big-ones")
def big(orders):
    return orders

@pipeline.query(output="out", mode="update", trigger="5 seconds")
def totals(orders):
    return orders

@pipeline.query("other", output="out2")
def something(orders):
    return orders
"""


def loaded(tmp_path: Path, text: str, name: str = "shop.py") -> Pipeline:
    path = tmp_path / name
    path.write_text(text)
    return load(path)


def test_decorated_functions_are_found_in_order_with_their_lines(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD)
    assert found.name == "shop"
    assert [(each.name, each.line, each.needs) for each in found.streams] == [
        ("orders", 4, ("spark",)),
        ("big-ones", 8, ("orders",)),
    ]
    assert [(each.name, each.output, each.mode, each.trigger) for each in found.queries] == [
        ("totals", "out", "update", "5 seconds"),
        ("other", "out2", None, None),
    ]
    assert [found.query_name(each) for each in found.queries] == ["shop-totals", "shop-other"]


def test_decorated_functions_stay_functions(tmp_path: Path) -> None:
    found = loaded(tmp_path, GOOD)
    assert found.queries[0].build("anything") == "anything"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", r"shop\.py: there is no query"),
        ("x = (\n", r"shop\.py:1: .*never closed"),
        ("\nimport nothing_like_this\n", r"shop\.py:2: ModuleNotFoundError"),
        (
            GOOD.replace("def totals(orders)", "def totals(order)"),
            r"shop\.py:12: totals: .*'order': did you mean 'orders'",
        ),
        (GOOD.replace("update", "upsert"), r"shop\.py:12: totals: mode is one of append"),
        (GOOD.replace('"other"', '"totals"'), r"shop\.py:16: totals: the name is taken already, in line 12"),
        (GOOD.replace("def orders(spark)", "def orders(orders)"), r"shop\.py:4: orders: needs itself"),
        (GOOD.replace('"out2"', '"out2", kee="x"'), r"shop\.py:16: @pipeline\.query has no setting 'kee': .*'key'\?"),
        (
            "from pyspark.errors import PySparkRuntimeError as E\n"
            "raise E(errorClass='SESSION_OR_CONTEXT_NOT_EXISTS', messageParameters={})  # as F.udf('string') does",
            r"shop\.py:2: there is no Spark session yet when the file is loaded: .*@F\.udf\(StringType\(\)\)",
        ),
        (GOOD.replace('"other"', '"a b"'), r"shop\.py:16: a b: names have letters"),
        (GOOD.replace('"out2"', '"out2", restarts=-1'), r"shop\.py:16: other: restarts is a number from 0 on"),
        (
            GOOD.replace('"out"', '"out", checkpoint="/c"').replace('"out2"', '"out2", checkpoint="/c/"'),
            r"shop\.py:16: other: its checkpoint is that of totals already, in line 12",
        ),
    ],
)
def test_mistakes_have_a_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message) as caught:
        loaded(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_files_of_another_kind_and_missing_ones(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"\.py or \.sql"):
        loaded(tmp_path, "", "shop.txt")
    with pytest.raises(PipelineError, match="there is no file"):
        load(tmp_path / "nothing.py")


SQL = """-- a shop; with a semicolon
CREATE STREAM orders FROM TOPIC 'orders' WITH (value = 'json', `value.schema` = '{"a;": 1}', grace = '5 seconds');

/* users; */
CREATE TABLE users FROM TOPIC 'users';
CREATE VIEW big AS SELECT *, ';' AS mark FROM orders;
INSERT INTO TOPIC 'out'
  WITH (name = 'big-orders', mode = append, trigger = '1 second', restarts = 2, key = 'concat(''a'', id)')
  SELECT * FROM big;
INSERT INTO PARQUET '/lake/big' SELECT * FROM big
"""


def test_statements_are_split_where_they_end() -> None:
    assert [each.line for each in split(SQL)] == [2, 5, 6, 7, 10]


def test_statements_become_streams_and_queries() -> None:
    found = read_statements(SQL, "shop.sql")
    assert [(each.kind, each.name, each.line) for each in found] == [
        ("stream", "orders", 2),
        ("stream", "users", 5),
        ("stream", "big", 6),
        ("query", "big-orders", 7),
        ("query", "lake-big", 10),
    ]
    assert (found[3].trigger, found[3].restarts) == ("1 second", 2)
    assert found[2].build() == "SELECT *, ';' AS mark FROM orders"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1;\n", r"a\.sql:1: not a statement of a pipeline"),
        ("\n\nINSERT INTO TOPIC 'x' VALUES (1);", r"a\.sql:3: not a statement"),
        ("CREATE STREAM a FROM TOPIC 'a' WITH (x 1);", r"a\.sql:1: WITH takes name"),
        ("INSERT INTO TOPIC 'x' WITH (restarts = 'no') SELECT 1", r"a\.sql:1: restarts is a number, not 'no'"),
        ("CREATE TABLE a FROM TOPIC 'a' WITH (watermark = 't');", r"a\.sql:1: a table has no watermark"),
    ],
)
def test_statements_without_sense(text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        read_statements(text, "a.sql")
