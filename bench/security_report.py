"""The figures of security as tables: what TLS costs beside plaintext, what an authorizer costs, and what a client
feels of another one that floods. Each is shown on the terminal and, where it was measured whole, written to
docs/performance.md.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench import authorization, floods
from bench.report import Samples

FLOOD_GOAL = 2.0
_BROKERS = ("kafka", "ottla")
_OVER_TLS = {"produced": ("produce_kib", "produce_tls"), "consumed": ("consume", "consume_tls")}
_FLOODS = {
    "bytes": "produces of 900 kB",
    "tiny": "produces of one byte, 200 at a time",
    "metadata": "Metadata of all topics",
    "joins": "members that join a group",
    "connects": "connections",
    floods.ELSEWHERE: "produces of 900 kB, to another process",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A table: its mark in docs/performance.md, its title, its columns, and its rows of a name and figures."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, ...]]


def show(samples: Samples) -> None:
    for each in _comparisons(samples):
        drawn = Table(*each.columns, title=f"{each.title}, one run")
        for row in each.rows:
            drawn.add_row(*row)
        Console().print(drawn)


def sections(samples: Samples, last_run: str) -> dict[str, list[str]]:
    """The tables as Markdown, by their marks."""
    return {
        each.name: [
            last_run,
            "",
            f"| {' | '.join(each.columns)} |",
            "|---|" + "---:|" * (len(each.columns) - 1),
            *(f"| {' | '.join(row)} |" for row in each.rows),
        ]
        for each in _comparisons(samples)
    }


def _comparisons(samples: Samples) -> list[Comparison]:
    return [each for each in (_tls(samples), _authorization(samples), _floods(samples)) if each.rows]


def _tls(samples: Samples) -> Comparison:
    rows = []
    for what, workloads in _OVER_TLS.items():
        if all(len(samples.get(each, {})) == 2 for each in workloads):
            (plain, kafka_plain), (tls, kafka_tls) = (
                [_median(samples, each, broker, "cpu_s_per_gb") for broker in reversed(_BROKERS)] for each in workloads
            )
            figures = (f"{plain:.2f}", f"{tls:.2f}", f"{tls / plain:.2f}", f"{kafka_tls / kafka_plain:.2f}")
            rows.append((f"broker CPU s per GB {what}", *figures, f"{tls / kafka_tls:.2f}"))
    columns = ("figure", "plaintext", "TLS", "TLS / plaintext", "the same of Kafka", "TLS of Ottla / of Kafka")
    return Comparison("tls", "TLS and plaintext of Ottla", columns, rows)


def _authorization(samples: Samples) -> Comparison:
    rows = [
        (name, f"{without:.1f}", f"{with_:.1f}", f"{ratio:.3f}", f"≤ {authorization.GOAL:.2f}")
        for name, without, with_, ratio in authorization.rows(samples.get("authorization", {}))
    ]
    columns = ("broker CPU µs of", "without", "with", "with / without", "goal")
    return Comparison("authorization", f"an authorizer with {authorization.ACLS:,} ACLs", columns, rows)


def _floods(samples: Samples) -> Comparison:
    rows = []
    if len(samples.get("floods", {})) == 2:
        quiet = {broker: _median(samples, "floods", broker, "quiet_p99_ms") for broker in _BROKERS}
        rows.append(("nobody", *(word for broker in _BROKERS for word in (f"{quiet[broker]:.1f}", "1.0")), ""))
        for flood, name in _FLOODS.items():
            if any(f"{flood}_p99_ms" not in samples["floods"][broker] for broker in _BROKERS):
                continue  # an older run
            words = []
            for broker in _BROKERS:
                p99_ms = _median(samples, "floods", broker, f"{flood}_p99_ms")
                words += [f"{p99_ms:.1f}", f"{p99_ms / quiet[broker]:.1f}"]
            rows.append((name, *words, "" if flood == floods.ELSEWHERE else f"≤ {FLOOD_GOAL:.1f}"))
    columns = ("flood", "Kafka, p99, ms", "times quiet", "Ottla, p99, ms", "times quiet", "goal")
    return Comparison("floods", "a record's acknowledgement while another client floods", columns, rows)


def _median(samples: Samples, workload: str, broker: str, figure: str) -> float:
    return statistics.median(samples[workload][broker][figure])
