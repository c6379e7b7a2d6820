"""`ottla pipeline` where no Spark is needed: lists, statuses, stops."""

import json
import socket
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.cli.conftest import Run

from ottla.cli.pipeline.view import told
from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import NotConnected
from ottla.client.options import wall_clock_ms
from ottla.operations.errors import CommandError
from ottla.spark.pipelines.status import TOPIC, Board, PipelineStatus
from ottla.testing.broker import EmbeddedBroker

FIGURES = {
    "query": "shop-revenue",
    "batch": 7,
    "total_rows": 100,
    "input_rate": 10.0,
    "processed_rate": 20.5,
    "lag": 3,
    "lag_seconds": 1.25,
    "watermark": "2026-01-01T00:00:00.000Z",
    "state_rows": 12,
    "state_bytes": 2048,
    "total_late_rows": 1,
    "batch_ms": 150,
}


def test_pipelines_as_others_see_them(ottla: Callable[..., Run], ottla_broker: EmbeddedBroker) -> None:
    assert ottla("pipeline", "list", "--json").json == []
    now_ms = wall_clock_ms()
    shop = PipelineStatus("shop", "r1", "running", host="elsewhere", pid=12, updated_ms=now_ms, queries=[FIGURES])
    with Blocking(ottla_broker.bootstrap) as client:
        board = Board(client)
        board.ensure()
        board.publish(shop)
        board.publish(replace(shop, name="old", updated_ms=now_ms - 60_000))
        board.publish(replace(shop, name="gone", state="failed", error="no topic", queries=[]))
        first = {"query": "new-first", "batch": None, "lag": None, "lag_seconds": None}
        board.publish(replace(shop, name="new", queries=[FIGURES, first]))

        rows = {row["pipeline"]: row for row in ottla("pipeline", "list", "--json").json}
        assert {name: row["state"] for name, row in rows.items()} == {
            "shop": "running",
            "old": "lost",
            "gone": "failed",
            "new": "running",
        }
        assert rows["gone"]["lag"] is rows["new"]["lag"] is None, "nobody knows how far behind they are"
        assert (rows["shop"]["lag"], rows["shop"]["lag_seconds"], rows["shop"]["rows/s"]) == (3, 1.25, 20.5)
        assert [line.split("\t")[:2] for line in ottla("pipeline", "list").lines[1:]][3] == ["shop", "running"]

        shown = ottla("pipeline", "status", "shop").out
        assert "running" in shown and "1.2 s" in shown and "12 rows, 2.0 KiB" in shown
        assert ottla("pipeline", "status", "gone", "--json").json["error"] == "no topic"
        assert "there is no pipeline nope" in ottla("pipeline", "status", "nope", code=1).err

        assert "does not run: it is failed" in ottla("pipeline", "stop", "gone", code=1).err
        assert "does not run: it is lost" in ottla("pipeline", "stop", "old", code=1).err
        ottla("pipeline", "stop", "shop", "--no-wait")
        commands = [record for record in client.read(TOPIC) if record.key == b"shop/stop"]
        assert [json.loads(record.value or b"") for record in commands] == [{"run": "r1"}]
        board.publish(replace(shop, name="dead", host=socket.gethostname(), pid=2**22 + 1))
        assert "does not run: it is lost" in ottla("pipeline", "stop", "dead", code=1).err


def test_what_has_happened_to_a_run(ottla: Callable[..., Run], ottla_broker: EmbeddedBroker) -> None:
    error = "shop-revenue: the schema registry at 127.0.0.1:1 does not answer"
    restarting = {"event": "restarting", "error": error, "in_seconds": 2.0, "number": 2, "limit": 5}
    assert told(restarting) == f"{error}; it is started again in 2 s (2 of 5)"
    assert told(restarting | {"number": 0}) == f"{error}; it is started again when the broker is back"
    assert told({"event": "waiting", "error": "no answer"}) == "waiting for the broker: no answer"
    assert told({"event": "running", "error": None}) == "running"
    assert told({"event": "failed", "error": "no topic"}) == "failed: no topic"
    now_ms = wall_clock_ms()
    status = PipelineStatus(
        "shop", "r1", "restarting", updated_ms=now_ms, restarts=2, last_error=error, last_error_ms=now_ms
    )
    with Blocking(ottla_broker.bootstrap) as client:
        Board(client).ensure()
        Board(client).publish(status)
    shown = ottla("pipeline", "status", "shop").out
    assert "restarting" in shown and "queries were started again 2 times, last " in shown and error in shown
    assert ottla("pipeline", "status", "shop", "--json").json["restarts"] == 2
    (row,) = ottla("pipeline", "list", "--json").json
    assert (row["state"], row["restarts"], row["error"], row["last_error"]) == ("restarting", 2, None, error)


def test_exit_codes_tell_what_lasts_from_what_may_pass() -> None:
    pytest.importorskip("pyspark")
    from ottla.cli.pipeline.parts import failures
    from ottla.spark.pipelines.definition import PipelineError

    for error, code in (
        (PipelineError("no"), 1),
        (PipelineError("no", passes=True), 75),
        (NotConnected("no connection to 127.0.0.1:1"), 75),
    ):
        with pytest.raises(CommandError, match="no") as raised, failures():
            raise error
        assert raised.value.exit_code == code


def test_a_file_that_is_not_there_is_found_before_spark_starts(ottla: Callable[..., Run]) -> None:
    assert "there is no file" in ottla("pipeline", "run", "nothing.py", code=1).err
    assert "there is no file" in ottla("pipeline", "check", "nothing.py", code=1).err
