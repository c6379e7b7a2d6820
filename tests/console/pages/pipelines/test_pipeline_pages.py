"""The pages of pipelines, with statuses as runs write them on a real board."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.console.consoles import Visitor, running_console
from tests.console.signed_in import secured_console, signed_in
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.options import wall_clock_ms
from ottla.console.options import ConsoleOptions
from ottla.spark.pipelines.status import TOPIC, Board, PipelineStatus, RunNotice
from ottla.spark.pipelines.status_publisher import StatusPublisher, impatient
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.secure import SecureBroker

SCRIPT = "<script>alert(1)</script>"
QUERY = {
    "query": "shop-sums",
    "batch": 41,
    "total_rows": 1234567,
    "input_rate": 120.0,
    "processed_rate": 99.5,
    "lag": 4321,
    "lag_seconds": 7.25,
    "watermark": "2026-01-31T12:00:00.000Z",
    "state_rows": 77,
    "state_bytes": 3 << 20,
    "total_late_rows": 5,
    "batch_ms": 1500,
}


@pytest.fixture(scope="module")
def client(broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(broker.bootstrap) as made:
        yield made


@pytest.fixture(scope="module")
def board(client: Blocking, visitor: Visitor) -> Board:
    assert "No pipeline was run on this cluster yet" in visitor.get("/pipelines").words  # before there is a topic
    made = Board(client)
    made.ensure()
    return made


def status(name: str, **given: Any) -> PipelineStatus:
    made = PipelineStatus(
        name=name,
        run=f"run-of-{name}",
        state="running",
        file=f"/jobs/{name}.py",
        host="far-away",
        pid=4242,
        spark="local[2]",
        checkpoint="/checkpoints",
        started_ms=wall_clock_ms() - 60_000,
        updated_ms=wall_clock_ms(),
        queries=[dict(QUERY, query=f"{name}-sums")],
    )
    return replace(made, **given)


def test_the_console_needs_no_extra() -> None:
    """Its pages load where neither Spark nor DuckDB is installed."""
    text = (
        "import sys\n"
        "for name in ('pyspark', 'py4j', 'duckdb', 'pyarrow', 'numba'): sys.modules[name] = None\n"
        "from ottla.console import pages\n"
        "pages.load()\n"
        "from ottla.console.pages.pipelines.desk import Board\n"
        "print(Board.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "Board\n"), done.stderr


def test_all_pipelines(board: Board, visitor: Visitor) -> None:
    board.publish(status("shop"))
    board.publish(status("broken", state="failed", error="copies: the value of field amount is no number"))
    board.publish(status("gone", updated_ms=wall_clock_ms() - 3_600_000))
    shown = visitor.get("/pipelines").words
    assert "shop running 1 99.5 4,321 7.2 s 0" in shown
    assert "broken failed 1" in shown and "broken : copies: the value of field amount is no number" in shown
    assert "gone lost" in shown
    part = visitor.part("/pipelines/-/part")
    assert "shop" in part.words and 'href="/pipelines?sort=' in part.text and "<html" not in part.text


def test_one_pipeline(board: Board, visitor: Visitor) -> None:
    error, at_ms = "sums: no broker has answered", wall_clock_ms() - 5_000
    board.publish(status("one", restarts=3, last_error=error, last_error_ms=at_ms))
    shown = visitor.get("/pipelines/one").words
    for word in ("1,234,567", "2026-01-31T12:00:00.000Z", "77 rows, 3.0 MiB", "1.5 s", "process 4242", error):
        assert word in shown, word
    assert visitor.get("/pipelines/nosuch").status == 404
    board.publish(status("over", state="failed", error="it ended"))
    assert "ottla pipeline run /jobs/over.py" in visitor.get("/pipelines/over").words


def test_charts_show_what_was_seen(board: Board, visitor: Visitor) -> None:
    begun_ms = wall_clock_ms() - 10_000
    for step in range(4):
        figures = dict(QUERY, query="drawn-sums", lag=step * 100)
        board.publish(status("drawn", updated_ms=begun_ms + step * 2_000, queries=[figures]))
        shown = visitor.part("/pipelines/drawn/part").text
    assert shown.count("<polyline") == 5 and "Records behind: drawn-sums at most 300" in shown
    assert "<polyline" in visitor.get("/pipelines").text  # the rate, in the list


def test_the_topics_that_queries_write_lead_to_their_totals(board: Board, visitor: Visitor) -> None:
    written = [f"{SCRIPT}-{each}" for each in range(7)]
    board.publish(status("writes", writes={"writes-sums": ["sales", *written]}))
    shown = visitor.get("/pipelines/writes")
    assert 'href="/topics/sales/totals"' in shown.text and "and 3 more" in shown.words
    assert SCRIPT not in shown.text
    board.publish(status("silent"))
    assert "totals" not in visitor.get("/pipelines/silent").words


@pytest.mark.parametrize("writes", [[], {"a": 1}, {"a": [1]}, {"a": "b"}, "x"])
def test_topics_that_are_none_are_no_status(board: Board, visitor: Visitor, writes: object) -> None:
    board.publish(status("odd", writes=writes))
    assert visitor.get("/pipelines/odd").status == 404


def test_a_run_is_asked_to_restart_and_to_stop(board: Board, visitor: Visitor, broker: EmbeddedBroker) -> None:
    """By a publisher as a run has it."""
    asked: list[str] = []
    with Blocking(broker.bootstrap) as client:
        near = impatient(client)
        publisher = StatusPublisher(
            near, status("asked"), lambda: asked.append("stop"), lambda: asked.append("restart")
        )
        publisher.start()
        try:
            for what in ("restart", "stop"):
                page = f"/pipelines/asked/{what}"
                assert "far-away" in visitor.get(page).words
                assert "was asked to" in visitor.send(page, page).words
                until(lambda: asked[-1:], lambda last, what=what: last == [what])
        finally:
            publisher.close()
            near.close(discard=True)
    assert asked == ["restart", "stop"]


def test_one_that_does_not_run_is_not_asked(board: Board, visitor: Visitor, client: Blocking) -> None:
    board.publish(status("ended", state="stopped"))
    assert "does not run: it is stopped" in visitor.get("/pipelines/ended/stop").words
    board.publish(status("next"))
    page = "/pipelines/next/stop"
    fields = visitor.get(page).text
    token = fields.partition('name="_token" value="')[2].partition('"')[0]
    shown = visitor.post(page, {"_token": token, "run": "an-older-run"})
    assert (shown.status, "does not go on any more" in shown.words) == (400, True)
    assert board.listen("next", "run-of-next") == RunNotice()


def test_what_anybody_may_have_written(board: Board, client: Blocking, visitor: Visitor) -> None:
    """The status topic is a topic: other clients may write anything into it."""
    hostile = status(
        SCRIPT,
        error=f"{SCRIPT} \u202e \0 {'x' * 500_000}",
        host='"><img src=x onerror=alert(1)>',
        queries=[{"query": SCRIPT, "lag": "many", "batch": [1], "state_bytes": 1e300, "watermark": {"a": SCRIPT}}],
    )
    board.publish(hostile)
    for name, value in {
        "not-json": b"{",
        "a-list": b"[]",
        "wrong-types": json.dumps({"name": "x", "run": "r", "state": "running", "queries": 7}).encode(),
        "wrong-queries": json.dumps({"name": "x", "run": "r", "state": "running", "queries": [1]}).encode(),
        "wrong-error": json.dumps({"name": "x", "run": "r", "state": "failed", "error": 5}).encode(),
        "infinite": b'{"name": "x", "run": "r", "state": "odd", "updated_ms": 1e999}',
    }.items():
        client.send(TOPIC, value, name.encode())
    client.send(TOPIC, b"\xff\xfe", b"\xff\xfe")
    shown = visitor.get("/pipelines")
    assert shown.status == 200, shown.words
    address = "/pipelines/%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    one = visitor.get(address)
    assert one.status == 200, one.words
    for text in (shown.text, one.text, visitor.get(f"{address}/stop").text):
        assert SCRIPT not in text and "<img" not in text and "\u202e" not in text and "\0" not in text
    assert "wrong-types" not in shown.words


def test_statuses_are_forgotten_with_their_topic(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path) as broker, Blocking(broker.bootstrap) as client:
        board = Board(client)
        board.ensure()
        board.publish(status("before"))
        with running_console(ConsoleOptions(broker.bootstrap, port=0)) as service:
            visitor = Visitor(service.url)
            assert "before" in visitor.get("/pipelines").words
            client.admin.topics.delete(TOPIC)
            until(lambda: "No pipeline" in visitor.get("/pipelines").words)


def test_the_rights_are_those_of_the_visitor(tmp_path: Path) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        password, other = broker.add_user("weak"), broker.add_user("none")
        broker.allow("weak", "Read", "Describe", topic=TOPIC)
        with Blocking(broker.bootstrap, security=broker.security) as client, secured_console(broker) as url:
            board = Board(client)
            board.ensure()
            board.publish(status("shop"))
            assert "shop" not in signed_in(url, "none", other).get("/pipelines").words
            visitor = signed_in(url, "weak", password)
            assert "shop running" in visitor.get("/pipelines").words
            page = "/pipelines/shop/stop"
            assert visitor.send(page, page).status in (400, 403)
            assert board.listen("shop", "run-of-shop") == RunNotice()
