"""The vocabulary of streams: exact results on generated records, with a real Spark and a real node."""

import json
from collections.abc import Callable, Iterator
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

SECOND = 1_000
Send = Callable[..., None]


@pytest.fixture(scope="module")
def client(node: OttlaNode, spark: Any) -> Iterator[Blocking]:
    spark.conf.set("spark.ottla.bootstrap", node.bootstrap)
    with Blocking(node.bootstrap) as made:
        yield made


class Topics:
    """Topics of one test, and what is in them."""

    def __init__(self, client: Blocking, prefix: str) -> None:
        self._client = client
        self._prefix = prefix

    def make(self, name: str, partitions: int = 2, **configs: str) -> str:
        full = f"{self._prefix}.{name}"
        # Records are of 1970 here, and are to stay.
        self._client.admin.topics.create(full, partitions, configs={"retention.ms": "-1", **configs})
        return full

    def send(self, topic: str, *records: tuple[str, Any], at_ms: int | None = None) -> None:
        for key, value in records:
            payload = (
                None if value is None else value.encode() if isinstance(value, str) else json.dumps(value).encode()
            )
            self._client.send(topic, payload, key.encode(), timestamp=at_ms)

    def read(self, topic: str) -> list[tuple[str | None, Any]]:
        return [
            (None if each.key is None else each.key.decode(), None if each.value is None else json.loads(each.value))
            for each in self._client.read(topic)
        ]


@pytest.fixture
def topics(client: Blocking, request: pytest.FixtureRequest) -> Topics:
    return Topics(client, request.node.name)


def run(output: Any, checkpoint: Path) -> Any:
    """All that is there now."""
    query = output.start(checkpoint=str(checkpoint), trigger="once")
    assert query.awaitTermination(120)
    return query


def rows(frame: Any, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select(*columns).collect())


def parsed(stream: Any, schema: str) -> Any:
    from pyspark.sql import functions as F

    value = F.from_json(F.col("value").cast("string"), schema).alias("v")
    return stream.select(F.col("key").cast("string").alias("key"), "timestamp", value).select("key", "timestamp", "v.*")


def test_a_table_is_the_latest_of_each_key_without_the_deleted(topics: Topics, spark: Any) -> None:
    users = topics.make("users", **{"cleanup.policy": "compact"})
    topics.send(users, ("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", None), ("c", "5"))
    found = ottla.table(users).selectExpr("cast(key as string) k", "cast(value as string) v")
    assert rows(found, "k", "v") == [("a", "3"), ("c", "5")]
    topics.send(users, ("b", "6"), ("a", None))
    assert rows(found, "k", "v") == [("b", "6"), ("c", "5")]  # read anew


