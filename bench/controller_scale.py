"""`python -m bench.controller_scale [PARTITIONS …]`: what a controller of very many partitions needs.

For each size, in a process of its own: memory of the state, a snapshot written and read, taking over the lead (a copy
of the state, timers), and fencing one of ten brokers. All of it may grow linearly with the number of partitions and not
faster: each figure per partition is compared with that of the smallest size, and the program fails if it is far larger.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.subject import resident_mib
from ottla.cluster import journal
from ottla.cluster.commands.create_topics import CreateTopics, TopicToCreate
from ottla.cluster.commands.fence import FenceBroker
from ottla.cluster.commands.start import Activate, StartBroker
from ottla.cluster.entities import Broker, ListenerEndpoint
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.features import DEFAULT_LEVELS, SUPPORTED_FEATURES
from ottla.cluster.machine import ClusterCommand, ClusterMachine
from ottla.cluster.snapshot import feature, snapshot
from ottla.cluster.state import ClusterState
from ottla.cluster.view import MetadataView
from ottla.model.node_config import NodeConfig

SIZES = (100_000, 300_000, 1_000_000)
BROKERS = 10
REPLICATION_FACTOR = 3
PARTITIONS_PER_TOPIC = 100
TOPICS_PER_COMMAND = 100
# A figure per partition may be this many times that of the smallest size before growth counts as more than linear: data
# that no longer fits the processor's caches costs more, but far less than the tenfold of quadratic growth.
GROWTH_MAX = 3.0
_MIB = 1024 * 1024


class Controller:
    """A cluster state with its machine, without a metadata log on disk."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.written = 0
        config = NodeConfig({"node.id": "1"})
        self.machine = ClusterMachine(MetadataView(state, 1, lambda: config, random.Random(1), lambda: self.written))

    def submit(self, command: ClusterCommand) -> int:
        """Decide and apply a command; the number of its records."""
        result = self.machine.decide(command, 0)
        for entry in result.records:
            self.machine.apply(entry)
        for note in result.notes:
            self.machine.note(note)
        self.written += len(result.records)
        return len(result.records)


def broker(id: int) -> Broker:
    return Broker(
        id=id,
        epoch=id,
        incarnation_id=bytes([id]) * 16,
        endpoints=(ListenerEndpoint("PLAINTEXT", f"host{id}", 9092, 0),),
        features=tuple(SUPPORTED_FEATURES.items()),
        rack=None,
        fenced=True,
        directories=(bytes([200, id]) * 8,),
        cordoned=(),
    )


def built(partitions: int) -> Controller:
    """The controller of a cluster with so many partitions."""
    controller = Controller(ClusterState())
    controller.submit(Activate(tuple(feature(name, level) for name, level in DEFAULT_LEVELS.items())))
    for id in range(1, BROKERS + 1):
        controller.submit(StartBroker(broker(id), clean=True))
    topics = [
        TopicToCreate(f"topic-{number}", PARTITIONS_PER_TOPIC, REPLICATION_FACTOR)
        for number in range(partitions // PARTITIONS_PER_TOPIC)
    ]
    for first in range(0, len(topics), TOPICS_PER_COMMAND):
        controller.submit(CreateTopics(tuple(topics[first : first + TOPICS_PER_COMMAND])))
    assert controller.state.partition_count == partitions
    return controller


def write(state: ClusterState, path: Path) -> None:
    with path.open("wb") as file:
        for batch in journal.snapshot_batches(snapshot(state), epoch=1, last_timestamp=0, now_ms=0):
            file.write(batch)


def load(path: Path) -> ClusterState:
    state = ClusterState()
    for item in journal.items(memoryview(path.read_bytes())):
        if isinstance(item.content, MetadataEntry):
            state.apply(item.content.record)
    return state


def take_over(state: ClusterState) -> Controller:
    controller = Controller(state.copy())
    controller.submit(Activate(()))
    return controller


def measure(partitions: int) -> dict[str, float]:
    """The figures of one size: seconds of CPU time (because other programs may use this machine), memory in MiB."""
    figures: dict[str, float] = {"partitions": partitions}
    before = resident_mib([os.getpid()])
    state = timed(figures, "create s", lambda: built(partitions)).state
    gc.collect()
    figures["state MiB"] = resident_mib([os.getpid()]) - before
    gc.freeze()  # as a node does once it has started
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "snapshot"
        timed(figures, "write snapshot s", lambda: write(state, path))
        figures["snapshot MiB"] = path.stat().st_size / _MIB
        restored = timed(figures, "load snapshot s", lambda: load(path))
    assert restored.topics == state.topics and restored.index == state.index
    del restored
    gc.collect()
    active = timed(figures, "take over s", lambda: take_over(state))
    epoch = active.state.brokers[1].epoch
    figures["fence records"] = timed(figures, "fence 1 of 10 s", lambda: active.submit(FenceBroker(1, epoch)))
    return figures


def timed(figures: dict[str, float], name: str, work: Callable[[], Any]) -> Any:
    start_s = time.process_time()
    result = work()
    figures[name] = time.process_time() - start_s
    return result


def growth(all_figures: list[dict[str, float]]) -> Iterator[tuple[str, float]]:
    """Each figure per partition at the largest size, as a multiple of the same figure at the smallest size."""
    first, last = all_figures[0], all_figures[-1]
    for name in first:
        if name != "partitions" and first[name] > 0:
            yield name, (last[name] / last["partitions"]) / (first[name] / first["partitions"])


def main() -> int:
    parser = argparse.ArgumentParser(description="What a controller of very many partitions needs.")
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES), metavar="PARTITIONS")
    parser.add_argument("--one", action="store_true", help="measure the first size in this process, print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.sizes[0])))
        return 0
    all_figures = []
    for size in arguments.sizes:
        child = [sys.executable, "-m", "bench.controller_scale", "--one", str(size)]
        done = subprocess.run(child, check=True, capture_output=True, text=True)
        all_figures.append(json.loads(done.stdout))
        if size == arguments.sizes[0]:
            print("".join(f"{name:>18}" for name in all_figures[0]))
        print("".join(f"{value:18,.3f}" for value in all_figures[-1].values()), flush=True)
    worst = dict(growth(all_figures))
    print("growth per partition, largest against smallest size:")
    for name, ratio in worst.items():
        print(f"{name:>18} {ratio:6.2f}{'' if ratio <= GROWTH_MAX else '  more than linear'}")
    return int(any(ratio > GROWTH_MAX for ratio in worst.values()))


if __name__ == "__main__":
    sys.exit(main())
