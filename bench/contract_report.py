"""The report of what contracts cost, by level."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

COLUMNS = ("`ottla.schema.validation`", "records/s", "broker CPU µs per record", "more than `none`, µs", "times `none`")
INTRODUCTION = """\
## Contracts

What [contracts](contracts.md) cost: librdkafka produces Avro records of 100 bytes in batches of 64 KiB to a topic at
each level, in turns; medians of {rounds} rounds of {records:,} records. `none` is the default: nothing is looked at,
nothing is paid."""

Samples = Mapping[str, Mapping[str, list[float]]]  # level → figure → one value a round


class Row(NamedTuple):
    """The figures of one level."""

    level: str
    records_per_s: float
    cpu_us: float
    more_us: float
    times: float


Rows = list[Row]


def rows(samples: Samples) -> Rows:
    """The figures of every level, compared with `none`."""
    cpu_us = {level: statistics.median(figures["cpu_us"]) for level, figures in samples.items()}
    return [
        Row(
            level,
            statistics.median(figures["records_per_s"]),
            cpu_us[level],
            cpu_us[level] - cpu_us["none"],
            cpu_us[level] / cpu_us["none"],
        )
        for level, figures in samples.items()
    ]


def _cells(row: Row) -> tuple[str, ...]:
    return (row.level, f"{row.records_per_s:,.0f}", f"{row.cpu_us:.2f}", f"{row.more_us:.2f}", f"{row.times:.1f}")


def show(found: Rows) -> None:
    if found:
        table = Table(*COLUMNS, title="contracts, one run")
        for row in found:
            table.add_row(*_cells(row))
        Console().print(table)


def section(found: Rows, *introduction: str) -> list[str]:
    """The figures as Markdown."""
    lines = [*introduction, "", "| " + " | ".join(COLUMNS) + " |", "|---|---:|---:|---:|---:|"]
    return lines + ["| " + " | ".join(_cells(row)) + " |" for row in found]
