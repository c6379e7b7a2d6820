"""`ottla pipeline` as a user runs it: processes of their own, stopped, killed, restarted, replayed; contents exact."""

import itertools
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.shops import LOCAL, SHOP, SUMS, Shop, events
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def shop(spark_tools: None, tmp_path: Path, node: OttlaNode, request: pytest.FixtureRequest) -> Iterator[Shop]:
    with Blocking(node.bootstrap) as client:
        made = Shop(tmp_path, node, client, request.node.originalname.removeprefix("test_"), request.param)
        try:
            yield made
        finally:
            for process in made.processes:
                process.kill()


@pytest.mark.parametrize("shop", [SHOP + SUMS], indirect=True)
def test_runs_are_stopped_restarted_and_replayed(shop: Shop, node: OttlaNode) -> None:
    shop.send(30)
    first = shop.start()
    shop.wait_for_copies(30)
    assert (shop.status()["state"], shop.status()["file"]) == ("running", str(shop.file))
    second = shop.cli("run", str(shop.file), "--once")
    assert second.returncode == 1 and "runs already" in second.stderr
    assert shop.cli("stop", shop.name).returncode == 0
    assert first.wait(60) == 0, first.output[-3000:]
    status = shop.status()
    assert status["state"] == "stopped"
    assert {each["query"]: (each["total_rows"], each["lag"]) for each in status["queries"]} == {
        f"{shop.name}-copies": (30, 0),
        f"{shop.name}-sums": (30, 0),
    }
    assert "does not run" in shop.cli("stop", shop.name).stderr

    shop.send(12)
    again = shop.start("--once")
    assert again.wait(240) == 0, again.output[-3000:]
    assert shop.ids() == list(range(42))
    assert sum(each["rows"] for each in events(again, "progress") if each["query"].endswith("copies")) == 12
    with Blocking(node.bootstrap) as client:
        latest = {each.key: json.loads(each.value or b"") for each in client.read(shop.topics["sums"])}
        assert latest == {b"u%d" % user: {"user": f"u{user}", "total": sum(range(user, 42, 3))} for user in range(3)}
        lags = client.admin.groups.lag(f"spark-{shop.name}-copies")
        assert [(each.partition.topic, each.records) for each in lags] == [(shop.topics["orders"], 0)] * 2

    replay = shop.start("--once", "--from", "earliest")
    assert replay.wait(300) == 0, replay.output[-3000:]
    assert shop.ids() == sorted([*range(42), *range(42)])
    assert (shop.status()["generation"], shop.status()["state"]) == (1, "stopped")


@pytest.mark.parametrize("shop", [SHOP], indirect=True)
def test_a_running_pipeline_starts_its_queries_again(shop: Shop) -> None:
    shop.send(20)
    run = shop.start()
    shop.wait_for_copies(20)
    before = shop.status()
    done = shop.cli("restart", shop.name)
    assert done.returncode == 0, done.stderr
    after = shop.status()
    assert (after["run"], after["restarts"], after["pid"]) == (before["run"], 0, before["pid"])
    assert after["restarted_ms"] > before["restarted_ms"] == 0
    shop.send(15)
    shop.wait_for_copies(35)
    assert shop.cli("stop", shop.name).returncode == 0
    assert run.wait(60) == 0, run.output[-3000:]
    assert shop.ids() == list(range(35))  # nothing twice, nothing lost
    assert len(events(run, "restart asked for")) == 1
    assert len(events(run, "started")) == 2
    assert "does not run" in shop.cli("restart", shop.name).stderr


@pytest.mark.parametrize("shop", [SHOP], indirect=True)
def test_a_killed_driver_loses_and_repeats_nothing(shop: Shop) -> None:
    shop.send(20)
    first = shop.start()
    shop.wait_for_copies(20)
    shop.send(200)
    os.kill(first.pid, signal.SIGKILL)
    first.wait(30)
    second = shop.start()  # at once: the driver of this machine is known to be gone
    shop.send(50)
    shop.wait_for_copies(270)
    os.kill(second.pid, signal.SIGTERM)
    assert second.wait(90) == 0, second.output[-3000:]
    assert shop.ids() == list(range(270))
    assert shop.status()["state"] == "stopped"


@pytest.mark.parametrize("shop", [SHOP], indirect=True)
def test_a_run_is_told_as_a_log_of_json(shop: Shop) -> None:
    """Only the JVM of Spark writes lines of its own, while it starts."""
    shop.send(10)
    done = shop.cli("run", str(shop.file), "--once", "--log-format", "json", *LOCAL)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(each) for each in itertools.dropwhile(lambda each: each[0] != "{", done.stderr.splitlines())]
    assert {each["level"] for each in lines} == {"info"}
    assert any(each["message"].startswith(f"{shop.name}-copies: ") for each in lines), "its progress"
    assert lines[-1]["message"] == f"{shop.name}: stopped" and done.stdout == ""


@pytest.mark.parametrize("shop", [SHOP.replace("return orders", "return orders.select('usr')")], indirect=True)
def test_what_is_wrong_is_one_line(shop: Shop) -> None:
    """Spark has nothing to say beside it; all that can be wrong is in test_errors.py."""
    found = shop.cli("check", str(shop.file))
    assert found.returncode == 1
    (line,) = found.stderr.splitlines()
    assert f"error: {shop.file}:12: copies: [UNRESOLVED_COLUMN" in line and "usr" in line
