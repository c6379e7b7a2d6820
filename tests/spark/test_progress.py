"""Queries as groups: exact end offsets after every batch, under the query's own group."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.model.ids import TopicPartition
from ottla.spark import progress as progress_module
from ottla.spark.pipelines.reports import Reports
from ottla.spark.progress import (
    CommittedSource,
    ProgressCommitter,
    commits,
    commits_at_start,
    group_of,
    groups_of,
    planned_sources,
    read_offsets,
    unwatch,
    watch,
)

PROGRESS = {
    "id": "0d1c5c3e-8f0a-4a3a-9d0e-0c6f8a1f3b11",
    "runId": "9f1c5c3e-8f0a-4a3a-9d0e-0c6f8a1f3b22",
    "name": "revenue",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "batchId": 3,
    "batchDuration": 10,
    "durationMs": {},
    "eventTime": {},
    "stateOperators": [],
    "sources": [],
    "sink": {"description": "x", "numOutputRows": -1},
    "numInputRows": 1,
    "inputRowsPerSecond": 1.0,
    "processedRowsPerSecond": 1.0,
    "observedMetrics": {},
}


def progress(*ends: str, description: str = "PythonMicroBatchStream@1") -> Any:
    from pyspark.sql.streaming.listener import SourceProgress, StreamingQueryProgress

    found = StreamingQueryProgress.fromJson(PROGRESS)
    found["sources"] = [SourceProgress(description, "", end, end, 1, 1.0, 1.0, {}) for end in ends]
    return found


def test_offsets_are_read_and_what_is_none_is_not() -> None:
    assert read_offsets('{"a": {"0": 5, "1": 0}, "": {}}') == {TopicPartition("a", 0): 5, TopicPartition("a", 1): 0}
    for text in (None, "", "17", "[1]", '{"a": 3}', "{", '{"a": {"x": 1}}'):
        assert read_offsets(text) == {}


def test_what_is_committed_when_a_query_starts() -> None:
    sources = [CommittedSource("one", "g"), None, CommittedSource("two", None)]
    offsets = ['{"a": {"0": 5}}', '{"rate": {"0": 5}}', None]
    assert [tuple(each) for each in commits_at_start("revenue", "id", offsets, sources)] == [
        ("one", "g", {TopicPartition("a", 0): 5}, None)
    ]
    assert commits_at_start("revenue", "id", [], sources) == []


def test_what_is_committed_where() -> None:
    told = progress('{"a": {"0": 5}}', '{"b": {"0": 7}}')
    assert [tuple(each) for each in commits(told, [CommittedSource("one", "g"), CommittedSource("two", None)], "")] == [
        ("one", "g", {TopicPartition("a", 0): 5}, None),
        ("two", "spark-revenue", {TopicPartition("b", 0): 7}, None),
    ]
    assert [each.group for each in commits(told, [None, CommittedSource("two", None)], "")] == ["spark-revenue"]
    assert [each.bootstrap for each in commits(told, [], "default")] == ["default", "default"]
    assert commits(progress('{"a": {"0": 5}}', description="KafkaV2[Subscribe[a]]"), [], "default") == []
    assert group_of(None, "id") == "spark-id"


class Session:
    """Something to watch."""


def slow_start(monkeypatch: pytest.MonkeyPatch, stored: list[int]) -> tuple[ProgressCommitter, Any, threading.Event]:
    """A run whose checkpoint ends at 5, at a broker that is slow to store just that; and what lets it go on."""
    asked, go_on = threading.Event(), threading.Event()

    def set_offsets(group: str, offsets: dict[TopicPartition, int]) -> None:
        (offset,) = offsets.values()
        if offset == 5:
            asked.set()
            assert go_on.wait(60)
        stored.append(offset)

    monkeypatch.setattr(progress_module, "_LEARN_S", 0.05)
    monkeypatch.setattr(progress_module, "planned_sources", lambda session, query: [CommittedSource("b", "mine")])
    monkeypatch.setattr(progress_module, "finished_offsets", lambda session, query: ['{"a": {"0": 5}}'])
    committer = ProgressCommitter(cast("Any", Session()))
    client = SimpleNamespace(admin=SimpleNamespace(groups=SimpleNamespace(set_offsets=set_offsets)))
    monkeypatch.setattr(committer, "_client", lambda bootstrap, security: client)
    report = progress('{"a": {"0": 9}}')
    committer.onQueryStarted(cast("Any", SimpleNamespace(name="revenue", id=report.id, runId=report.runId)))
    assert asked.wait(60)
    return committer, report, go_on


def test_what_a_checkpoint_knew_is_never_stored_after_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[int] = []
    committer, report, go_on = slow_start(monkeypatch, stored)
    threading.Timer(0.3, go_on.set).start()
    committer.commit(report)
    until(lambda: len(stored) == 2)
    assert stored == [5, 9]


def test_a_run_that_ended_while_it_began_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[int] = []
    committer, report, go_on = slow_start(monkeypatch, stored)
    committer.onQueryTerminated(cast("Any", SimpleNamespace(runId=report.runId)))
    go_on.set()
    until(lambda: stored == [5])
    assert committer.sources_of(report.runId) == []


def test_lag_is_asked_of_the_group_that_is_committed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    committer, report, go_on = slow_start(monkeypatch, [])
    go_on.set()
    session = cast("Any", committer._session)
    monkeypatch.setitem(progress_module._watching, session, committer)
    groups = SimpleNamespace(lag=lambda group: [SimpleNamespace(records=3, seconds=1.5)] if group == "mine" else [])
    told: list[Any] = []
    client = cast("Any", SimpleNamespace(admin=SimpleNamespace(groups=groups)))
    reports = Reports(["revenue"], session, client, told.append)
    reports.onQueryProgress(cast("Any", SimpleNamespace(progress=report)))
    assert [each["lag_seconds"] for each in told] == [1.5]
    assert groups_of(session, "revenue", report.id, "another run") == {"spark-revenue"}


@pytest.mark.spark
def test_every_batch_is_committed_also_the_last(spark: Any, node: OttlaNode, tmp_path: Path) -> None:
    with Blocking(node.bootstrap) as client:
        for topic in ("lag.one", "lag.two"):
            client.admin.topics.create(topic, 2)
            client.send_all(topic, [(b"%d" % each, b"x") for each in range(40)])
        watch(spark)
        try:
            reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
            first = reader.option("subscribe", "lag.one").option("startingOffsets", "earliest").load()
            second = reader.option("subscribe", "lag.two").option("kafka.group.id", "my-own").load()
            both = first.union(spark.readStream.format("rate").load().selectExpr(*_like(first))).union(second)
            query = (
                both.writeStream.format("noop")
                .queryName("lagging")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            found = planned_sources(spark, str(query.id))
            assert query.awaitTermination(120)
            assert found == [CommittedSource(node.bootstrap, None), None, CommittedSource(node.bootstrap, "my-own")]
            spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
            for group, topic in (("spark-lagging", "lag.one"), ("my-own", "lag.two")):
                lags = client.admin.groups.lag(group)
                assert [(each.partition.topic, each.records, each.seconds) for each in lags] == [(topic, 0, 0.0)] * 2
            client.send_all("lag.one", [(b"%d" % each, b"x") for each in range(6)])
            assert sum(each.records or 0 for each in client.admin.groups.lag("spark-lagging")) == 6
        finally:
            unwatch(spark)


@pytest.mark.spark
def test_a_query_that_starts_again_has_its_lag_before_its_first_batch_ends(
    spark: Any, node: OttlaNode, tmp_path: Path
) -> None:
    """The second run does not end its first batch: what is committed comes from the checkpoint."""
    hold = tmp_path / "hold"

    def handle(rows: Any, batch: int) -> None:
        rows.count()
        deadline_s = time.monotonic() + WAIT_S
        while hold.exists() and time.monotonic() < deadline_s:
            time.sleep(0.05)

    with Blocking(node.bootstrap) as client:
        client.admin.topics.create("lag.again", 2)
        client.send_all("lag.again", [(b"%d" % each, b"x") for each in range(40)])

        def begin() -> Any:
            reader = spark.readStream.format("ottla").option("kafka.bootstrap.servers", node.bootstrap)
            rows = reader.option("subscribe", "lag.again").option("startingOffsets", "earliest").load()
            writer = rows.writeStream.foreachBatch(handle).queryName("lag-again")
            return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()

        assert begin().awaitTermination(WAIT_S)
        assert not client.admin.groups.lag("spark-lag-again"), "nobody listened to the first run"
        client.send_all("lag.again", [(b"%d" % each, b"x") for each in range(7)])
        hold.touch()
        watch(spark)
        try:
            query = begin()
            until(lambda: client.admin.groups.lag("spark-lag-again"))
            assert behind(client, "spark-lag-again") == 7
            hold.unlink()
            assert query.awaitTermination(WAIT_S)
            until(lambda: behind(client, "spark-lag-again"), lambda records: records == 0)
        finally:
            hold.unlink(missing_ok=True)
            unwatch(spark)


def behind(client: Blocking, group: str) -> int:
    return sum(each.records or 0 for each in client.admin.groups.lag(group))


def _like(frame: Any) -> list[str]:
    """A row of another stream, shaped as the source's."""
    return [f"cast(null as {field.dataType.simpleString()}) as {field.name}" for field in frame.schema]
