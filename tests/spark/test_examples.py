"""The gallery: every pipeline of examples/ is run as `ottla pipeline run --once` runs it, on generated records, and its
results are compared with a plain computation of them, record by record."""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.processes.node import OttlaNode

from ottla import ProducerOptions
from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.consumer.ranges import ReadOptions

pytestmark = [pytest.mark.spark]

EXAMPLES = Path(__file__).parents[2] / "examples"
BEGIN_MS = 1_767_261_600_000  # 2026-01-01T10:00:00Z
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
# Far behind everything: it moves the watermark past all windows, and is in none of the results.
LAST_MS = BEGIN_MS + 48 * HOUR
Pair = tuple[str | None, Any]


def iso(at_ms: int) -> str:
    """As Spark writes times to JSON."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Gallery:
    """A node with the topics of one example, and the example's runs, all on one checkpoint."""

    def __init__(self, spark: Any, node: OttlaNode, client: Blocking, directory: Path) -> None:
        self._spark = spark
        self.node = node
        self.client = client
        self._directory = directory
        self._topics: list[str] = []

    def topics(self, *names: str, **configs: str) -> None:
        for name in names:
            self.client.admin.topics.create(name, 3, configs={key.replace("_", "."): configs[key] for key in configs})
            self._topics.append(name)

    def close(self) -> None:
        for name in self._topics:
            self.client.admin.topics.delete(name)

    def send(self, topic: str, pairs: Iterable[Pair]) -> None:
        """Keys, and values as JSON; text stays as it is."""

        def value(given: Any) -> bytes | None:
            return None if given is None else (given if isinstance(given, str) else json.dumps(given)).encode()

        self.client.send_all(topic, [(None if key is None else key.encode(), value(each)) for key, each in pairs])

    def run(self, example: str) -> list[dict[str, Any]]:
        """All that is there now, and the events of the run."""
        from ottla.cli.pipeline import parts

        file = EXAMPLES / example
        loaded = parts.load(file)
        built = parts.build(loaded, self._spark)
        assert [str(each) for each in parts.problems(built, self._spark, self.client)] == []
        events: list[dict[str, Any]] = []
        settings = parts.settings(str(self._directory), once=True)
        runner = parts.runner(loaded, self._spark, self.client, settings, file, events.append)
        runner.claim()
        runner.run(built)
        return events

    def records(self, topic: str) -> list[ConsumedRecord]:
        return list(self.client.read(topic, options=ReadOptions(read_committed=True)))

    def read(self, topic: str) -> list[tuple[str, Any]]:
        """Keys and JSON values, sorted."""
        found = [((each.key or b"").decode(), json.loads(each.value or b"null")) for each in self.records(topic)]
        return in_order(found)


