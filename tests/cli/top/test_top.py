"""`ottla top` on real nodes: every view once, as JSON, and on a terminal with keys."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.bundle.unpacked import MeasuredCluster
from tests.cli.conftest import Run, invoke, started
from tests.support.ports import free_ports
from tests.support.processes.clusters import running
from tests.support.waiting import WAIT_S, until

from ottla.client.blocking.blocking import Blocking
from ottla.model.ids import TopicPartition
from ottla.testing.broker import EmbeddedBroker

CONTROLS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    settings = {"ottla.metrics.listener": f"127.0.0.1:{free_ports(1)[0]}"}
    with EmbeddedBroker(tmp_path_factory.mktemp("node") / "data", settings) as made:
        with Blocking(made.bootstrap) as client:
            client.admin.topics.create("orders", partitions=2)
            client.admin.topics.create("payments")
            client.send_all("payments", [(b"k", b"v")] * 100)
            client.admin.groups.set_offsets("readers", {TopicPartition("payments", 0): 40})
        yield made


@contextmanager
def writing(broker: EmbeddedBroker) -> Iterator[None]:
    """Records are written to `orders` all the time."""
    is_over = threading.Event()

    def write() -> None:
        with Blocking(broker.bootstrap) as client:
            while not is_over.wait(0.05):
                client.send_all("orders", [(None, b"value" * 20)] * 10)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def once(broker: EmbeddedBroker, *words: str) -> Run:
    run = invoke("top", "-b", broker.bootstrap, "--once", "-i", "0.5", *words)
    assert run.code == 0, run.err
    return run


def test_each_view_as_json(broker: EmbeddedBroker) -> None:
    with writing(broker):
        brokers = once(broker, "--json").json
        topics = once(broker, "--view", "topics", "--json").json
        groups = once(broker, "--view", "groups", "--json").json
        requests = once(broker, "--view", "requests", "--json").json
    (row,) = brokers["rows"]
    assert row["broker"] == 1 and row["req/s"] > 0 and row["in/s"] > 0 and 0 <= row["idle"] <= 100 and row["conns"] >= 1
    assert brokers["hints"] == [] and brokers["seconds"] >= 0.5
    found = {each["topic"]: each for each in topics["rows"]}
    assert found["orders"]["records/s"] > 0 and found["orders"]["bytes/s"] > 0 and found["payments"]["records"] == 100
    assert topics["rows"][0]["topic"] == "orders", "the one with most records first"
    (group,) = groups["rows"]
    assert (group["group"], group["lag"], group["read/s"]) == ("readers", 60, 0.0) and group["seconds"] >= 0
    assert "Produce" in {each["request"] for each in requests["rows"] if each["req/s"] > 0}


def test_sorted_and_filtered_table(broker: EmbeddedBroker) -> None:
    lines = once(broker, "-v", "topics", "--sort", "topic", "--filter", "[op]a*").lines
    assert lines[0].split("\t")[0] == "topic" and [line.split("\t")[0] for line in lines[1:]] == ["payments"]


def test_unknown_column(broker: EmbeddedBroker) -> None:
    run = invoke("top", "-b", broker.bootstrap, "--sort", "nope")
    assert run.code == 2 and "brokers have no column 'nope'" in run.err


def test_without_metrics_it_says_so(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data") as plain:
        shown = once(plain).lines
        assert "req/s" not in shown[0] and "# without ottla.metrics.listener" in shown[2]
        assert once(plain, "--view", "requests", "--json").json["rows"] == []


def test_lines_of_json_until_it_is_interrupted(broker: EmbeddedBroker) -> None:
    with started("top", "-b", broker.bootstrap, "--json", "-v", "topics", "-i", "0.2") as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        rest, told = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0 and "Traceback" not in told and rest.count("Traceback") == 0
    assert all(line["view"] == "topics" for line in lines)


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, *words: str, columns: int = 60, lines: int = 20) -> None:
        self._own, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.before = termios.tcgetattr(other)
        env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        command = [sys.executable, "-m", "ottla", *words]
        self.process = subprocess.Popen(
            command, stdin=other, stdout=other, stderr=other, env=env | {"TERM": "xterm"}, start_new_session=True
        )
        self._other = other
        self.told = ""

    def read(self) -> str:
        while select.select([self._own], [], [], 0.05)[0]:
            self.told += os.read(self._own, 65_536).decode("utf-8", "replace")
        return self.told

    def sees(self, *texts: str) -> None:
        """Wait until the last screen has these texts."""
        until(lambda: all(each in self.screen for each in texts))

    @property
    def screen(self) -> str:
        """What was drawn last."""
        return CONTROLS.sub("", self.read().rpartition("\x1b[H")[2])

    def press(self, keys: str) -> None:
        os.write(self._own, keys.encode())

    def end(self) -> int:
        deadline = time.monotonic() + WAIT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        assert self.process.poll() is not None, self.told[-2000:]
        self.read()
        assert termios.tcgetattr(self._other) == self.before, "the terminal is as before"
        return self.process.returncode

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._own)
        os.close(self._other)


@contextmanager
def on_terminal(*words: str) -> Iterator[Terminal]:
    terminal = Terminal(*words)
    try:
        yield terminal
    finally:
        terminal.close()


def test_keys_on_a_narrow_terminal(broker: EmbeddedBroker) -> None:
    with on_terminal("top", "-b", broker.bootstrap, "-i", "0.3") as terminal:
        terminal.sees("1 of 1 brokers up", "sort broker", "leaders", "q quit")
        terminal.press("t")
        terminal.sees("topics", "orders", "payments", "sort records/s")
        assert all(len(line.rstrip()) <= 60 for line in terminal.screen.splitlines())
        terminal.press("/pay\n")
        terminal.sees("filter pay", "payments")
        until(lambda: "orders" not in terminal.screen)
        terminal.press("s")
        terminal.sees("sort bytes/s")
        terminal.press("/\n")
        terminal.press("g")
        terminal.sees("readers", "seconds", "60")
        terminal.press("r")
        terminal.sees("p99 ms", "DescribeCluster")
        terminal.press("q")
        assert terminal.end() == 0
        assert "Traceback" not in terminal.told


def test_interrupt_on_a_terminal(broker: EmbeddedBroker) -> None:
    with on_terminal("top", "-b", broker.bootstrap, "-v", "groups", "-i", "0.3") as terminal:
        terminal.sees("readers")
        os.killpg(terminal.process.pid, signal.SIGINT)
        assert terminal.end() == 0
        assert "Traceback" not in terminal.told


def test_a_broker_that_dies_meanwhile(tmp_path: Path) -> None:
    with (
        running(MeasuredCluster(tmp_path)) as cluster,
        on_terminal("top", "-b", cluster.bootstrap, "-i", "0.3") as terminal,
    ):
        with Blocking(cluster.bootstrap) as client:
            client.admin.topics.create("t", partitions=3, replication_factor=3)
        terminal.sees("3 of 3 brokers up", "req/s")
        cluster.kill(3)
        terminal.sees("2 of 3 brokers up", "fenced")
        terminal.press("q")
        assert terminal.end() == 0
