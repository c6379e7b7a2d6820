"""Measure what metrics cost: the same requests to one node, which in turns counts them and is scraped every five
seconds, and does neither; the CPU time of the broker for each gigabyte, and for each tiny request.

Every measurement lasts as long as the interval of scrapes; the node has a thousand partitions, which the scrape looks
at. The ratio is the median of those of all pairs of measurements, one right after the other.
"""

from __future__ import annotations

import statistics
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from tests.support.ports import free_ports

from bench import probe
from bench.subject import Ottla, run_time_s
from bench.switched import WAYS, WITH, WITHOUT, Switched
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.produce import ProduceRequest

TOPIC = "measured"
OTHERS, PARTITIONS = 100, 10  # topics that only scrapes look at, and their partitions
SCRAPE_S = 5.0
FETCH = 12
FETCH_BYTES = 1 << 20
GOAL = 1.03
# Gigabytes are produced, of which little is kept.
SETTINGS = {
    "log.retention.ms": "-1",  # the records are of 1970
    "log.retention.bytes": str(256 << 20),
    "log.segment.bytes": str(64 << 20),
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "0",
}
COLUMNS = ("broker CPU of", "without metrics", "with", "with / without", "goal")

Samples = dict[str, dict[str, list[float]]]  # way → load → CPU per unit, one value a measurement


class _Load(NamedTuple):
    name: str
    request: Any
    version: int
    at_once: int  # requests on the way
    units: float  # of one request


def metrics(directory: Path, rounds: int, say: Callable[[str], None]) -> Samples:
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    found: Samples = {}
    with ExitStack() as started:
        node = Switched("counts", directory, SETTINGS | {"ottla.metrics.listener": address})
        node.launch()
        started.callback(node.stop)
        probe.until_acknowledged(node.bootstrap, TOPIC)
        probe.create_topics(node.bootstrap, [f"other-{number}" for number in range(OTHERS)], PARTITIONS)
        with probe.Connection(node.bootstrap) as connection:  # what is fetched
            connection.repeat(_produce(600), probe.PRODUCE, 4 * FETCH_BYTES // 60_000, 8)
        for load in _loads():
            for round_ in range(-1, rounds):
                say(f"metrics, {load.name}, round {round_ + 1} of {rounds}")
                for way in WAYS if round_ % 2 else reversed(WAYS):
                    node.go(way)
                    cost = _measure(node, load, address if way == WITH else "")
                    if round_ >= 0:
                        found.setdefault(way, {}).setdefault(load.name, []).append(cost)
    return found


def _loads() -> list[_Load]:
    gigabyte = 1e9
    produced = len(_batch(600))
    return [
        # First, as retention deletes what is fetched as soon as more is produced.
        _Load("a gigabyte fetched, 1 MiB a request, s", _fetch(), FETCH, 2, FETCH_BYTES / gigabyte),
        _Load("a gigabyte produced, 64 KB a request, s", _produce(600), probe.PRODUCE, 8, produced / gigabyte),
        _Load("a Produce of one record, µs", _produce(1), probe.PRODUCE, 40, 1e-6),
    ]


def _measure(node: Ottla, load: _Load, address: str) -> float:
    """The CPU seconds for each unit, in the time between two scrapes."""
    with probe.Connection(node.bootstrap) as connection:
        _check(connection.ask(load.request, load.version))
        scrape = threading.Timer(SCRAPE_S / 2, _scrape, [address]) if address else None
        begun_s, cpu_s, count = time.perf_counter(), run_time_s(node.pids), 0
        if scrape is not None:
            scrape.start()
        while time.perf_counter() - begun_s < SCRAPE_S:
            connection.repeat(load.request, load.version, load.at_once * 5, load.at_once)
            count += load.at_once * 5
        if scrape is not None:
            scrape.join()
        return (run_time_s(node.pids) - cpu_s) / (count * load.units)


def _check(answer: Any) -> None:
    """Stop if the node does something else than what is measured."""
    (topic,) = answer.responses
    (part,) = topic.partitions if hasattr(topic, "partitions") else topic.partition_responses
    assert part.error_code == 0, answer
    assert not hasattr(part, "records") or len(part.records) > FETCH_BYTES * 0.9, len(part.records)


def _scrape(address: str) -> None:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        assert answer.read().startswith(b"# HELP")


def _batch(records: int) -> bytearray:
    return build_batch([Record(at, 0, None, b"x" * 100, ()) for at in range(records)])


def _produce(records: int) -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=0, records=_batch(records))
    return ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[data(name=TOPIC, partition_data=[part])])


def _fetch() -> FetchRequest:
    part = FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    return FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchRequest.Topic(topic=TOPIC, partitions=[part])])


def rows(found: Samples) -> list[tuple[str, ...]]:
    """The figures of every load: medians."""
    told = []
    for load in found.get(WITH, {}):
        off, on = found[WITHOUT][load], found[WITH][load]
        ratio = statistics.median(one / other for one, other in zip(on, off, strict=True))
        figures = f"{statistics.median(off):.2f}", f"{statistics.median(on):.2f}", f"{ratio:.3f}"
        told.append((load, *figures, f"≤ {GOAL:.2f}"))
    return told


def show(found: Samples) -> None:
    if found:
        drawn = Table(*COLUMNS, title="what metrics cost, scraped every 5 s")
        for row in rows(found):
            drawn.add_row(*row)
        Console().print(drawn)


def section(found: Samples, last_run: str) -> list[str]:
    """The same as Markdown."""
    head = [last_run, "", f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    return head + [f"| {' | '.join(row)} |" for row in rows(found)]
