"""Outputs that are not topics alone: through a topic, Parquet, JDBC; and a checkpoint that is gone."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.node import OttlaNode

from ottla import spark as ottla
from ottla.client.blocking import Blocking

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
        yield Words(client, request.node.name)


def run(output: Any, checkpoint: Path) -> None:
    query = output.start(checkpoint=str(checkpoint), trigger="once")
    assert query.awaitTermination(120)


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
