"""Windows of all kinds: exact results, over a batch and over streams of a real node."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes.node import OttlaNode

from ottla import spark as ottla
from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.fetching import ReadOptions
from ottla.spark.checkpoints import finished_batches
from ottla.spark.streams.late import send_late

pytestmark = [pytest.mark.spark]

CLICKS = [("a", 0), ("a", 4), ("a", 9), ("a", 21), ("b", 8), ("b", 30)]


class Clicks:
    """A topic of clicks at given seconds, one of results and one of letters."""

    def __init__(self, client: Blocking, prefix: str) -> None:
        self._client = client
        self.topic, self.out, self.late = (f"{prefix}.{each}" for each in ("clicks", "out", "late"))
        for name in (self.topic, self.out, self.late):
            client.admin.topics.create(name, 2, configs={"retention.ms": "-1"})

    def send(self, *clicks: tuple[str, int]) -> None:
        for user, second in clicks:
            self._client.send(self.topic, b"%d" % second, user.encode(), timestamp=second * 1_000)

    def read(self, topic: str) -> list[tuple[bytes | None, Any]]:
        found = self._client.read(topic, options=ReadOptions(read_committed=True))
        return sorted(((each.key, json.loads(each.value or b"")) for each in found), key=str)

    def windows(self, grouped: Any) -> Any:
        """Counts, with begin and end of their windows in seconds."""
        from pyspark.sql import functions as F

        begin, end = F.unix_seconds("window.start"), F.unix_seconds("window.end")
        value = F.to_json(F.array(begin, end, "count"))
        return ottla.to(grouped.count().select("user", value.alias("value")), self.out, key="user")


@pytest.fixture
def clicks(node: OttlaNode, spark: Any, request: pytest.FixtureRequest) -> Iterator[Clicks]:
    spark.conf.set("spark.ottla.bootstrap", node.bootstrap)
    with Blocking(node.bootstrap) as client:
        yield Clicks(client, request.node.name)


def stream(clicks: Clicks) -> Any:
    return ottla.topic(clicks.topic).selectExpr("cast(key as string) user", "timestamp")


def run(output: Any, checkpoint: Path) -> None:
    query = output.start(checkpoint=str(checkpoint), trigger="once")
    assert query.awaitTermination(120)


def test_hopping_windows_overlap(clicks: Clicks, tmp_path: Path, spark: Any) -> None:
    def advance() -> None:
        hopping = ottla.hopping(stream(clicks), "10 seconds", "5 seconds", "user", grace="5 seconds")
        run(clicks.windows(hopping), tmp_path / "checkpoint")

    clicks.send(("a", 101), ("a", 107), ("b", 112), ("z", 120))
    advance()  # the watermark is at 115: what ends by then comes out
    first = [(b"a", [95, 105, 1]), (b"a", [100, 110, 2]), (b"a", [105, 115, 1]), (b"b", [105, 115, 1])]
    assert clicks.read(clicks.out) == sorted(first, key=str)
    # The first is too late for both of its windows, the second for one of them.
    clicks.send(("a", 108), ("b", 114), ("z", 200))
    advance()
    more = [(b"b", [110, 120, 2]), (b"z", [115, 125, 1]), (b"z", [120, 130, 1])]
    assert clicks.read(clicks.out) == sorted([*first, *more], key=str)

    checkpoint = str(tmp_path / "checkpoint")
    rule = ottla.late_to(clicks.late, window="10 seconds", every="5 seconds")
    for batch in range(finished_batches(spark, checkpoint) + 1):
        send_late(spark, rule, checkpoint, batch, "clicks")
    assert clicks.read(clicks.late) == [(b"a", 108)]


def test_sessions_end_with_a_pause(clicks: Clicks, tmp_path: Path) -> None:
    def advance() -> None:
        sessions = ottla.sessions(stream(clicks), "10 seconds", "user", grace="5 seconds")
        run(clicks.windows(sessions), tmp_path / "checkpoint")

    clicks.send(("a", 100), ("a", 109), ("a", 120), ("b", 104))
    advance()  # the watermark is at 115: only b's session has ended
    assert clicks.read(clicks.out) == [(b"b", [104, 114, 1])]
    clicks.send(("a", 118), ("b", 103), ("z", 300))  # one click joins two sessions; b's is too late
    advance()
    assert clicks.read(clicks.out) == [(b"a", [100, 130, 4]), (b"b", [104, 114, 1])]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (
            lambda clicks: ottla.tumbling(clicks, "10 seconds", "who", time="at", grace="1 second"),
            {("a", 0, 10): 3, ("a", 20, 30): 1, ("b", 0, 10): 1, ("b", 30, 40): 1},
        ),
        (
            lambda clicks: ottla.hopping(clicks, "10 seconds", "5 seconds", "who", time="at", grace="1 second"),
            {
                ("a", -5, 5): 2,
                ("a", 0, 10): 3,
                ("a", 5, 15): 1,
                ("a", 15, 25): 1,
                ("a", 20, 30): 1,
                ("b", 0, 10): 1,
                ("b", 5, 15): 1,
                ("b", 25, 35): 1,
                ("b", 30, 40): 1,
            },
        ),
        (
            lambda clicks: ottla.sessions(clicks, "10 seconds", "who", time="at", grace="1 second"),
            {("a", 0, 19): 3, ("a", 21, 31): 1, ("b", 8, 18): 1, ("b", 30, 40): 1},
        ),
    ],
    ids=["tumbling", "hopping", "sessions"],
)
def test_windows_of_all_kinds_over_a_batch(spark: Any, windows: Any, expected: dict[tuple[str, int, int], int]) -> None:
    at = [(who, datetime.fromtimestamp(1_000_000 + second, UTC)) for who, second in CLICKS]
    counted = windows(spark.createDataFrame(at, "who string, at timestamp")).count()
    (window,) = set(counted.columns) - {"who", "count"}
    rows = counted.selectExpr(
        "who", f"unix_seconds({window}.start) - 1000000", f"unix_seconds({window}.end) - 1000000", "count"
    ).collect()
    assert {(who, start, end): count for who, start, end, count in rows} == expected
