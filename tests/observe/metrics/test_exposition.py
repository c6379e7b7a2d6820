"""Prometheus' text format: what is written is what a parser reads, whatever labels hold."""

from __future__ import annotations

import re
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.observe.metrics.declaration import Area
from ottla.observe.metrics.exposition import Exposition
from ottla.observe.metrics.histogram import Histogram

area = Area("Test", "…")
PLAIN = area.gauge("ottla_plain", "A \\ and\na line.")
LABELLED = area.counter("ottla_labelled_total", "…", "topic", "kind")
TIMES = area.summary("ottla_times", "…", "request", unit="seconds")
_ESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def text(exposition: Exposition) -> str:
    return b"".join(exposition.chunks()).decode()


def unescaped(label: str) -> str:
    return re.sub(r'\\[\\"n]', lambda found: _ESCAPED[found[0]], label)


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",))), st.sampled_from(["a", "\\", '"', "\n", "\\n"]))
def test_labels_come_back(topic: str, kind: str) -> None:
    exposition = Exposition(10)
    exposition.add(LABELLED, 1, topic, kind)
    line = text(exposition).split("\n", 2)[2]
    found = re.fullmatch(r'ottla_labelled_total\{topic="((?:[^"\\\n]|\\.)*)",kind="((?:[^"\\\n]|\\.)*)"\} 1\n', line)
    assert found is not None, line
    assert tuple(map(unescaped, found.groups())) == (topic, kind)


def test_samples_of_one_metric_are_together() -> None:
    exposition = Exposition(10)
    exposition.add(LABELLED, 1, "a", "x")
    exposition.add(PLAIN, 2)
    exposition.add(LABELLED, 3, "b", "x")
    assert text(exposition) == (
        "# HELP ottla_labelled_total …\n"
        "# TYPE ottla_labelled_total counter\n"
        'ottla_labelled_total{topic="a",kind="x"} 1\n'
        'ottla_labelled_total{topic="b",kind="x"} 3\n'
        "# HELP ottla_plain A \\\\ and\\na line.\n"
        "# TYPE ottla_plain gauge\n"
        "ottla_plain 2\n"
    )
    assert exposition.metrics == {LABELLED, PLAIN}


@pytest.mark.parametrize(
    ("value", "told"), [(1.5, "1.5"), (nan, "NaN"), (inf, "+Inf"), (-inf, "-Inf"), (1 << 70, None)]
)
def test_numbers(value: float, told: str | None) -> None:
    exposition = Exposition(1)
    exposition.add(PLAIN, value)
    assert text(exposition).endswith(f"ottla_plain {told or value}\n")


def test_a_summary() -> None:
    recent = Histogram()
    for _ in range(10):
        recent.add(2)
    exposition = Exposition(20)
    exposition.summarize(TIMES, Histogram(), 0, 0, "Never")
    exposition.summarize(TIMES, recent, 12, 0.5, "Fetch", scale=0.5)
    lines = text(exposition).splitlines()[2:]
    assert lines[0] == 'ottla_times{request="Fetch",quantile="0.50"} 1.0'
    assert lines[5] == 'ottla_times{request="Fetch",quantile="0.999"} 1.0'
    assert lines[6:] == ['ottla_times_sum{request="Fetch"} 0.5', 'ottla_times_count{request="Fetch"} 12']


def test_too_many_samples_are_left_out_and_counted() -> None:
    exposition = Exposition(2)
    for number in range(5):
        exposition.add(LABELLED, number, str(number), "")
    assert exposition.left_out == 3
    assert text(exposition).count("\n") == 4
