"""A topic is never held in memory: a console process that browses and searches a large one stays small."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from tests.console.consoles import Visitor
from tests.support.waiting import WAIT_S

from ottla.testing.broker import EmbeddedBroker

COUNT = 10_000
SIZE = 10_000
GROWTH_MAX = 60_000_000


@contextmanager
def console_process(bootstrap: str) -> Iterator[tuple[Visitor, int]]:
    """`ottla console` as a process, and its id."""
    words = [sys.executable, "-m", "ottla", "console", "-b", bootstrap, "-l", "127.0.0.1:0", "--registry", "off"]
    plain = {name: text for name, text in os.environ.items() if not name.startswith("OTTLA_")}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=plain)
    try:
        assert process.stdout is not None
        word, url = process.stdout.readline().split()
        assert word == "ready"
        yield Visitor(url), process.pid
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def resident(pid: int, what: str) -> int:
    """Bytes of memory of a process: `VmRSS`, or `VmHWM` for the most that it ever had."""
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith(what))
    return int(line.split()[1]) << 10


def test_browsing_and_searching_a_large_topic(broker: EmbeddedBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20})
    value = os.urandom(SIZE // 2).hex()
    for number in range(COUNT):
        producer.produce("large", f"{number:08}{value}", partition=0)
        if not number % 1_000:
            producer.flush(60)
    producer.produce("large", b"needle", partition=0)
    assert producer.flush(60) == 0
    with console_process(broker.bootstrap) as (visitor, pid):
        for path in ("/topics/large/records?count=10", "/topics/large/0/0", "/"):
            visitor.get(path)
        visitor.stream("/topics/large/search/run?in=value&text=needle&since=9900")
        before = resident(pid, "VmRSS")
        (*_, last) = visitor.stream("/topics/large/search/run?in=value&text=needle")
        assert "1 found" in last["html"] and f"{COUNT + 1:,} records read" in last["html"], last
        for start in ("newest", "oldest"):
            shown = visitor.get(f"/topics/large/records?count=200&start={start}")
            assert (shown.status, "200 records of" in shown.words) == (200, True)
        assert visitor.get("/topics/large/live/part?text=needle").status == 200
        grown = resident(pid, "VmRSS") - before
        most = resident(pid, "VmHWM") - before
    assert grown < GROWTH_MAX and most < 2 * GROWTH_MAX, (grown, most)
