"""Spark jobs on `ottla` beside the same jobs on Spark's own connector."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

# workload, our job, the connector's → title, how many times better ours must be (None: no goal)
COMPARED: dict[tuple[str, str, str], tuple[str, float | None]] = {
    ("spark_read", "ottla", "connector"): ("reading, all columns; the connector with its defaults", 2.0),
    ("spark_read", "ottla", "connector_tuned"): ("reading, all columns; the connector, tuned", 1.3),
    ("spark_avro", "ottla", "connector"): ("five Avro columns; the connector and `from_avro`", 1.0),
    ("spark_avro", "ottla", "connector_tuned"): ("five Avro columns; the connector, tuned, and `from_avro`", 1.0),
    ("spark_avro", "ottla_value", "connector_tuned"): (
        "the same with `columns=value`; tuned, `from_avro`",
        None,
    ),
    ("spark_write", "ottla", "connector"): ("writing; the connector with its defaults", 1.0),
    ("spark_write", "ottla", "connector_tuned"): ("writing; the connector, tuned", None),
    ("spark_write", "ottla_exactly_once", "connector"): ("writing exactly once; the connector, at least once", None),
}
COLUMNS = (
    *("what; beside what", "rows/s", "theirs", "CPU-s per million rows", "theirs"),
    *("rows/s, ours / theirs", "CPU-s, theirs / ours", "goal"),
)
TERMINAL_COLUMNS = 140
INTRODUCTION = """\
## Spark

Jobs on `format("ottla")` beside the same jobs on Spark's own connector (`format("kafka")`, a jar), in one session
(`local[2]`, Spark {version}) on the same topics of one Ottla node: records of 100 bytes, four partitions. Reading
aggregates over every column; {read:,} rows, {avro:,} with Avro, {write:,} written. Results are compared. Jobs take
turns, and the first {warm_up} rounds, in which the JVM compiles, do not count; {rounds} rounds do. CPU-seconds
are those of the driver, its JVM and its Python workers, without the broker. "Tuned" is
`kafka.max.poll.records=5000` with 8 MiB per partition fetch, and for writing batches of 256 KiB with 20 ms of linger.
Ratios above 1 mean that ours is ahead; the goal is for both."""

Samples = Mapping[str, Mapping[str, Mapping[str, list[float]]]]  # workload → job → figure → one value a round


class Row(NamedTuple):
    """One comparison with the connector; the ratios are above 1 where our job is faster (`speed`) or uses less CPU
    (`thrift`).
    """

    name: str
    ours_per_s: float
    theirs_per_s: float
    ours_cpu_s: float
    theirs_cpu_s: float
    goal: float | None

    @property
    def speed(self) -> float:
        return self.ours_per_s / self.theirs_per_s

    @property
    def thrift(self) -> float:
        return self.theirs_cpu_s / self.ours_cpu_s


Rows = list[Row]


def rows(samples: Samples, records: Mapping[str, int]) -> Rows:
    """Every comparison that was measured; `records` by workload."""
    found = []
    for (workload, ours, theirs), (name, goal) in COMPARED.items():
        jobs = samples.get(workload, {})
        if ours in jobs and theirs in jobs:
            per_s = {job: statistics.median(jobs[job]["rows_per_s"]) for job in (ours, theirs)}
            cpu_s = {job: statistics.median(jobs[job]["cpu_s"]) * 1e6 / records[workload] for job in (ours, theirs)}
            found.append(Row(name, per_s[ours], per_s[theirs], cpu_s[ours], cpu_s[theirs], goal))
    return found


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        *(f"{row.ours_per_s:,.0f}", f"{row.theirs_per_s:,.0f}", f"{row.ours_cpu_s:.2f}", f"{row.theirs_cpu_s:.2f}"),
        *(f"{row.speed:.2f}", f"{row.thrift:.2f}", "" if row.goal is None else f"≥ {row.goal:.1f}"),
    )


def show(found: Rows) -> None:
    if found:
        table = Table(title="Spark: ottla and Spark's own connector, one run")
        for column in COLUMNS:
            table.add_column(column, justify="left" if column == COLUMNS[0] else "right")
        for row in found:
            *cells, speed, thrift, goal = _cells(row)
            judged = (
                text if row.goal is None else f"[{'green' if ratio >= row.goal else 'red'}]{text}"
                for text, ratio in ((speed, row.speed), (thrift, row.thrift))
            )
            table.add_row(*cells, *judged, goal)
        console = Console()
        console.width = max(console.width, TERMINAL_COLUMNS)  # a narrower table could not be read
        console.print(table)


def section(found: Rows, *introduction: str) -> list[str]:
    """The comparisons as Markdown."""
    lines = [*introduction, "", "| " + " | ".join(COLUMNS) + " |", "|---" + "|---:" * (len(COLUMNS) - 1) + "|"]
    return lines + ["| " + " | ".join(_cells(row)) + " |" for row in found]
