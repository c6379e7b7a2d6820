"""`ottla pipeline` as a user runs it: processes of their own, stopped, killed, restarted, replayed; contents exact."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.node import OttlaNode
from tests.support.spark import Process, environment

from ottla.client.blocking import Blocking
from ottla.client.fetching import ReadOptions

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark"), pytest.mark.slow, pytest.mark.timeout(600)]

SHOP = """
from pyspark.sql import functions as F
from ottla.spark import pipeline, topic

@pipeline.stream
def orders():
    parsed = F.from_json(F.col("value").cast("string"), "id long, amount long")
    return topic("{orders}").select(F.col("key").cast("string").alias("user"), parsed.alias("o")).select("user", "o.*")

@pipeline.query(output="{copies}", key="user")
def copies(orders):
    return orders
"""
SUMS = """
@pipeline.query(output="{sums}", key="user", mode="update")
def sums(orders):
    return orders.groupBy("user").agg(F.sum("amount").alias("total"))
"""
LOCAL = ("--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2", "--conf", "spark.driver.memory=1g")


class Shop:
    """A pipeline file over topics of its own, and runs of it."""

    def __init__(self, directory: Path, node: OttlaNode, client: Blocking, name: str, text: str) -> None:
        self._node = node
        self._client = client
        self._logs = 0
        self._sent = 0
        self.name = name
        self.directory = directory
        self.topics = {each: f"{name}.{each}" for each in ("orders", "copies", "sums")}
        for topic in self.topics.values():
            client.admin.topics.create(topic, 2)
        self.file = directory / f"{name}.py"
        self.file.write_text(text.format(**self.topics))
        self.processes: list[Process] = []

    def send(self, count: int) -> None:
        numbers = range(self._sent, self._sent + count)
        self._sent += count
        pairs = [(b"u%d" % (each % 3), json.dumps({"id": each, "amount": each}).encode()) for each in numbers]
        self._client.send_all(self.topics["orders"], pairs)

    def start(self, *options: str) -> Process:
        self._logs += 1
        command = [sys.executable, "-m", "ottla", "pipeline", "run", str(self.file), "--json", *LOCAL, *options]
        env = {"OTTLA_BOOTSTRAP": self._node.bootstrap}
        self.processes.append(Process(command, self.directory / f"run-{self._logs}.log", env))
        return self.processes[-1]

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ottla", "pipeline", *arguments],
            env={**environment(), "OTTLA_BOOTSTRAP": self._node.bootstrap},
            capture_output=True,
            text=True,
            timeout=240,
        )

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.cli("status", self.name, "--json").stdout)
        return found

    def ids(self) -> list[int]:
        """Of the committed copies."""
        options = ReadOptions(read_committed=True)
        return sorted(
            json.loads(each.value or b"")["id"] for each in self._client.read(self.topics["copies"], options=options)
        )

    def wait_for_copies(self, count: int, timeout_s: float = 300) -> None:
        deadline_s = time.monotonic() + timeout_s
        while len(self.ids()) < count:
            assert self.processes[-1].poll() is None, self.processes[-1].output[-3000:]
            assert time.monotonic() < deadline_s, self.processes[-1].output[-3000:]
            time.sleep(0.3)


@pytest.fixture
def shop(tmp_path: Path, node: OttlaNode, request: pytest.FixtureRequest) -> Iterator[Shop]:
    with Blocking(node.bootstrap) as client:
        made = Shop(tmp_path, node, client, request.node.originalname.removeprefix("test_"), request.param)
        try:
            yield made
        finally:
            for process in made.processes:
                process.kill()


def events(process: Process, kind: str) -> list[dict[str, Any]]:
    lines = [line for line in process.output.splitlines() if line.startswith('{"event"')]
    return [event for event in map(json.loads, lines) if event["event"] == kind]


@pytest.mark.parametrize("shop", [SHOP + SUMS], indirect=True)
def test_runs_are_stopped_and_restarted(shop: Shop, node: OttlaNode) -> None:
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


@pytest.mark.parametrize("shop", [SHOP], indirect=True)
def test_a_replay_begins_anew(shop: Shop, node: OttlaNode) -> None:
    shop.send(10)
    first = shop.start("--once")
    assert first.wait(300) == 0, first.output[-3000:]
    assert shop.ids() == list(range(10))
    with Blocking(node.bootstrap) as client:
        lags = client.admin.groups.lag(f"spark-{shop.name}-copies")
        assert [(each.partition.topic, each.records) for each in lags] == [(shop.topics["orders"], 0)] * 2
    replay = shop.start("--once", "--from", "earliest")
    assert replay.wait(300) == 0, replay.output[-3000:]
    assert shop.ids() == sorted([*range(10), *range(10)])
    assert (shop.status()["generation"], shop.status()["state"]) == (1, "stopped")


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


@pytest.mark.parametrize(
    "shop", [SHOP.replace("{copies}", "missing").replace("return orders", "return orders.select('usr')")], indirect=True
)
def test_what_is_wrong_is_one_line(shop: Shop) -> None:
    found = shop.cli("check", str(shop.file))
    assert found.returncode == 1
    (line,) = [each for each in found.stderr.splitlines() if each.startswith("error: ")]
    assert f"{shop.file}:12: copies: [UNRESOLVED_COLUMN" in line and "usr" in line
    shop.file.write_text(shop.file.read_text().replace("'usr'", "'user', 'id'"))
    found = shop.cli("check", str(shop.file))
    assert f"error: {shop.file}:10: copies: there is no topic 'missing' to write to" in found.stderr
