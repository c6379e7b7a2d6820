"""The figures of Ottla's client beside the best of the other clients."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

# kind of work → Ottla's program, those of the other clients
COMPARED: dict[str, tuple[str, tuple[str, ...]]] = {
    "produce, `post`": ("ottla_post", ("aiokafka_send", "kafka_python_send")),
    "produce with a future each, `enqueue`": ("ottla_enqueue", ("aiokafka_send", "kafka_python_send")),
    "consume, `poll`": ("ottla_poll", ("aiokafka_getmany", "kafka_python_poll")),
    "consume, `async for`": ("ottla_iterate", ("aiokafka_iterate", "kafka_python_iterate")),
    "consume as Arrow, `arrow`": ("ottla_arrow", ("confluent_consume",)),
}
COLUMNS = ("what", "ours, records/s", "others, records/s", "faster by", "ours, CPU µs/record", "others, CPU µs/record")

Samples = Mapping[str, Mapping[str, list[float]]]  # program → figure → one value a round


class Row(NamedTuple):
    """One kind of work; `ratio` compares with the fastest of the other clients."""

    name: str
    ours_per_s: float
    others_per_s: str
    ratio: float
    ours_cpu_us: float
    others_cpu_us: str


Rows = list[Row]


def rows(samples: Samples) -> Rows:
    """Every comparison that was measured."""
    found = []
    for name, (ours, others) in COMPARED.items():
        if ours in samples and all(other in samples for other in others):
            per_s = {each: statistics.median(samples[each]["records_per_s"]) for each in (ours, *others)}
            cpu_us = {each: statistics.median(samples[each]["cpu_us"]) for each in (ours, *others)}
            found.append(
                Row(
                    name,
                    per_s[ours],
                    ", ".join(f"{_client(other)} {per_s[other]:,.0f}" for other in others),
                    per_s[ours] / max(per_s[other] for other in others),
                    cpu_us[ours],
                    ", ".join(f"{_client(other)} {cpu_us[other]:.2f}" for other in others),
                )
            )
    return found


def _client(program: str) -> str:
    return program.rpartition("_")[0].replace("_", "-")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.ours_per_s:,.0f}",
        row.others_per_s,
        f"{row.ratio:.2f}",
        f"{row.ours_cpu_us:.2f}",
        row.others_cpu_us,
    )


def show(found: Rows) -> None:
    if found:
        table = Table(*COLUMNS, title="ottla.client and the others, one run")
        for row in found:
            table.add_row(*_cells(row))
        Console().print(table)


def table(found: Rows) -> list[str]:
    """The comparisons as Markdown."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---|---:|---:|---:|---:|---:|"]
    return lines + ["| " + " | ".join(_cells(row)) + " |" for row in found]