def in_order(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return sorted(pairs, key=lambda pair: (pair[0], json.dumps(pair[1], sort_keys=True)))


@pytest.fixture
def gallery(spark: Any, node: OttlaNode, tmp_path: Path) -> Iterator[Gallery]:
    spark.conf.set("spark.ottla.bootstrap", node.bootstrap)
    with Blocking(node.bootstrap) as client:
        made = Gallery(spark, node, client, tmp_path / "checkpoints")
        try:
            yield made
        finally:
            made.close()
            spark.conf.unset("spark.ottla.bootstrap")


def lines_of(rng: Random, count: int) -> list[str]:
    words = ["log", "Log", "the", "The", "stream", "of", "things", "x1", "don't", "-", "...", ""]
    return [" ".join(rng.choices(words, k=rng.randrange(8))) for _ in range(count)]


def counted(lines: Iterable[str]) -> Counter[str]:
    return Counter("".join(char if char.isalnum() else " " for char in " ".join(lines).lower()).split())


def test_word_count(gallery: Gallery) -> None:
    gallery.topics("lines")
    gallery.topics("word_counts", cleanup_policy="compact")
    rng = Random(1)
    first, second = lines_of(rng, 200), ["a new word of the log"]
    gallery.send("lines", [(None, line) for line in first])
    gallery.run("word_count.py")
    assert dict(gallery.read("word_counts")) == counted(first)
    gallery.send("lines", [(None, line) for line in second])
    gallery.run("word_count.py")
    total = counted(first + second)
    changed = {word: total[word] for word in counted(second)}
    assert gallery.read("word_counts") == in_order([*counted(first).items(), *changed.items()])


def test_word_count_in_sql(gallery: Gallery) -> None:
    gallery.topics("lines")
    gallery.topics("word_counts", cleanup_policy="compact")
    lines = lines_of(Random(2), 100)
    gallery.send("lines", [(None, line) for line in lines])
    gallery.run("word_count.sql")
    assert gallery.read("word_counts") == in_order(counted(lines).items())


def test_revenue_with_late_orders(gallery: Gallery) -> None:
    gallery.topics("orders", "revenue", "orders.late")
    rng = Random(3)
    totals: dict[tuple[str, int], list[int]] = defaultdict(list)
    late: list[str] = []
    watermark_ms = 0
    for number in range(2):
        middle_ms = BEGIN_MS + number * 3 * MINUTE
        times = [middle_ms + rng.randrange(-4 * MINUTE, 4 * MINUTE) for _ in range(120)]
        orders: list[dict[str, Any]] = [
            {"id": i, "shop": rng.choice("abc"), "cents": rng.randrange(9_999), "at": at} for i, at in enumerate(times)
        ]
        if number == 1:
            orders.append({"id": 999, "shop": "last", "cents": 1, "at": LAST_MS})
        for order in orders:
            window_ms = order["at"] // MINUTE * MINUTE
            order["at"] = iso(order["at"])
            if window_ms + MINUTE <= watermark_ms:
                late.append(json.dumps(order))
            else:
                totals[order["shop"], window_ms].append(order["cents"])
        watermark_ms = max(times) - 30 * SECOND
        gallery.send("orders", [(str(order["id"]), order) for order in orders])
        gallery.run("revenue.py")
    assert gallery.read("revenue") == in_order(
        (shop, {"shop": shop, "minute": iso(minute), "orders": len(each), "cents": sum(each)})
        for (shop, minute), each in totals.items()
        if shop != "last"
    )
    letters = gallery.records("orders.late")
    assert len(late) > 20
    assert sorted((each.value or b"").decode() for each in letters) == sorted(late)
    assert {dict(each.headers)["ottla.dlq.topic"] for each in letters} == {b"orders"}


def test_enrichment(gallery: Gallery) -> None:
    gallery.topics("clicks", "rich_clicks")
    gallery.topics("users", cleanup_policy="compact")
    rng = Random(4)
    names = [f"u{number}" for number in range(12)]
    table: dict[str, Any] = {}
    expected = []
    for number in range(2):
        users = [
            (
                name,
                {"name": rng.choice(("Ada", "Bob")), "country": rng.choice(("FR", "NZ"))}
                if rng.random() < 0.8
                else None,
            )
            for name in rng.choices(names, k=15)
        ]
        table.update(users)
        gallery.send("users", users)
        clicks = [
            (rng.choice(names), {"page": f"/{rng.randrange(9)}", "at": iso(BEGIN_MS + rng.randrange(HOUR))})
            for _ in range(80)
        ]
        gallery.send("clicks", clicks)
        expected += [(user, {"user": user, **click, **(table.get(user) or {})}) for user, click in clicks]
        gallery.run("enrichment.py")
        assert gallery.read("rich_clicks") == in_order(expected), f"round {number}"
    assert any(len(value) == 3 for _, value in expected) and any(len(value) == 5 for _, value in expected)


def test_payments(gallery: Gallery) -> None:
    gallery.topics("orders", "payments", "settled")
    rng = Random(5)
    orders = [(number, BEGIN_MS + number * 20 * SECOND + rng.randrange(SECOND)) for number in range(90)]
    cents = {number: rng.randrange(10_000) for number, _ in orders}
    payments = [
        (number, rng.choice(("card", "cash")), at_ms + rng.randrange(15 * MINUTE))
        for number, at_ms in orders
        for _ in range(rng.choice((0, 1, 1, 1, 2)))
    ]
    half_ms = BEGIN_MS + 15 * MINUTE
    expected = []
    for number, at_ms in orders:
        paid = [method for of, method, paid_ms in payments if of == number and paid_ms - at_ms <= 10 * MINUTE]
        row = {"id": number, "cents": cents[number]}
        expected += [(str(number), {**row, "method": method, "state": "paid"}) for method in paid]
        expected += [] if paid else [(str(number), {**row, "state": "unpaid"})]
    for begin_ms, end_ms in ((0, half_ms), (half_ms, LAST_MS + 1)):
        ordered = [
            (str(n), {"id": n, "cents": cents.get(n), "at": iso(t)})
            for n, t in [*orders, (-1, LAST_MS)]
            if begin_ms <= t < end_ms
        ]
        gallery.send("orders", ordered)
        paid_now = [
            (str(n), {"id": n, "method": m, "at": iso(t)})
            for n, m, t in [*payments, (-2, "", LAST_MS)]
            if begin_ms <= t < end_ms
        ]
        gallery.send("payments", paid_now)
        gallery.run("payments.py")
    assert gallery.read("settled") == in_order(expected)
    assert Counter(value["state"] for _, value in expected).keys() == {"paid", "unpaid"}


def test_sessions(gallery: Gallery) -> None:
    gallery.topics("clicks", "visits")
    rng = Random(6)
    clicks: dict[str, list[tuple[int, str]]] = {}
    for user in "abcdef":
        times = sorted(BEGIN_MS + rng.randrange(6 * HOUR) for _ in range(25))
        clicks[user] = [(at_ms, f"/{number}") for number, at_ms in enumerate(times)]
    expected = []
    for user, those in clicks.items():
        visits: list[list[tuple[int, str]]] = []
        for click in those:
            if visits and click[0] - visits[-1][-1][0] <= 15 * MINUTE:
                visits[-1].append(click)
            else:
                visits.append([click])
        expected += [
            (user, {"user": user, "begin_ms": each[0][0], "end_ms": each[-1][0], "pages": [page for _, page in each]})
            for each in visits
        ]
    half_ms = BEGIN_MS + 3 * HOUR
    for begin_ms, end_ms in ((0, half_ms), (half_ms, LAST_MS + 1)):
        sent = [(user, each) for user, those in {**clicks, "z": [(LAST_MS, "/")]}.items() for each in those]
        rng.shuffle(sent)
        gallery.send("clicks", [(user, {"page": p, "at": iso(t)}) for user, (t, p) in sent if begin_ms <= t < end_ms])
        gallery.run("sessions.py")
    assert gallery.read("visits") == in_order(expected)


def test_upserts(gallery: Gallery, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gallery.topics("customers.changes")
    table = str(tmp_path / "lake" / "customers")
    monkeypatch.setenv("CUSTOMERS_TABLE", table)
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "1")  # 50 are for large tables
    rng = Random(7)
    rows: dict[int, dict[str, Any]] = {}
    lsn = 0
    for _ in range(2):
        changes: list[Pair] = []
        for _ in range(120):
            lsn += 1
            number = rng.randrange(30)
            before, gone = rows.get(number), rng.random() < 0.25
            if before is not None and gone:
                after = rows.pop(number) and None
            else:
                after = rows[number] = {"id": number, "name": f"n{lsn}", "city": rng.choice(("Bree", "Rohan"))}
            op = "c" if before is None else "d" if gone else "u"
            changes.append((str(number), {"op": op, "before": before, "after": after, "source": {"lsn": lsn}}))
            changes += [(str(number), None)] if op == "d" else []
        gallery.send("customers.changes", changes)
        gallery.run("upserts.py")
        found = spark.read.format("delta").load(table).select("id", "name", "city").collect()
        assert sorted(tuple(row) for row in found) == sorted(tuple(row.values()) for row in rows.values())


def test_dedup(gallery: Gallery) -> None:
    gallery.topics("events", "unique_events")
    rng = Random(8)
    expected: list[dict[str, Any]] = []
    for number, begin_ms in enumerate((BEGIN_MS, BEGIN_MS + 20 * MINUTE, BEGIN_MS + 5 * HOUR)):
        new: list[dict[str, Any]] = [
            {"id": str(100 * number + each), "at": iso(begin_ms + rng.randrange(MINUTE)), "n": number}
            for each in range(60)
        ]
        if number == 1:  # time goes on, and the first ids are forgotten
            new.append({"id": "last", "at": iso(BEGIN_MS + 5 * HOUR), "n": number})
        if number == 2:
            new.append({"id": "0", "at": iso(begin_ms), "n": number})
        copies = rng.choices([*new, *expected] if number == 1 else new, k=50)
        sent = new + copies
        rng.shuffle(sent)
        gallery.send("events", [(each["id"], each) for each in sent])
        gallery.run("dedup.py")
        expected += new
        assert gallery.read("unique_events") == in_order((each["id"], each) for each in expected), f"round {number}"


def test_exact_copy(gallery: Gallery) -> None:
    gallery.topics("source", "target")
    rng = Random(9)

    def feed(count: int, name: str, *, commit: bool = True) -> None:
        with Blocking(gallery.node.bootstrap, ProducerOptions(transactional_id=f"feed-{name}")) as client:

            async def send() -> None:
                for number in range(count):
                    key = rng.choice((None, b"", b"%d" % rng.randrange(50)))
                    value = rng.choice((None, b"%s %d" % (name.encode(), number)))
                    headers = rng.choices([("a", b"1"), ("a", b""), ("ü", None)], k=rng.randrange(3))
                    await client.inner.post("source", value, key, headers=headers)

            try:
                with client.transaction():
                    client.run(send())
                    client.flush()
                    if not commit:
                        raise InterruptedError
            except InterruptedError:
                pass

    def contents(topic: str) -> Counter[Any]:
        return Counter((each.key, each.value, each.headers) for each in gallery.records(topic))

    def by_key(topic: str) -> dict[Any, list[Any]]:
        found = defaultdict(list)
        for each in gallery.records(topic):
            if each.key is not None:
                found[each.key].append((each.value, each.headers))
        return found

    feed(500, "aborted", commit=False)
    feed(12_000, "first")
    batches = [each["rows"] for each in gallery.run("exact_copy.py") if each["event"] == "progress" and each["rows"]]
    assert len(batches) >= 2 and max(batches) <= 10_000
    feed(700, "second")
    gallery.run("exact_copy.py")
    assert contents("source").total() == 12_700
    assert contents("target") == contents("source")
    assert by_key("target") == by_key("source")  # in the order of each key


def test_features(gallery: Gallery) -> None:
    gallery.topics("transactions", "features")
    rng = Random(10)
    rows: list[dict[str, Any]] = [
        {
            "card": rng.choice(("c1", "c2", "c3")),
            "cents": rng.randrange(100_000),
            "country": rng.choice(("FR", "NZ", "PE")),
            "at": BEGIN_MS + rng.randrange(2 * HOUR),
        }
        for _ in range(150)
    ]
    expected = {size: list(windowed(rows, size, every)) for size, every in ((5 * MINUTE, MINUTE), (HOUR, 10 * MINUTE))}
    last = {"card": "last", "cents": 1, "country": "FR", "at": LAST_MS}
    gallery.send("transactions", [(row["card"], {**row, "at": iso(row["at"])}) for row in [*rows, last]])
    gallery.run("features.py")
    named = [
        (f"{each['card']}/{name}", each) for name, size in (("5m", 5 * MINUTE), ("1h", HOUR)) for each in expected[size]
    ]
    assert gallery.read("features") == in_order(named)

    example = sys.modules["ottla_pipeline_features"]
    trained = example.features(example.transactions(stream=False), "1 hour", "10 minutes").where("card <> 'last'")
    found = [
        (row["card"], json.loads(row["json"]))
        for row in trained.selectExpr("card", "to_json(struct(*)) json").collect()
    ]
    assert in_order(found) == in_order((each["card"], each) for each in expected[HOUR])


def windowed(rows: list[dict[str, Any]], size_ms: int, every_ms: int) -> Iterator[dict[str, Any]]:
    """Features of all windows that have something in them."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        newest_ms = row["at"] // every_ms * every_ms
        for begin_ms in range(newest_ms, newest_ms - size_ms, -every_ms):
            found[row["card"], begin_ms + size_ms].append(row)
    for (card, until_ms), those in found.items():
        cents = [row["cents"] for row in those]
        yield {
            "card": card,
            "until": iso(until_ms),
            "count": len(those),
            "mean": sum(cents) / len(cents),
            "largest": max(cents),
            "countries": len({row["country"] for row in those}),
        }
