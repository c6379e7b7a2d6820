"""Measure how a slow disk affects clients of another disk: a node has two data directories, one of which takes 0.1 s
for each write, each sync, or each read of data that is not in memory, while clients use it. Another client writes and
reads in the other directory and sends heartbeats, one after the other. The delays are made in the node's process
(`tests.support.slow_disk`).
"""

from __future__ import annotations

import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table
from tests.server.talk import FETCH_VERSION, PRODUCE_VERSION, create, fetch_request, produce, produce_request
from tests.support.requests.raw import RawConnection
from tests.support.slow_disk import SlowDisk

from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest

DELAY_S = 0.1
WRITERS = 4
OLD_RECORDS, OLD_RECORD_BYTES = 200, 200_000
KINDS = {"none": "none is", "write": "writes are", "sync": "syncs are", "read": "reads are"}
COLUMNS = ("slow", "p50, ms", "p99, ms", "times the p99 of none", "waits of the event loop")

Samples = dict[str, dict[str, list[float]]]  # slow operation → figure → one value a round


def slow_disk(directory: Path, for_s: float, say: Callable[[str], None]) -> Samples:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    node = context.Process(target=_serve, args=(theirs, directory), daemon=True)
    node.start()
    try:
        bootstrap = ours.recv()
        found: Samples = {}
        for kind in KINDS:
            say(f"slow disk: {KINDS[kind]} slow")
            ours.send(kind)
            ours.recv()
            waits_ms = _measure(bootstrap, kind, for_s)
            ours.send("waits")
            found[kind] = {
                "p50_ms": [statistics.median(waits_ms)],
                "p99_ms": [waits_ms[len(waits_ms) * 99 // 100]],
                "loop_waits": [ours.recv()],
            }
        ours.send(None)
        return found
    finally:
        node.join(60)
        node.terminate()


def show(found: Samples) -> None:
    if not found:
        return
    table = Table(*COLUMNS, title="a client of another directory while one directory is slow, one run")
    usual_ms = found["none"]["p99_ms"][0]
    for kind, figures in found.items():
        p50_ms, p99_ms, waits = (figures[name][0] for name in ("p50_ms", "p99_ms", "loop_waits"))
        table.add_row(kind, f"{p50_ms:.1f}", f"{p99_ms:.1f}", f"{p99_ms / usual_ms:.1f}", f"{waits:.0f}")
    Console().print(table)


# --- the node


def _serve(pipe: Pipe, directory: Path) -> None:
    disk = SlowDisk(pytest.MonkeyPatch(), DELAY_S)
    broker = EmbeddedBroker(directory, {"log.dirs": f"{directory}/a,{directory}/b"}).start()
    try:
        with RawConnection(broker.bootstrap) as connection:
            # A new partition goes to the directory with the fewest partitions.
            for name in ("quick", "write", "filler-1", "sync", "filler-2", "read"):
                create(connection, name, **({"ottla_fsync_before_ack": "true"} if name == "sync" else {}))
                produce(connection, name, [b"v"])
            for _ in range(OLD_RECORDS):
                produce(connection, "read", [bytes(OLD_RECORD_BYTES)])
        place = {path.name: path for path in directory.glob("?/*-0")}
        assert place["quick-0"].parent not in {place[f"{kind}-0"].parent for kind in ("write", "sync", "read")}
        pipe.send(broker.bootstrap)
        while (asked := pipe.recv()) is not None:
            if asked == "waits":
                pipe.send(len(disk.on_loops))
                disk.on_loops.clear()
                continue
            disk.quicken()
            if asked == "write":
                disk.slow_to_write(place["write-0"])
            elif asked != "none":
                disk.slow_down(place[f"{asked}-0"])
            pipe.send(None)
    finally:
        broker.stop()


# --- the clients


def _measure(bootstrap: str, kind: str, for_s: float) -> list[float]:
    """The times that a client waits for its requests, sorted, while others use the slow directory."""
    over = threading.Event()
    busy = [threading.Thread(target=_keep_busy, args=(bootstrap, kind, over)) for _ in range(WRITERS)]
    for each in busy:
        each.start()
    time.sleep(3 * DELAY_S)  # wait until the first of their requests are slow
    waits_ms = []
    with RawConnection(bootstrap) as connection:
        until_s = time.monotonic() + for_s
        while time.monotonic() < until_s:
            for ask in _asks(connection):
                begun_s = time.perf_counter()
                ask()
                waits_ms.append((time.perf_counter() - begun_s) * 1000)
            time.sleep(0.001)
    over.set()
    for each in busy:
        each.join()
    return sorted(waits_ms)


def _asks(connection: RawConnection) -> list[Callable[[], object]]:
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return [
        lambda: produce(connection, "quick", [b"v"]),
        lambda: connection.call(
            fetch_request({("quick", 0): 0}, max_wait_ms=0, partition_max_bytes=1_000), FETCH_VERSION
        ),
        lambda: connection.call(heartbeat, 4),
    ]


def _keep_busy(bootstrap: str, kind: str, over: threading.Event) -> None:
    offset = 0
    with RawConnection(bootstrap) as connection:
        while not over.is_set():
            if kind == "read":
                connection.call(fetch_request({("read", 0): offset % OLD_RECORDS}, max_wait_ms=0), FETCH_VERSION)
                offset += 5
            else:
                topic = "write" if kind == "none" else kind
                connection.call(produce_request({(topic, 0): [bytes(1_000)]}), PRODUCE_VERSION)
            if kind == "none":
                over.wait(DELAY_S)
