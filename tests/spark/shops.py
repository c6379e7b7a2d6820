"""Pipelines for tests: a file over topics of its own, run by `ottla pipeline` in processes of their own."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.processes.node import OttlaNode
from tests.support.spark.sessions import Process, environment
from tests.support.waiting import COMMAND_S

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.fetching import ConsumedRecord, ReadOptions

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
WINDOWS = """
from ottla.spark import late_to, tumbling

@pipeline.query(output="{windows}", key="user", late=late_to("{late}", window="10 seconds"))
def windows():
    parsed = F.from_json(F.col("value").cast("string"), "amount long")
    amounts = topic("{orders}").select(F.col("key").cast("string").alias("user"), "timestamp", parsed.amount.alias("n"))
    found = tumbling(amounts, "10 seconds", "user", grace="5 seconds").agg(F.sum("n").alias("n"))
    return found.select("user", F.unix_seconds("window.start").alias("start"), "n")
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
        self.topics = {each: f"{name}.{each}" for each in ("orders", "copies", "sums", "windows", "late")}
        for topic in self.topics.values():
            # Records are of 1970 in some tests, and are to stay.
            client.admin.topics.create(topic, 2, configs={"retention.ms": "-1"})
        self.file = directory / f"{name}.py"
        self.file.write_text(text.format(**self.topics))
        self.processes: list[Process] = []

    def send(self, count: int) -> None:
        numbers = range(self._sent, self._sent + count)
        self._sent += count
        pairs = [(b"u%d" % (each % 3), json.dumps({"id": each, "amount": each}).encode()) for each in numbers]
        self._client.send_all(self.topics["orders"], pairs)

    def send_at(self, *records: tuple[int, str, int]) -> None:
        """Orders of a second, a user and an amount."""
        for second, user, amount in records:
            value = json.dumps({"id": self._sent, "amount": amount}).encode()
            self._client.send(self.topics["orders"], value, user.encode(), timestamp=second * 1_000)
            self._sent += 1

    def start(self, *options: str, on: Sequence[str] = LOCAL) -> Process:
        self._logs += 1
        command = [sys.executable, "-m", "ottla", "pipeline", "run", str(self.file), "--json", *on, *options]
        env = {"OTTLA_BOOTSTRAP": self._node.bootstrap}
        self.processes.append(Process(command, self.directory / f"run-{self._logs}.log", env))
        return self.processes[-1]

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ottla", "pipeline", *arguments],
            env={**environment(), "OTTLA_BOOTSTRAP": self._node.bootstrap},
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
        )

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.cli("status", self.name, "--json").stdout)
        return found

    def read(self, topic: str) -> list[ConsumedRecord]:
        """What is committed."""
        return list(self._client.read(self.topics[topic], options=ReadOptions(read_committed=True)))

    def values(self, topic: str) -> list[dict[str, Any]]:
        return sorted((json.loads(each.value or b"") for each in self.read(topic)), key=str)

    def ids(self) -> list[int]:
        """Of the committed copies."""
        return sorted(each["id"] for each in self.values("copies"))

    def wait_for_copies(self, count: int, timeout_s: float = 300) -> None:
        deadline_s = time.monotonic() + timeout_s
        while len(self.ids()) < count:
            assert self.processes[-1].poll() is None, self.processes[-1].output[-3000:]
            assert time.monotonic() < deadline_s, self.processes[-1].output[-3000:]
            time.sleep(0.3)


def events(process: Process, kind: str) -> list[dict[str, Any]]:
    lines = [line for line in process.output.splitlines() if line.startswith('{"event"')]
    return [event for event in map(json.loads, lines) if event["event"] == kind]
