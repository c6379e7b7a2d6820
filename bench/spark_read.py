"""Reading into Spark: the source `ottla` against Spark's own connector, same session, same topic, all columns.

CPU-seconds are those of the driver's process tree (JVM and Python workers; the broker is not in it) and are the figure
to trust. Readers take turns, and the JVM's first rounds do not count: its compiler is not what is measured.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import spark as sparks

from bench import probe
from bench.subject import Ottla, Subject
from bench.workloads import PARTITIONS, Figures, produce

_TICKS = os.sysconf("SC_CLK_TCK")
RECORD_BYTES = 100
TOPIC = "spark-read"
# Every column is looked at, so that no source can leave one out.
COLUMNS = (
    *("count(*) n", "sum(length(value)) size", "sum(length(key)) k", "sum(length(topic)) t", "sum(partition) p"),
    *("max(offset) o", "max(timestamp) ts", "sum(timestampType) tt"),
)
TUNED = {"kafka.max.poll.records": "5000", "kafka.max.partition.fetch.bytes": str(8 << 20)}
READERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "connector": ("kafka", {}),
    "connector_tuned": ("kafka", TUNED),
    "ottla": ("ottla", {}),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading everything once took."""

    wall_s: float
    cpu_s: float


def tree_cpu_s(root: int, without: Iterable[int] = ()) -> float:
    """User and system time so far of a process and all it started, ended ones included; `without` some and theirs."""
    stats: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            stats[int(entry.name)] = fields
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    left_out, total, waiting = set(without), 0, [root]
    while waiting:
        pid = waiting.pop()
        if pid in stats and pid not in left_out:
            waiting.extend(children.get(pid, ()))
            total += sum(int(stats[pid][number]) for number in (11, 12, 13, 14))
    return total / _TICKS


def fill(subject: Subject, records: int) -> None:
    """The topic that is read."""
    probe.create_topics(subject.bootstrap, [TOPIC], PARTITIONS)
    produce(subject, TOPIC, records, RECORD_BYTES, acks="1", batch_size=65_536, linger_ms=20)


def read(session: Any, subject: Subject, reader: str, records: int) -> Reading:
    """Everything, once; the result is checked."""
    kind, options = READERS[reader]
    given = {"kafka.bootstrap.servers": subject.bootstrap, "subscribe": TOPIC, **options}
    cpu_s, begun = tree_cpu_s(os.getpid(), [subject.pid]), time.perf_counter()
    row = session.read.format(kind).options(**given).load().selectExpr(*COLUMNS).collect()[0]
    wall_s = time.perf_counter() - begun
    assert (row.n, row.size) == (records, records * RECORD_BYTES), row
    return Reading(wall_s, tree_cpu_s(os.getpid(), [subject.pid]) - cpu_s)


def measure(subject: Subject, records: int, rounds: int, warm_up: int = 2) -> Figures:
    """Medians by reader, and how many times the connector's CPU time ours is contained in."""
    fill(subject, records)
    found: dict[str, list[Reading]] = {name: [] for name in READERS}
    with tempfile.TemporaryDirectory() as directory:
        session = sparks.start_session(
            name="bench",
            **{"spark.driver.memory": "2g", "spark.local.dir": directory, "spark.sql.warehouse.dir": directory},
        )
        try:
            for round_ in range(warm_up + rounds):
                for name in READERS:
                    taken = read(session, subject, name, records)
                    print(f"  {round_} {name:16} {taken.cpu_s:6.2f} CPU-s {taken.wall_s:6.2f} s", file=sys.stderr)
                    if round_ >= warm_up:
                        found[name].append(taken)
        finally:
            sparks.stop_session(session)
    figures: Figures = {}
    for name, readings in found.items():
        figures[f"{name}_cpu_s"] = statistics.median(each.cpu_s for each in readings)
        figures[f"{name}_krows_per_s"] = records / statistics.median(each.wall_s for each in readings) / 1000
    for name in ("connector", "connector_tuned"):
        figures[f"ahead_of_{name}"] = figures[f"{name}_cpu_s"] / figures["ottla_cpu_s"]
    return figures


def main() -> None:
    """This alone: `python -m bench.spark_read [records [rounds]]`."""
    records, rounds = (int(given) for given in [*sys.argv[1:], "2000000", "5"][:2])
    with tempfile.TemporaryDirectory() as directory:
        subject = Ottla(Path(directory))
        subject.launch()
        try:
            probe.until_acknowledged(subject.bootstrap, "first")
            for name, figure in measure(subject, records, rounds).items():
                print(f"{name:28} {figure:10.2f}")
        finally:
            subject.stop()


if __name__ == "__main__":
    main()
