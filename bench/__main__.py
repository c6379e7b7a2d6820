"""`python -m bench [--quick] [--only WORKLOAD ... [--store]]`: run, print, store."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench import authorization, memory, metrics, one_broker, probe, report, security_report, slow_disk, workloads
from bench.clients import report as client_report
from bench.clients.workload import clients
from bench.floods import floods
from bench.groups import rebalance
from bench.groups.commits import commits
from bench.groups.shares import shares
from bench.idle_tls import idle_tls
from bench.neighbour import neighbour
from bench.subject import Kafka, Ottla, Subject, resident_mib
from bench.transactions import transactions
from bench.workloads import Figures, Scale

Load: TypeAlias = Callable[[Subject, Scale, int], Figures]
LOADS: dict[str, Load] = {
    "produce_kib": workloads.produce_kib,
    "produce_small": workloads.produce_small,
    "produce_single": workloads.produce_single,
    "consume": workloads.consume,
    "latency": workloads.latency,
    "transactions": transactions,
    "rebalance_classic": rebalance.classic,
    "rebalance_cooperative": rebalance.cooperative,
    "rebalance_modern": rebalance.modern,
    "commits": commits,
    "shares": shares,
    "neighbour": neighbour,
    "floods": floods,
}
# Loads of brokers that have a listener with TLS, too. The other brokers have none, so that their memory and their start
# are those of a plain broker.
TLS_LOADS: dict[str, Load] = {
    "produce_tls": workloads.produce_tls,
    "consume_tls": workloads.consume_tls,
    "idle_tls": idle_tls,
}
KINDS: tuple[type[Kafka], type[Ottla]] = (Kafka, Ottla)


class Run:
    def __init__(
        self, scale: Scale, warm_up: Scale, only: set[str], directory: Path, say: Callable[[str], None]
    ) -> None:
        self.scale = scale
        self.warm_up = warm_up
        self.only = only
        self.directory = directory
        self.say = say
        self.samples: report.Samples = {}

    def wants(self, workload: str) -> bool:
        return not self.only or workload in self.only

    def note(self, workload: str, subject: Subject, figures: Figures) -> None:
        report.note(self.samples, workload, subject.name, figures)

    def steady(self) -> None:
        """Start the brokers, then run the loads, alternating between the brokers."""
        running: list[Subject] = []
        try:
            for kind in KINDS:
                for attempt in range(max(1, self.scale.starts if self.wants("start") else 1)):
                    self.say(f"start {kind.name}")
                    subject = kind(self.directory / f"{kind.name}-{attempt}")
                    running.append(subject)
                    figures = workloads.start(subject)
                    self.note("start", subject, figures)
                    if attempt + 1 < self.scale.starts and self.wants("start"):
                        running.pop().stop()
            for subject in running:
                for topic, partitions in (
                    ("kib", workloads.PARTITIONS),
                    ("small", 4),
                    ("single", 1),
                    ("latency", 1),
                ):
                    probe.create_topics(subject.bootstrap, [topic], partitions)
            self.say("fetch free memory from the host")
            with memory.in_hand(self.directory):
                self.loads(running, LOADS)
            if self.wants("clients"):
                self.clients(running[-1])
            for subject in running:
                self.note("memory", subject, {"resident_mib": resident_mib(subject.pids)})
        finally:
            for subject in running:
                subject.stop()

    def over_tls(self) -> None:
        """The loads over TLS, on brokers of their own."""
        running: list[Subject] = []
        try:
            for kind in KINDS:
                self.say(f"start {kind.name} with TLS")
                subject = kind(self.directory / f"{kind.name}-tls", with_tls=True)
                running.append(subject)
                workloads.start(subject)
                probe.create_topics(subject.bootstrap, ["tls"], workloads.PARTITIONS)
            with memory.in_hand(self.directory):
                self.loads(running, TLS_LOADS)
        finally:
            for subject in running:
                subject.stop()

    def loads(self, running: Sequence[Subject], loads: Mapping[str, Load]) -> None:
        for workload in filter(self.wants, loads):
            for subject in running:
                self.say(f"warm up {workload} on {subject.name}")
                loads[workload](subject, self.warm_up, -1)
        for round_ in range(self.scale.rounds):
            for workload in filter(self.wants, loads):
                for subject in running if round_ % 2 else reversed(running):
                    self.say(f"{workload} on {subject.name}, round {round_ + 1} of {self.scale.rounds}")
                    self.note(workload, subject, loads[workload](subject, self.scale, round_))

    def clients(self, subject: Subject) -> None:
        """Compare clients, not brokers: all clients use Ottla."""
        for _ in range(self.scale.rounds):
            for name, figures in clients(subject, self.scale.client_records, self.say):
                report.note(self.samples, "clients", name, figures)

    def partitions(self) -> None:
        for kind in KINDS:
            self.say(f"{self.scale.topics * self.scale.partitions_per_topic:,} partitions on {kind.name}")
            subject = kind(self.directory / f"{kind.name}-many")
            try:
                workloads.start(subject)
                self.note("partitions", subject, workloads.many_partitions(subject, self.scale))
            finally:
                subject.stop()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything, some minutes")
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        choices=[
            *LOADS,
            *TLS_LOADS,
            "clients",
            "start",
            "partitions",
            "slow_disk",
            "authorization",
            "metrics",
            *one_broker.NAMES,
        ],
        help="some workloads",
    )
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("--no-store", action="store_true", help="print only")
    kept.add_argument("--store", action="store_true", help="with --only: store, and document whole sections")
    return parser.parse_args()


def measure(run: Run, lengths: one_broker.Lengths) -> None:
    if any(run.wants(load) for load in (*LOADS, "clients", "start")):
        run.steady()
    if any(map(run.wants, TLS_LOADS)):
        run.over_tls()
    if run.wants("partitions"):
        run.partitions()
    if run.wants("slow_disk"):
        run.samples["slow_disk"] = slow_disk.slow_disk(run.directory / "slow", run.scale.latency_s, run.say)
    if run.wants("authorization"):
        run.samples["authorization"] = authorization.authorization(
            run.directory / "authorization", run.scale.authorization_rounds, run.say
        )
    if run.wants("metrics"):
        run.samples["metrics"] = metrics.metrics(run.directory / "metrics", run.scale.metrics_rounds, run.say)
    wanted = [name for name in one_broker.NAMES if run.wants(name)]
    if wanted:
        for name, measured in one_broker.measure(wanted, lengths, run.directory / "one-broker", run.say):
            run.samples[name] = measured


def main() -> None:
    chosen = arguments()
    scale, mode = (workloads.QUICK, "quick") if chosen.quick else (workloads.FULL, "full")
    warm_up = workloads.WARM_UP_QUICK if chosen.quick else workloads.WARM_UP_FULL
    lengths = one_broker.QUICK if chosen.quick else one_broker.FULL
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the brokers are stopped, too
    directory = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    try:
        with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), transient=True) as bar:
            task = bar.add_task("bench", total=None)
            run = Run(scale, warm_up, set(chosen.only), directory, lambda text: bar.update(task, description=text))
            measure(run, lengths)
    except Exception:
        # Show what was measured before the failure.
        report.show(report.rows(run.samples, scale.topics * scale.partitions_per_topic))
        one_broker.Findings.of(run.samples, lengths).show()
        raise
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    found = report.rows(run.samples, scale.topics * scale.partitions_per_topic)
    report.show(found)
    compared = client_report.rows(run.samples.get("clients", {}))
    client_report.show(compared)
    slow_disk.show(run.samples.get("slow_disk", {}))
    security_report.show(run.samples)
    metrics.show(run.samples.get("metrics", {}))
    findings = one_broker.Findings.of(run.samples, lengths)
    findings.show()
    if chosen.store or not (chosen.no_store or chosen.only):
        print(f"stored in {report.store(run.samples, found, mode).relative_to(report.ROOT)}")
        sections = findings.sections(report.last_run(mode))
        if compared:
            sections["clients"] = client_report.table(compared)
        sections |= security_report.sections(run.samples, report.last_run(mode))
        if "metrics" in run.samples:
            sections["metrics"] = metrics.section(run.samples["metrics"], report.last_run(mode))
        if not chosen.only:
            sections["bench"] = report.table(found, mode)
        report.document(sections)


if __name__ == "__main__":
    main()
