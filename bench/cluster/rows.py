"""The figures of the clusters that are compared, and how: medians of rounds, percentiles of trials."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from bench.report import Found, Samples


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by at least `share` of all values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def p99(values: Sequence[float]) -> float:
    return percentile(values, 0.99)


Row = tuple[str, str, str, Callable[[Sequence[float]], float], float | None]

# workload, figure, its title, how its samples become one number, the goal for Ottla/Kafka
ROWS: tuple[Row, ...] = (
    (
        "kill_leader",
        "recovery_ms",
        "kill -9 of a leader until writes succeed, p50 of {n}, ms",
        statistics.median,
        0.25,
    ),
    ("kill_leader", "recovery_ms", "… p99, ms", p99, 0.25),
    ("kill_controller", "recovery_ms", "kill -9 of the active controller, p50 of {n}, ms", statistics.median, 0.25),
    ("kill_controller", "recovery_ms", "… p99, ms", p99, 0.25),
    ("produce_kib", "cpu_s_per_gb", "CPU s of all nodes per GB, 1 KiB records, acks=all", statistics.median, 0.5),
    ("produce_kib", "s_per_gb", "s per GB, 1 KiB records, acks=all, Java producer", statistics.median, 0.5),
    ("produce_small", "cpu_us_per_record", "CPU µs of all nodes per 100-byte record", statistics.median, 0.5),
    ("produce_small", "us_per_record", "µs per 100-byte record, acks=all, Java producer", statistics.median, 0.5),
    (
        "prepared_kib",
        "cpu_s_per_gb",
        "CPU s of all nodes per GB, 1 KiB records, frames made before",
        statistics.median,
        0.5,
    ),
    ("prepared_kib", "s_per_gb", "s per GB, 1 KiB records, acks=all, frames made before", statistics.median, 0.5),
    (
        "prepared_small",
        "cpu_us_per_record",
        "CPU µs of all nodes per 100-byte record, frames made before",
        statistics.median,
        0.5,
    ),
    (
        "prepared_small",
        "us_per_record",
        "µs per 100-byte record, acks=all, frames made before",
        statistics.median,
        0.5,
    ),
    ("produce_kib", "client_cpu_s_per_gb", "CPU s of the Java producer itself per GB", statistics.median, None),
    (
        "produce_small",
        "client_cpu_us_per_record",
        "CPU µs of the Java producer itself per 100-byte record",
        statistics.median,
        None,
    ),
    ("latency", "p99_ms", "end-to-end latency p99, ms, 1,000 records/s, acks=all", statistics.median, 0.7),
    ("latency", "p50_ms", "end-to-end latency p50, ms", statistics.median, None),
    ("memory", "idle_resident_mib", "resident memory of all nodes, fresh, MiB", statistics.median, 0.2),
    ("memory", "resident_mib", "resident memory of all nodes after the loads, MiB", statistics.median, 0.2),
    ("partitions", "create_s", "create {partitions} partitions, until all in sync, s", statistics.median, 0.5),
    ("partitions", "restart_s", "restart of a broker that holds them, until all in sync, s", statistics.median, 0.5),
    ("idle", "cpu_percent", "CPU % of all nodes, {idle} idle partitions", statistics.median, 0.5),
)


def found_of(samples: Samples, partitions: int, idle: int) -> Found:
    """(name, Kafka, Ottla, ratio, goal) of every figure that was measured for both."""
    found = []
    for workload, figure, name, combine, goal in ROWS:
        both = samples.get(workload, {})
        if len(both) == 2 and all(figure in taken for taken in both.values()):
            kafka, ottla = combine(both["kafka"][figure]), combine(both["ottla"][figure])
            title = name.format(n=len(both["ottla"][figure]), partitions=f"{partitions:,}", idle=f"{idle:,}")
            found.append((title, kafka, ottla, ottla / kafka, goal))
    return found
