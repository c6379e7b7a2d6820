"""From figures to ratios, a table on the terminal, a JSON file, and the table in docs/performance.md."""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
DOCUMENT = ROOT / "docs" / "performance.md"
Found = list[tuple[str, float, float, float, float | None]]

# workload, figure → its title, the goal for Ottla/Kafka (None: shown without a goal)
ROWS: dict[tuple[str, str], tuple[str, float | None]] = {
    ("produce_kib", "cpu_s_per_gb"): ("broker CPU s per GB produced, 1 KiB records, 256 KiB batches, acks=all", 0.30),
    ("produce_small", "cpu_us_per_record"): ("broker CPU µs per 100-byte record, 64 KiB batches, acks=1", 0.30),
    ("produce_single", "cpu_us_per_request"): ("broker CPU µs per single-record produce request", 0.50),
    ("consume", "cpu_s_per_gb"): ("broker CPU s per GB consumed", 0.70),
    ("produce_tls", "cpu_s_per_gb"): ("broker CPU s per GB produced over TLS, 1 KiB records, 256 KiB batches", 0.70),
    ("consume_tls", "cpu_s_per_gb"): ("broker CPU s per GB consumed over TLS", 0.70),
    ("idle_tls", "kib"): ("memory per idle TLS connection after 32 KiB in and 1 MB out, KiB", 0.70),
    ("latency", "p50_ms"): ("end-to-end latency p50, ms, 1,000 records/s, acks=all", 0.70),
    ("latency", "p99_ms"): ("end-to-end latency p99, ms", 0.70),
    ("transactions", "p50_ms"): ("a small transaction from begin to committed, p50, ms, librdkafka", 0.70),
    ("transactions", "ms_per_transaction"): ("small transactions one after the other, ms each", 0.70),
    ("transactions", "cpu_ms_per_transaction"): ("broker CPU ms per small transaction", 0.70),
    ("rebalance_classic", "join_ms"): ("50 join, classic, eager, until all have their assignment, ms", 0.70),
    ("rebalance_classic", "change_ms"): ("one of 50 members leaves or comes, classic, eager, ms", 0.70),
    ("rebalance_classic", "cpu_ms"): ("broker CPU ms per rebalance of 50 members, classic, eager", 0.70),
    ("rebalance_cooperative", "join_ms"): (
        "50 join, cooperative-sticky, until all have their assignment, ms",
        0.70,
    ),
    ("rebalance_cooperative", "change_ms"): ("one of 50 members leaves or comes, cooperative-sticky, ms", 0.70),
    ("rebalance_cooperative", "cpu_ms"): ("broker CPU ms per rebalance of 50 members, cooperative-sticky", 0.70),
    ("rebalance_modern", "join_ms"): ("50 join, KIP-848, until all have their assignment, ms", 0.70),
    ("rebalance_modern", "change_ms"): ("one of 50 members leaves or comes, KIP-848, ms", 0.70),
    ("rebalance_modern", "cpu_ms"): ("broker CPU ms per rebalance of 50 members, KIP-848", 0.70),
    ("commits", "us_per_commit"): ("offset commits of 64 groups, four partitions each, µs", 0.70),
    ("commits", "cpu_us_per_commit"): ("broker CPU µs per offset commit", 0.70),
    ("shares", "us_per_record"): ("share group, 4 members, fetch and acknowledge, µs per record", 0.70),
    ("shares", "cpu_us_per_record"): ("broker CPU µs per record of a share group", 0.70),
    ("neighbour", "p99_ms"): (
        "a record's acknowledgement, p99, ms, while others ask for all they can (for Ottla at most 25)",
        None,
    ),
    ("neighbour", "p50_ms"): ("the same, p50, ms", None),
    ("start", "start_s"): ("start to first acknowledged record, s, fresh directory", 0.10),
    ("start", "idle_mib"): ("resident memory idle, MiB", 0.15),
    ("memory", "resident_mib"): ("resident memory after the produce runs, MiB", 0.15),
    ("partitions", "create_s"): ("create {partitions} partitions, s", 0.5),
    ("partitions", "restart_s"): ("restart with {partitions} partitions, s", 0.5),
    ("partitions", "resident_mib"): ("resident memory with {partitions} partitions, MiB", 0.5),
    ("transactions", "p99_ms"): ("a small transaction from begin to committed, p99, ms", None),
    ("transactions", "per_s"): ("small transactions/s, one producer", None),
    ("commits", "commits_per_s"): ("offset commits/s", None),
    ("shares", "records_per_s"): ("share-group records/s", None),
    ("produce_kib", "mb_per_s"): ("produce throughput, MB/s (client-bound)", None),
    ("produce_small", "records_per_s"): ("100-byte records/s (client-bound)", None),
    ("produce_single", "requests_per_s"): ("single-record requests/s (client-bound)", None),
    ("consume", "mb_per_s"): ("consume throughput, MB/s (client-bound)", None),
}

