"""`python -m bench.cluster [--quick] [--only WORKLOAD ...]`: three nodes against three of Kafka's, print, store."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench import memory, report, workloads
from bench.cluster import failover, loads
from bench.cluster.rows import found_of
from bench.cluster.subjects import Three
from bench.workloads import Figures, Scale

LOADS: dict[str, Callable[[Three, Scale, int], Figures]] = {
    "produce_kib": loads.produce_kib,
    "produce_small": loads.produce_small,
    "prepared_kib": loads.prepared_kib,
    "prepared_small": loads.prepared_small,
    "latency": loads.latency,
}
KINDS = ("kafka", "ottla")
WORKLOADS = (*LOADS, "idle", "failover", "partitions")


@dataclass(frozen=True, slots=True)
class Length:
    scale: Scale
    warm_up: Scale
    trials: int
    partitions: int
    idle_partitions: int
    idle_s: float


QUICK = Length(workloads.QUICK, workloads.WARM_UP_QUICK, trials=3, partitions=1_000, idle_partitions=300, idle_s=10)
FULL = Length(workloads.FULL, workloads.WARM_UP_FULL, trials=12, partitions=5_000, idle_partitions=1_000, idle_s=60)


class Run:
    """Measures the clusters. Each runs only while it is measured, because two would not fit on a small machine."""

    def __init__(self, length: Length, only: set[str], directory: Path, say: Callable[[str], None]) -> None:
        self.length = length
        self.only = only
        self.directory = directory
        self.say = say
        self.samples: report.Samples = {}
        self.failed: list[str] = []

    def wants(self, workload: str) -> bool:
        return not self.only or workload in self.only

    def note(self, workload: str, subject: Three, figures: Figures) -> None:
        report.note(self.samples, workload, subject.name, figures)

    def on_a_cluster(self, name: str, work: Callable[[Three], None]) -> None:
        """Run a workload on a cluster of each kind. If it fails, the error is printed, its rows are left out, and the
        next workload goes on.
        """
        for kind in KINDS:
            self.say(f"start three of {kind}")
            subject = Three(kind, self.directory / f"{kind}-{name}")
            try:
                subject.launch()
                work(subject)
            except Exception as error:
                traceback.print_exc()
                self.failed.append(f"{name} on {kind}: {error}")
            finally:
                subject.stop()
                shutil.rmtree(self.directory / f"{kind}-{name}", ignore_errors=True)

    def all(self) -> None:
        if any(self.wants(load) for load in LOADS):
            self.on_a_cluster("loads", self.loads)
        if self.wants("idle"):
            self.on_a_cluster("idle", self.idle)
        if self.wants("failover"):
            self.on_a_cluster(
                "failover", lambda subject: failover.measure(subject, self.length.trials, self.say, self.note)
            )
        if self.wants("partitions"):
            self.on_a_cluster("partitions", self.partitions)

    def loads(self, subject: Three) -> None:
        loads.prepare(subject)
        self.note("memory", subject, {f"idle_{name}": value for name, value in loads.memory(subject).items()})
        self.say("fetch free memory from the host")
        with memory.in_hand(self.directory):
            self.loads_in_turn(subject, [load for load in LOADS if self.wants(load)])
        self.note("memory", subject, loads.memory(subject))

    def loads_in_turn(self, subject: Three, wanted: Sequence[str]) -> None:
        for load in wanted:
            self.say(f"warm up {load} on {subject.name}")
            LOADS[load](subject, self.length.warm_up, -1)
        for round_ in range(self.length.scale.rounds):
            for load in wanted:
                self.say(f"{load} on {subject.name}, round {round_ + 1} of {self.length.scale.rounds}")
                self.note(load, subject, LOADS[load](subject, self.length.scale, round_))

    def failover(self, subject: Three) -> None:
        failover.measure(subject, self.length.trials, self.say, self.note)

    def idle(self, subject: Three) -> None:
        self.say(f"{self.length.idle_partitions:,} idle partitions on {subject.name}")
        self.note("idle", subject, loads.idle(subject, self.length.idle_partitions, self.length.idle_s))

    def partitions(self, subject: Three) -> None:
        self.say(f"{self.length.partitions:,} partitions on {subject.name}")
        self.note("partitions", subject, loads.many_partitions(subject, self.length.partitions))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.cluster", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--only", nargs="*", default=[], choices=WORKLOADS, help="some workloads")
    parser.add_argument("--no-store", action="store_true", help="print only")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    length, mode = (QUICK, "quick") if chosen.quick else (FULL, "full")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the clusters are stopped, too
    directory = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    run = Run(length, set(chosen.only), directory, print)
    try:
        with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), transient=True) as bar:
            task = bar.add_task("bench", total=None)
            run.say = lambda text: bar.update(task, description=text)
            run.all()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        found = found_of(run.samples, length.partitions, length.idle_partitions)
        report.show(found)
    if not (chosen.no_store or chosen.only):
        print(f"stored in {report.store(run.samples, found, f'cluster-{mode}').relative_to(report.ROOT)}")
        report.document({"cluster": report.table(found, mode)})
    if run.failed:
        sys.exit("failed: " + "; ".join(run.failed))


if __name__ == "__main__":
    main()
