"""SQL in the console: results, charts, files, limits, and that a query reaches nothing but topics."""

from __future__ import annotations

import csv
import io
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import pyarrow.parquet as pq
import pytest
from tests.console.consoles import Visitor, running_console
from tests.console.signed_in import secured_console, signed_in
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.console.options import ConsoleOptions
from ottla.model import limits
from ottla.records.arrow import SCHEMA
from ottla.schemas.schema import SchemaSource
from ottla.sql import process
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

COUNT = 500
SCRIPT = "<script>alert(1)</script>"
HOSTILE = [SCRIPT, '"><img src=x onerror=alert(1)>', "\u202egnp.exe", "a\x00b"]
LONG = "select count(*) from range(100000000000) a, range(1000) b where hash(a.range + b.range) = 7"


@pytest.fixture(scope="module")
def console(broker: EmbeddedBroker) -> Iterator[Visitor]:
    with Blocking(broker.bootstrap) as client:
        client.admin.topics.create("orders", 2)
        client.send_all("orders", [(b"k%d" % (i % 5), b'{"id":%d}' % i) for i in range(COUNT)])
        client.admin.topics.create("hostile", 1)
        client.send_all("hostile", [(each.encode(), each.encode()) for each in HOSTILE])
        client.send("hostile", b"v" * 1_000_000, b"large")
    registry = RegistryOptions.of(broker.registry.url)
    with running_console(ConsoleOptions(broker.bootstrap, port=0, registry=registry)) as service:
        yield Visitor(service.url)


def address(part: str, query: str, **more: str) -> str:
    return f"/sql{part}?{urlencode({'query': query, **more}, quote_via=quote)}"


def streamed(visitor: Visitor, query: str, **more: str) -> dict[str, str]:
    """What a result puts into each place of the page."""
    places: dict[str, str] = {}
    for part in visitor.stream(address("/run", query, **more)):
        before = places.get(part["into"], "") if part["append"] else ""
        places[part["into"]] = before + part["html"]
    return places


def refused(visitor: Visitor, query: str) -> str:
    places = streamed(visitor, query)
    assert "sql-body" not in places, places
    return places["failed"]


def test_a_question_has_an_address(console: Visitor) -> None:
    empty = console.get("/sql")
    assert "topic('orders')" in empty.words and "last := 10" in empty.words
    query = "select key, count(*) n from topic('orders') group by key order by key"
    shown = console.get(address("", query))
    assert query in shown.words
    assert "data-stream" in shown.text and "noscript" in shown.text


def test_rows_come_as_a_stream(console: Visitor) -> None:
    places = streamed(console, "select key, count(*) n from topic('orders') group by key order by key")
    assert places["sql-body"].count("<tr>") == 5
    assert "<bdi>k4</bdi>" in places["sql-body"] and "<bdi>100</bdi>" in places["sql-body"]
    assert f"5 rows, {COUNT} records read" in places["sql-state"]
    assert "failed" not in places


def test_rows_come_without_scripts(console: Visitor) -> None:
    shown = console.get(address("/table", "select key from topic('orders') order by 1 limit 3"))
    assert (shown.status, shown.text.count("<bdi>k0</bdi>")) == (200, 3)
    wrong = console.get(address("/table", "selec 1"))
    assert (wrong.status, "selec" in wrong.words) == (400, True)


def test_rows_are_bounded(console: Visitor) -> None:
    places = streamed(console, "select * from topic('orders')", rows="7")
    assert places["sql-body"].count("<tr>") == 7
    assert "the first 7 rows; there are more" in places["sql-state"]
    assert console.get(address("", "select 1", rows=str(limits.SQL_ROWS_MAX + 1))).status == 400
    assert console.get(address("", "x" * (limits.SQL_QUERY_CHARS_MAX + 1))).status == 400