Samples = dict[str, dict[str, dict[str, list[float]]]]  # workload → broker → figure → one value a round


def note(samples: Samples, workload: str, subject: str, figures: Mapping[str, float]) -> None:
    """Add the figures of one round."""
    for figure, value in figures.items():
        samples.setdefault(workload, {}).setdefault(subject, {}).setdefault(figure, []).append(value)


def rows(samples: Samples, partitions: int) -> Found:
    """(name, Kafka, Ottla, ratio, goal) of every figure that was measured."""
    found = []
    for (workload, figure), (name, goal) in ROWS.items():
        if len(samples.get(workload, {})) == 2:
            kafka = statistics.median(samples[workload]["kafka"][figure])
            ottla = statistics.median(samples[workload]["ottla"][figure])
            found.append((name.format(partitions=f"{partitions:,}"), kafka, ottla, ottla / kafka, goal))
    return found


def show(found: Found) -> None:
    if not found:
        return
    drawn = Table(title="Ottla / Kafka 4.3.1, one run")
    for column in ("figure", "Kafka", "Ottla", "ratio", "goal"):
        drawn.add_column(column, justify="left" if column == "figure" else "right")
    for name, kafka, ottla, ratio, goal in found:
        colour = "" if goal is None else "[green]" if ratio <= goal else "[red]"
        drawn.add_row(
            name, f"{kafka:.4g}", f"{ottla:.4g}", f"{colour}{ratio:.3f}", "" if goal is None else f"≤ {goal:.2f}"
        )
    Console().print(drawn)


def store(samples: Samples, found: Found, mode: str) -> Path:
    now = datetime.now(UTC)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{now:%Y%m%d-%H%M%S}-{mode}.json"
    path.write_text(
        json.dumps(
            {
                "at": now.isoformat(timespec="seconds"),
                "mode": mode,
                "commit": commit.stdout.strip(),
                "python": sys.version.split()[0],
                "machine": f"{platform.system()} {platform.machine()}",
                "ratios": {name: round(ratio, 4) for name, _, _, ratio, _ in found},
                "samples": samples,
            },
            indent=1,
        )
        + "\n"
    )
    return path


def last_run(mode: str) -> str:
    return (
        f"Last run: {datetime.now(UTC):%Y-%m-%d}, {'full length' if mode == 'full' else 'quick'}, "
        f"Python {sys.version.split()[0]}, {platform.machine()}, medians of the rounds."
    )


def table(found: Found, mode: str) -> list[str]:
    """The figures as Markdown."""
    return [
        last_run(mode),
        "",
        "| figure | Kafka 4.3.1 | Ottla | Ottla / Kafka | goal |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {name} | {kafka:.4g} | {ottla:.4g} | {ratio:.3f} | {'' if goal is None else f'≤ {goal:.2f}'} |"
            for name, kafka, ottla, ratio, goal in found
        ),
    ]


def document(sections: Mapping[str, list[str]]) -> None:
    """Replace the text between the marks of each section in docs/performance.md; other sections stay as they are."""
    text = DOCUMENT.read_text()
    for name, lines in sections.items():
        text = between(text, name, lines)
    DOCUMENT.write_text(text)


def between(text: str, name: str, lines: list[str]) -> str:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    assert text.count(begin) == text.count(end) == 1, f"no place for {name}"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n" + "\n".join(lines) + f"\n{end}{after}"