def test_a_changelog_read_back_is_the_table(topics: Topics, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    orders, totals = topics.make("orders"), topics.make("totals", 1, **{"cleanup.policy": "compact"})

    def advance() -> None:
        grouped = ottla.grouped(parsed(ottla.topic(orders), "amount long"), "key").agg(F.sum("amount").alias("total"))
        run(ottla.to_changelog(grouped, totals, key="key", deleted="total = 0"), tmp_path / "checkpoint")

    topics.send(orders, ("a", {"amount": 1}), ("b", {"amount": 2}), ("a", {"amount": 3}))
    advance()
    assert sorted(topics.read(totals), key=str) == [("a", {"total": 4}), ("b", {"total": 2})]
    topics.send(orders, ("b", {"amount": -2}), ("c", {"amount": 7}))
    advance()
    assert sorted(topics.read(totals)[2:], key=str) == [("b", None), ("c", {"total": 7})]
    table = ottla.table(totals).selectExpr(
        "cast(key as string) k", "get_json_object(cast(value as string), '$.total') t"
    )
    assert rows(table, "k", "t") == [("a", "4"), ("c", "7")]


def test_changes_give_the_keys_that_changed(topics: Topics, tmp_path: Path, spark: Any) -> None:
    users = topics.make("users")
    seen: list[list[tuple[Any, ...]]] = []

    def advance() -> None:
        frame = ottla.changes(users).selectExpr("cast(key as string) k", "cast(value as string) v")

        def take(batch: Any, batch_id: int) -> None:
            seen.append(sorted((tuple(row) for row in batch.collect()), key=str))

        run(ottla.Output(frame, "test", None, "update", each_batch=take), tmp_path / "checkpoint")

    topics.send(users, ("a", "1"), ("b", "2"), ("a", "3"))
    advance()
    topics.send(users, ("b", None), ("c", "4"))
    advance()
    assert [batch for batch in seen if batch] == [[("a", "3"), ("b", "2")], [("b", None), ("c", "4")]]


def test_a_stream_meets_a_table(topics: Topics, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    orders, users, out = topics.make("orders"), topics.make("users"), topics.make("out", 1)

    def advance(how: str) -> None:
        names = ottla.table(users).select(
            F.col("key").cast("string").alias("key"), F.col("value").cast("string").alias("name")
        )
        joined = ottla.join_table(parsed(ottla.topic(orders), "id long"), names, "key", how)
        run(ottla.to(joined.select("key", "id", "name"), out), tmp_path / "checkpoint")

    topics.send(users, ("a", "Ada"), ("b", "Bob"))
    topics.send(orders, ("a", {"id": 1}), ("x", {"id": 2}))
    advance("left")
    assert sorted(topics.read(out), key=str) == [("a", {"id": 1, "name": "Ada"}), ("x", {"id": 2})]
    topics.send(users, ("a", "Anna"))
    topics.send(orders, ("a", {"id": 3}))
    advance("left")
    assert topics.read(out)[2:] == [("a", {"id": 3, "name": "Anna"})]
    with pytest.raises(ValueError, match="inner or left"):
        advance("full")


def test_a_stream_meets_a_table_kept_in_state(topics: Topics, tmp_path: Path) -> None:
    from pyspark.sql import functions as F

    orders, users, out = topics.make("orders"), topics.make("users"), topics.make("out", 1)

    def advance() -> None:
        names = ottla.topic(users).select(
            F.col("key").cast("string").alias("key"), F.col("value").cast("string").alias("value"), "offset"
        )
        joined = ottla.join_changes(parsed(ottla.topic(orders), "id long"), names, "key", "left")
        run(
            ottla.to(joined.select("key", "id", F.col("value").alias("name")), out, value="to_json(struct(id, name))"),
            tmp_path / "c",
        )

    topics.send(users, ("a", "Ada"), ("b", "Bob"), ("a", "Anna"))
    topics.send(orders, ("a", {"id": 1}), ("b", {"id": 2}), ("x", {"id": 3}))
    advance()
    expected = [("a", {"id": 1, "name": "Anna"}), ("b", {"id": 2, "name": "Bob"}), ("x", {"id": 3})]
    assert sorted(topics.read(out), key=str) == expected
    topics.send(users, ("b", None))
    topics.send(orders, ("a", {"id": 4}), ("b", {"id": 5}))
    advance()
    assert sorted(topics.read(out)[3:], key=str) == [("a", {"id": 4, "name": "Anna"}), ("b", {"id": 5})]


def test_two_streams_meet_in_time(topics: Topics, tmp_path: Path) -> None:
    orders, payments, out = topics.make("orders"), topics.make("payments"), topics.make("out", 1)
    for key, order_s, paid_s in [("a", 100, 105), ("b", 100, 111), ("c", 110, 100)]:
        topics.send(orders, (key, {"order": key}), at_ms=order_s * SECOND)
        topics.send(payments, (key, {"paid": key}), at_ms=paid_s * SECOND)
    # Later ones move the watermark on, so that what has met nobody comes out.
    topics.send(orders, ("z", {"order": "z"}), at_ms=1_000 * SECOND)
    topics.send(payments, ("y", {"paid": "y"}), at_ms=1_000 * SECOND)
    left, right = parsed(ottla.topic(orders), "order string"), parsed(ottla.topic(payments), "paid string")
    joined = ottla.join_streams(left, right, "key", "10 seconds", "left")
    assert joined.columns == ["key", "timestamp", "order", "timestamp_right", "paid"]
    run(ottla.to(joined.select("key", "order", "paid"), out), tmp_path / "checkpoint")
    expected = [("a", {"order": "a", "paid": "a"}), ("b", {"order": "b"}), ("c", {"order": "c", "paid": "c"})]
    assert sorted(topics.read(out), key=str) == expected


def test_windows_count_what_is_not_too_late(topics: Topics, tmp_path: Path, spark: Any, client: Blocking) -> None:
    from pyspark.sql import functions as F

    clicks, out, late = topics.make("clicks", 1), topics.make("out", 1), topics.make("late", 1)

    def advance() -> None:
        counted = ottla.tumbling(parsed(ottla.topic(clicks), "n long"), "10 seconds", "key", grace="5 seconds")
        frame = counted.agg(F.sum("n").alias("n")).select(F.unix_seconds("window.start").alias("start"), "key", "n")
        run(ottla.to(frame, out), tmp_path / "checkpoint")

    topics.send(clicks, ("a", {"n": 1}), at_ms=101 * SECOND)
    topics.send(clicks, ("a", {"n": 2}), at_ms=109 * SECOND)
    topics.send(clicks, ("a", {"n": 4}), at_ms=112 * SECOND)
    advance()  # the watermark is at 107: the first window is still open
    assert topics.read(out) == []
    topics.send(clicks, ("a", {"n": 8}), at_ms=108 * SECOND)  # late, but within its grace
    topics.send(clicks, ("b", {"n": 16}), at_ms=130 * SECOND)
    advance()  # to 125
    assert sorted(topics.read(out), key=str) == [("a", {"start": 100, "n": 11}), ("a", {"start": 110, "n": 4})]
    topics.send(clicks, ("a", {"n": 32}), at_ms=105 * SECOND)  # too late
    topics.send(clicks, ("b", {"n": 64}), at_ms=200 * SECOND)
    advance()
    assert topics.read(out)[2:] == [("b", {"start": 130, "n": 16})]

    checkpoint = str(tmp_path / "checkpoint")
    for batch in [*range(finished_batches(spark, checkpoint) + 1)] * 2:  # the second time changes nothing
        send_late(spark, ottla.late_to(late, window="10 seconds"), checkpoint, batch, "clicks")
    (letter,) = client.read(late, options=ReadOptions(read_committed=True))
    assert (letter.key, letter.value) == (b"a", b'{"n": 32}')
    assert dict(letter.headers)["ottla.dlq.offset"] == b"5"
    assert dict(letter.headers)["ottla.dlq.reason"] == b"late"


def test_duplicates_go_and_dead_letters_say_why(topics: Topics, tmp_path: Path, client: Blocking) -> None:
    from pyspark.sql import functions as F

    raw, out, dead = topics.make("raw", 1), topics.make("out", 1), topics.make("dead", 1)
    topics.send(raw, ("a", {"id": 1}), ("b", "no json"), ("a", {"id": 1}), ("c", {"id": 2}), at_ms=5_000)
    records = ottla.topic(raw)
    good = parsed(records, "id long").where("id is not null")
    unique = ottla.dedup(good, "id", within="1 hour").select("key", "id")
    bad = records.where(F.get_json_object(F.col("value").cast("string"), "$.id").isNull())
    output = ottla.to(unique, out, dead={dead: ottla.dead_letters(bad, "not an order", by="shop")})
    run(output, tmp_path / "checkpoint")
    assert sorted(topics.read(out), key=str) == [("a", {"id": 1}), ("c", {"id": 2})]
    (letter,) = list(client.read(dead))
    assert (letter.key, letter.value) == (b"b", b"no json")
    assert {name.removeprefix("ottla.dlq."): value for name, value in letter.headers} == {
        "topic": raw.encode(),
        "partition": b"0",
        "offset": b"1",
        "timestamp": b"5000",
        "group": b"shop",
        "delivery-count": b"1",
        "reason": b"not an order",
    }


def test_keyed_state_and_timers(topics: Topics, tmp_path: Path) -> None:
    from pyspark.sql import Row

    clicks, out = topics.make("clicks", 1), topics.make("out", 1)

    def extend(key: Any, rows: Any, kept: Any) -> Any:
        times = [row.timestamp.timestamp() * 1000 for row in rows]
        before = kept.value
        first = min([*times, before.first] if before else times)
        last = max([*times, before.last] if before else times)
        kept.value = (int(first), int(last), len(times) + (before.clicks if before else 0))
        kept.wake_at(int(last) + 30_000)
        return ()

    def end(key: Any, kept: Any) -> Any:
        yield Row(user=key[0], first=kept.value.first, last=kept.value.last, clicks=kept.value.clicks)
        kept.value = None

    schema = "first long, last long, clicks long"
    for at_s, user in [(100, "a"), (110, "a"), (105, "b"), (135, "a"), (500, "z")]:
        topics.send(clicks, (user, {"x": 1}), at_ms=at_s * SECOND)
    stream = parsed(ottla.topic(clicks), "x long")
    found = ottla.with_state(
        stream, "key", extend, state=schema, output=f"user string, {schema}", on_time=end, time="timestamp"
    )
    run(ottla.to(found, out, key="user", value="to_json(struct(first, last, clicks))"), tmp_path / "checkpoint")
    assert sorted(topics.read(out), key=str) == [
        ("a", {"first": 100_000, "last": 135_000, "clicks": 3}),
        ("b", {"first": 105_000, "last": 105_000, "clicks": 1}),
    ]


def test_changes_are_merged_into_delta(topics: Topics, tmp_path: Path, spark: Any) -> None:
    cdc = topics.make("cdc", 1)
    path = str(tmp_path / "table")

    def advance() -> None:
        changes = parsed(ottla.topic(cdc), "id long, name string, gone boolean, at long")
        output = ottla.to_delta(
            changes.drop("key", "timestamp"), path, merge=["id"], order="at", deleted="s.gone", mode="append"
        )
        run(output, tmp_path / "checkpoint")

    topics.send(cdc, ("1", {"id": 1, "name": "a", "at": 1}), ("2", {"id": 2, "name": "b", "at": 2}))
    topics.send(cdc, ("1", {"id": 1, "name": "c", "at": 3}), ("3", {"id": 3, "gone": True, "at": 4}))
    advance()
    topics.send(cdc, ("2", {"id": 2, "gone": True, "at": 5}), ("4", {"id": 4, "name": "d", "at": 6}))
    advance()
    assert rows(spark.read.format("delta").load(path), "id", "name") == [(1, "c"), (4, "d")]