def test_values_are_typed_by_the_registry(console: Visitor, broker: EmbeddedBroker) -> None:
    registry = SchemaRegistry(RegistryOptions.of(broker.registry.url))
    text = '{"type":"record","name":"R","fields":[{"name":"id","type":"long"}]}'
    number = registry.register("typed-value", SchemaSource(text))
    with Blocking(broker.bootstrap) as client:
        client.send("typed", b"\0" + number.to_bytes(4, "big") + b"\x54")
    places = streamed(console, "select value.id * 2 as twice from topic('typed')")
    assert "<bdi>84</bdi>" in places["sql-body"]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('FILE')",
        "attach 'FOLDER/x.duckdb'",
        "copy (select 1) to 'FOLDER/out'",
        "install httpfs",
        "select * from read_csv('http://ADDRESS/x')",
        "set enable_external_access = true",
        "set enable_external_access = true; select * from read_text('FILE')",
    ],
)
def test_a_query_reaches_no_files_and_no_network(console: Visitor, tmp_path: Path, query: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nTOPSECRET\n")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        query = query.replace("FILE", str(secret)).replace("FOLDER", str(tmp_path)).replace("ADDRESS", place)
        said = refused(console, query)
        with pytest.raises(TimeoutError):
            listening.accept()
    assert "TOPSECRET" not in said and said
    assert [each.name for each in tmp_path.iterdir()] == ["secret.csv"]


def test_what_a_query_may_do(console: Visitor) -> None:
    for query in (
        "select 1;",
        "from topic('orders') select count(*)",
        "describe select * from topic('orders')",
        "explain select 1",
        "pivot (select key, partition from topic('orders')) on partition using count(*)",
        "select ';' || '--' as text",
    ):
        places = streamed(console, query)
        assert "sql-body" in places, places


@pytest.mark.parametrize(
    "query",
    [
        "select repeat('x', 4000000000)",
        "select list(x) from range(500000000) t(x)",
        "with recursive t as (select 'xxxxxxxx' s union all select s || s from t where len(s) < 8000000000) "
        "select max(len(s)) from t",
    ],
)
def test_memory_is_bounded(console: Visitor, query: str) -> None:
    assert "emory" in refused(console, query)
    assert "sql-body" in streamed(console, "select 1")


def test_time_is_bounded(console: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_S", 2)
    begun_s = time.monotonic()
    places = streamed(console, LONG)
    assert "took longer than 2 s" in places["failed"]
    assert time.monotonic() - begun_s < 20


def test_a_query_ends_when_its_visitor_leaves(console: Visitor, broker: EmbeddedBroker) -> None:
    host, port = console.host
    leaving = socket.create_connection((host, port))
    leaving.sendall(f"GET {address('/run', LONG)} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    until(lambda: len(process.RUNNING) == 1)
    leaving.close()
    until(lambda: not process.RUNNING)


def test_few_run_at_a_time(console: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_S", 6)
    others = [threading.Thread(target=streamed, args=(console, LONG)) for _ in range(limits.SQL_PER_USER_MAX)]
    for each in others:
        each.start()
    until(lambda: len(process.RUNNING) == limits.SQL_PER_USER_MAX)
    assert "are running already" in refused(console, "select 1")
    for each in others:
        each.join()
    assert "sql-body" in streamed(console, "select 1")


def test_contents_are_hostile(console: Visitor) -> None:
    places = streamed(console, "select key, value from topic('hostile') order by \"offset\"")
    whole = "".join(places.values())
    assert SCRIPT not in whole and "<img" not in whole
    assert "&lt;script&gt;" in whole and "\u202e" not in whole and "\0" not in whole
    assert len(whole) < 20_000
    named = streamed(console, f'select 1 as "{SCRIPT}"', chart="bar", x=SCRIPT, y=SCRIPT)
    assert SCRIPT not in "".join(named.values())
    page = console.get(address("", f"select '</textarea>{SCRIPT}'"))
    assert SCRIPT not in page.text


def test_a_result_is_drawn(console: Visitor) -> None:
    query = "select key, count(*) n from topic('orders') group by key order by key"
    plain = streamed(console, query)["sql-chart"]
    assert "<svg" not in plain and '<option value="n" selected>' in plain
    bars = streamed(console, query, chart="bar", x="key", y="n")["sql-chart"]
    assert bars.count("<rect") == 5 and "n by key" in bars
    line = streamed(console, "select range x, range * 2 y from range(10)", chart="line", x="x", y="y")["sql-chart"]
    assert "<polyline" in line and ">9<" in line
    assert "no column" in streamed(console, query, chart="bar", x="key", y="m")["sql-chart"]
    assert "no numbers" in streamed(console, "select 'a' k", chart="line", x="k", y="k")["sql-chart"]
    assert console.get(address("", query, chart="pie")).status == 400


def test_rows_are_exported(console: Visitor) -> None:
    query = "select partition, \"offset\", key, value, headers from topic('orders') order by 1, 2"
    shown = console.get(address("/export", query, format="csv"))
    assert shown.headers["content-disposition"] == 'attachment; filename="result.csv"'
    rows = list(csv.DictReader(io.StringIO(shown.text)))
    assert len(rows) == COUNT and sorted({row["key"] for row in rows}) == [f"k{i}" for i in range(5)]
    table = pq.read_table(io.BytesIO(console.load(address("/export", query, format="parquet"))))
    assert table.num_rows == COUNT and table.column_names == ["partition", "offset", "key", "value", "headers"]
    assert len(SCHEMA) == 8
    wrong = console.get(address("/export", "select nothing", format="csv"))
    assert (wrong.status, "nothing" in wrong.words) == (400, True)
    assert console.get(address("/export", "select 1", format="xlsx")).status == 400


def test_an_export_is_bounded(console: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_EXPORT_ROWS_MAX", 30_000)
    shown = console.get(address("/export", "select range n from range(100000)", format="csv"))
    assert len(shown.text.splitlines()) == 30_001


def test_the_rights_are_those_of_the_visitor(tmp_path: Path) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        password = broker.add_user("weak")
        broker.allow("weak", "Read", "Describe", topic="shown")
        broker.allow("weak", "Describe", topic="described")
        with Blocking(broker.bootstrap, security=broker.security) as client:
            for topic in ("shown", "secret", "described"):
                client.admin.topics.create(topic)
                client.send(topic, b"content")
        with secured_console(broker) as url:
            visitor = signed_in(url, "weak", password)
            assert "content" in streamed(visitor, "select value from topic('shown')")["sql-body"]
            assert "No permission on the topic" in refused(visitor, "select value from topic('secret')")
            denied = streamed(visitor, "select value from topic('described')")
            assert "ermission" in denied["failed"] and "content" not in "".join(denied.values())
            assert "topic('shown')" in visitor.get("/sql").words and "secret" not in visitor.get("/sql").words
            assert Visitor(url).get(address("/export", "select 1", format="csv")).path.startswith("/sign-in")


def test_without_its_packages_the_page_says_what_to_install(console: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.importlib.util, "find_spec", lambda name: None)
    shown = console.get(address("", "select 1"))
    assert (shown.status, "pip install" in shown.words) == (200, True)
    assert console.get(address("/table", "select 1")).status == 400


@pytest.mark.slow
def test_a_real_kafka(real_kafka: RealKafka) -> None:
    with Blocking(real_kafka.bootstrap) as client:
        client.admin.topics.create("of-kafka", 1)
        client.send_all("of-kafka", [(b"k", b"%d" % i) for i in range(10)])
    with running_console(ConsoleOptions(real_kafka.bootstrap, port=0)) as service:
        places = streamed(Visitor(service.url), "select count(*), max(value) from topic('of-kafka')")
    assert "<bdi>10</bdi>" in places["sql-body"] and "<bdi>9</bdi>" in places["sql-body"]


def nested(levels: int) -> str:
    """A query with twice as many columns for each level."""
    query = "select 1 a, 2 b"
    for _ in range(levels):
        query = f"select *, * from ({query})"
    return query


def test_a_result_with_too_many_columns_is_refused(console: Visitor) -> None:
    assert "a result has at most 500 columns here, not 8,192" in refused(console, nested(12))


def test_a_wide_result_comes_in_small_parts(console: Visitor) -> None:
    query = nested(7).replace("1 a, 2 b", "range a, range b from range(1000)")
    parts = console.stream(address("/run", query, rows="1000"))
    cells = [part["html"].count("<td") for part in parts if part["into"] == "sql-body"]
    assert max(cells) <= limits.SQL_FRAME_CELLS_MAX
    assert 0 < limits.SQL_CELLS_MAX - sum(cells) < 256, "as many whole rows as there is room for"
    said = [part["html"] for part in parts if part["into"] == "sql-state"][-1]
    assert "the first 390 rows; there are more" in said


def test_a_long_type_is_cut(console: Visitor) -> None:
    fields = ", ".join(f"'field{each}': {each}" for each in range(100))
    shown = streamed(console, "select {" + fields + "} as wide")["sql-table"]
    assert "field1" in shown and "field99" not in shown
