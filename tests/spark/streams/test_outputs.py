"""Which columns records are made of; outputs that are not topics alone: through a topic, Parquet, JDBC; and a
checkpoint that is gone."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.processes.node import OttlaNode

from ottla import spark as ottla
from ottla.client.blocking.blocking import Blocking
from ottla.spark.checkpoints import sink_id

pytestmark = [pytest.mark.spark]


class Words:
    """A topic of words, and more of them."""

    def __init__(self, client: Blocking, topic: str) -> None:
        self._client = client
        self.topic = topic
        client.admin.topics.create(topic, 2)

    def say(self, *words: str) -> None:
        for word in words:
            self._client.send(self.topic, word.encode(), word[:1].encode())

    def heard(self) -> Any:
        return ottla.topic(self.topic).selectExpr("cast(value as string) word", "length(value) size")

    def make(self, topic: str, **configs: str) -> str:
        self._client.admin.topics.create(topic, 3, configs=configs)
        return topic

    def read(self, topic: str) -> list[tuple[bytes | None, bytes | None]]:
        return [(each.key, each.value) for each in self._client.read(topic)]


@pytest.fixture
def words(node: OttlaNode, spark: Any, request: pytest.FixtureRequest) -> Any:
    spark.conf.set("spark.ottla.bootstrap", node.bootstrap)
    with Blocking(node.bootstrap) as client:
        yield Words(client, request.node.name.replace("[", ".").rstrip("]"))


def run(output: Any, checkpoint: Path) -> None:
    query = output.start(checkpoint=str(checkpoint), trigger="once")
    assert query.awaitTermination(120)


PLACED = "shop string, topic string, partition int, timestamp string, cents int"


@pytest.mark.parametrize("mode", ["json", "avro"])
def test_a_column_is_of_the_record_or_in_the_value(spark: Any, mode: str) -> None:
    """Whatever it is called: where a row came from is not where it goes, and nothing is left out."""
    from pyspark.sql import functions as F

    frame = spark.createDataFrame([("s", "books", 7, "now", 3)], PLACED)
    told: dict[str, Any] = {"bootstrap": "localhost:1"} | ({} if mode == "json" else {"format": mode})
    made = ottla.to(frame, "t", key="shop", **told).frame
    assert sorted(made.columns) == ["key", "value"]
    (row,) = made.collect()
    value = json.loads(row.value) if mode == "json" else row.value.asDict()
    assert value == {"shop": "s", "topic": "books", "partition": 7, "timestamp": "now", "cents": 3}
    # What was read, with the place of its record.
    read = frame.selectExpr("shop key", "struct(cents) value", "topic", "partition", "0L offset")
    assert ottla.to(read, "t", **told).frame.columns == ["key", "value"]
    # Where it goes, if that is asked for; dead letters beside it go where their keys say.
    assert ottla.to(read, "t", partition="partition % 4", **told).frame.first().partition == 3
    if mode == "json":
        text = read.withColumn("value", F.lit("x"))
        both = ottla.to(text, "t", partition="partition % 4", dead={"dead": text}, **told).frame
        assert sorted((each.topic, each.partition) for each in both.collect()) == [("dead", None), ("t", 3)]


@pytest.mark.parametrize("format", [None, "avro"])
def test_a_row_is_deleted_where_that_is_said_and_not_where_it_is_unknown(spark: Any, format: str | None) -> None:
    frame = spark.createDataFrame([("1", "u"), ("2", "d"), ("3", None)], "key string, op string")
    made = ottla.to_changelog(frame, "t", key="key", deleted="op = 'd'", bootstrap="localhost:1", format=format)
    assert {each.key: each.value is None for each in made.frame.collect()} == {"1": False, "2": True, "3": False}


class Metadata:
    """A session that reads the metadata of a checkpoint wherever it is."""

    def __init__(self) -> None:
        self.read = self

    def text(self, path: str) -> "Metadata":
        return self

    def collect(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(value='{"id": "q"}')]


def test_a_sink_has_one_name_however_its_checkpoint_is_written() -> None:
    spellings = ("/c/k", "/c/k/", "file:/c/k", "file:///c/k/", "/c/./k")
    assert {sink_id(Metadata(), each, "out") for each in spellings} == {"/c/k#q#out"}  # type: ignore[arg-type]
    assert sink_id(Metadata(), "s3a://c/k/", "late") == "s3a://c/k#q#late"  # type: ignore[arg-type]


def test_a_stream_goes_through_a_topic(words: Words, tmp_path: Path) -> None:
    by_size = words.make(f"{words.topic}.sizes")
    words.say("a", "bb", "cc", "ddd")
    read, query = ottla.repartition_through(
        words.heard(), by_size, checkpoint=str(tmp_path / "through"), key="cast(size as string)", value="word"
    )
    try:
        query.processAllAvailable()
        assert sorted(words.read(by_size)) == [(b"1", b"a"), (b"2", b"bb"), (b"2", b"cc"), (b"3", b"ddd")]
        counted = read.selectExpr("cast(key as string) size").groupBy("size").count()
        found: dict[str, int] = {}
        take = ottla.Output(counted, "test", None, "update", each_batch=lambda b, _: found.update(dict(b.collect())))
        run(take, tmp_path / "counted")
        assert found == {"1": 1, "2": 2, "3": 1}
    finally:
        query.stop()


def test_parquet_has_each_row_once(words: Words, tmp_path: Path, spark: Any) -> None:
    lake = tmp_path / "lake"
    for more in (["a", "bb"], ["cc"], []):
        words.say(*more)
        run(ottla.to_parquet(words.heard(), str(lake), partition_by=["size"]), tmp_path / "checkpoint")
    assert sorted(map(tuple, spark.read.parquet(str(lake)).select("word", "size").collect())) == [
        ("a", 1),
        ("bb", 2),
        ("cc", 2),
    ]
    assert (lake / "size=2").is_dir()


def test_jdbc_gets_the_rows(words: Words, tmp_path: Path, spark: Any) -> None:
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    url = f"jdbc:derby:memory:{tmp_path.name};create=true"
    for more in (["a", "bb"], ["cc"]):
        words.say(*more)
        run(ottla.to_jdbc(words.heard(), url, "words"), tmp_path / "checkpoint")
    found = spark.read.jdbc(url, "words")
    assert sorted(row["word"] for row in found.collect()) == ["a", "bb", "cc"]


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_checkpoint_that_was_restored_loses_no_row(words: Words, tmp_path: Path, mode: str) -> None:
    """Batch 1 is planned anew after that, over more rows than those that were written under this number."""
    out, checkpoint, backup = words.make(f"{words.topic}.out"), tmp_path / "checkpoint", tmp_path / "backup"

    def copy(**options: str) -> None:
        query = ottla.to(words.heard(), out, value="word", mode=mode, **options).start(
            checkpoint=str(checkpoint), trigger="once"
        )
        query.awaitTermination(120)

    words.say("a")
    copy()
    shutil.copytree(checkpoint, backup)
    words.say("b")
    copy()
    shutil.rmtree(checkpoint)
    shutil.copytree(backup, checkpoint)
    words.say("c")
    with pytest.raises(Exception, match="batch 1 was written before, from other offsets"):
        copy()
    copy(**{"sink.id": f"{words.topic}-restored"})
    assert sorted(value for _, value in words.read(out)) == [b"a", b"b", b"b", b"c"]


def test_a_checkpoint_that_was_removed_is_another_run(words: Words, tmp_path: Path) -> None:
    """The sink goes by the checkpoint's place. What is counted anew from batch 0 on is not what was written before."""
    totals = words.make(f"{words.topic}.totals", **{"cleanup.policy": "compact"})
    checkpoint = tmp_path / "checkpoint"

    def count() -> None:
        counted = words.heard().groupBy("size").count()
        run(ottla.to_changelog(counted, totals, key="cast(size as string)", value="cast(count as string)"), checkpoint)

    words.say("a", "bb")
    count()
    assert sorted(words.read(totals)) == [(b"1", b"1"), (b"2", b"1")]
    shutil.rmtree(checkpoint)
    words.say("cc")
    count()
    assert sorted(words.read(totals)) == [(b"1", b"1"), (b"1", b"1"), (b"2", b"1"), (b"2", b"2")]
