"""`ottla plan`: what is computed holds for any load, what is shown is what was computed, defaults are measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import invoke

from ottla.cli.capacity.arithmetic import PlanLine, Quantity, QuantityUnit, compute, number, over, plus, times
from ottla.cli.capacity.plan import CapacityPlan, PlannedLoad, PlannedNode, plan

PERFORMANCE = Path(__file__).parents[3] / "docs" / "performance.md"
LOADS = st.builds(
    PlannedLoad,
    in_rate=st.floats(1e3, 1e11),
    retention_s=st.floats(60, 4e8),
    replicas=st.integers(1, 7),
    message_bytes=st.floats(10, 1e6),
    fan_out=st.floats(0, 50),
    compression=st.floats(1, 20),
    peak=st.floats(1, 20),
)
NODES = st.builds(
    PlannedNode,
    disk_bytes=st.floats(1e10, 1e14),
    fill=st.floats(0.1, 1),
    disk_rate=st.floats(1e7, 1e10),
    network_rate=st.floats(1e7, 1e11),
    load=st.floats(0.1, 1),
    partition_rate=st.floats(1e5, 1e9),
    cache_s=st.floats(1, 1e4),
    spare=st.integers(0, 5),
)
ABOUT = 1 + 1e-6


def result(found: CapacityPlan, name: str) -> float:
    (line,) = [each for each in found.lines if each.name == name]
    return line.result.value


@given(LOADS, NODES)
def test_the_planned_brokers_carry_the_load(load: PlannedLoad, node: PlannedNode) -> None:
    found = plan(load, node)
    left = found.brokers - node.spare
    assert found.brokers >= load.replicas and left >= 1
    assert found.disk_bytes <= node.disk_bytes * ABOUT
    assert found.brokers * found.disk_bytes * node.fill >= result(found, "held by all brokers") / ABOUT
    assert result(found, "received and written by all brokers") <= left * node.disk_rate * node.load * ABOUT
    assert max(found.in_rate, found.out_rate) * found.brokers <= left * node.network_rate * node.load * ABOUT
    assert result(found, "busy at the peak") <= left * node.load * ABOUT


@given(LOADS, NODES)
def test_one_broker_less_would_not_do(load: PlannedLoad, node: PlannedNode) -> None:
    found = plan(load, node)
    fewer = found.brokers - 1
    left = fewer - node.spare
    is_enough = (
        fewer >= max(load.replicas, 1)
        and left >= 1
        and result(found, "held by all brokers") * ABOUT < fewer * node.disk_bytes * node.fill
        and result(found, "received and written by all brokers") * ABOUT < left * node.disk_rate * node.load
        and max(found.in_rate, found.out_rate) * found.brokers * ABOUT < left * node.network_rate * node.load
        and result(found, "busy at the peak") * ABOUT < left * node.load
    )
    assert not is_enough


@given(LOADS, NODES)
def test_partitions_spread_evenly_and_each_is_slow_enough(load: PlannedLoad, node: PlannedNode) -> None:
    found = plan(load, node)
    sent = result(found, "produced at the peak, compressed")
    assert found.partitions % found.brokers == 0 and found.partitions >= found.brokers
    assert sent / found.partitions <= node.partition_rate * ABOUT
    assert found.memory_bytes >= found.in_rate * node.cache_s


@given(LOADS, NODES, st.floats(1, 10))
def test_more_never_needs_fewer(load: PlannedLoad, node: PlannedNode, more: float) -> None:
    before = plan(load, node).brokers
    assert plan(load._replace(in_rate=load.in_rate * more), node).brokers >= before
    assert plan(load._replace(retention_s=load.retention_s * more), node).brokers >= before
    assert plan(load._replace(replicas=load.replicas + 1), node).brokers >= before
    assert plan(load._replace(fan_out=load.fan_out + more), node).brokers >= before
    assert plan(load._replace(peak=load.peak * more), node).brokers >= before
    assert plan(load, node._replace(spare=node.spare + 1)).brokers >= before
    assert plan(load, node._replace(disk_bytes=node.disk_bytes * more)).brokers <= before
    assert plan(load, node._replace(network_rate=node.network_rate * more)).brokers <= before


@given(LOADS, NODES)
def test_each_line_is_the_arithmetic_that_it_shows(load: PlannedLoad, node: PlannedNode) -> None:
    for line in plan(load, node).lines:
        shown = again(line)
        assert shown == pytest.approx(line.result.value, rel=0.02) or (
            line.is_rounded and 0 <= line.result.value - shown * 0.98 <= 1 + 0.04 * shown
        )


UNITS = {"": 1.0, "B": 1.0, "B/s": 1.0, "s/GB": 1.0, "event loops": 1.0, "s": 1.0, "µs": 1e-6}
UNITS |= {"min": 60.0, "h": 3600.0, "d": 86400.0}
SCALES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def again(line: PlanLine) -> float:
    """The value of a formula as somebody with a pocket calculator gets it, * and / before +."""
    return sum(product(part) for part in line.formula.split(" + "))


def product(text: str) -> float:
    first, *rest = re.split(r" ([*/]) ", text)
    value = read(first)
    for operator, word in zip(rest[::2], rest[1::2], strict=True):
        value = value * read(word) if operator == "*" else value / read(word)
    return value


def read(text: str) -> float:
    digits, _, unit = text.replace(",", "").partition(" ")
    scale = 1.0 if unit in UNITS else SCALES[unit[0]]
    return float(digits) * scale * UNITS[unit if unit in UNITS else unit[1:]]


def test_lines_are_computed_from_left_to_right_and_rounded_up() -> None:
    line = compute("x", QuantityUnit.NUMBER, number(10), over(number(4)), plus(number(1)), up=True)
    assert (line.formula, line.result.value, line.is_rounded) == ("10 / 4 + 1", 4, True)
    tiny = compute("x", QuantityUnit.NUMBER, number(0), up=True)
    assert tiny.result.value == 1
    exact = compute("x", QuantityUnit.NUMBER, number(0.1), times(number(3)), over(number(0.3)), up=True)
    assert exact.result.value == 1, "0.1 * 3 / 0.3 is a little above 1 in binary"


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Quantity(100e6, QuantityUnit.RATE), "100 MB/s"),
        (Quantity(12, QuantityUnit.BYTES), "12 B"),
        (Quantity(604_800, QuantityUnit.SECONDS), "7 d"),
        (Quantity(61, QuantityUnit.SECONDS), "61 s"),
        (Quantity(1.3e-7, QuantityUnit.SECONDS), "0.13 µs"),
        (Quantity(1.779, QuantityUnit.CPU_PER_GB), "1.779 s/GB"),
        (number(976_562.5), "976,562"),
    ],
)
def test_quantities_are_easy_to_read(quantity: Quantity, text: str) -> None:
    assert str(quantity) == text


def test_the_costs_are_those_that_were_measured() -> None:
    """Those in docs/performance.md today: another run of the benchmark may move them a little, but not by half."""
    pages = PERFORMANCE.read_text()

    def row(figure: str) -> float:
        line = next(each for each in pages.splitlines() if each.startswith(f"| {figure}"))
        return float(line.split("|")[3])

    kib = plan(PlannedLoad(1e6, 3600), PlannedNode())
    hundred = plan(PlannedLoad(1e6, 3600, message_bytes=100), PlannedNode())
    assert result(kib, "CPU to write") == pytest.approx(row("broker CPU s per GB produced"), rel=0.5)
    assert result(hundred, "CPU to write") == pytest.approx(row("broker CPU µs per 100-byte record") * 10, rel=0.5)
    assert result(kib, "CPU to read") == pytest.approx(row("broker CPU s per GB consumed"), rel=0.5)
    whole = result(kib, "CPU to write") + result(kib, "CPU of all copies")
    assert whole == pytest.approx(row("CPU s of all nodes per GB, the same"), rel=0.5)
    small = result(hundred, "CPU to write") + result(hundred, "CPU of all copies")
    assert small == pytest.approx(row("CPU µs of all nodes per 100-byte record, the same") * 10, rel=0.5)


def test_the_example_of_the_page() -> None:
    run = invoke("plan", "--in", "100MB/s", "--retention", "7d", "--replicas", "3", "--disk", "16TB")
    assert run.code == 0 and "brokers\t17, which disk space decides" in run.lines
    assert "held by all brokers\t100 MB/s / 1 * 7 d * 3\t= 181.4 TB" in run.lines
    page = (PERFORMANCE.parent / "capacity.md").read_text()
    assert not [line for line in run.lines if re.sub(r"\s+", " ", line).strip() not in re.sub(r"[ \t]+", " ", page)]


def test_json() -> None:
    found = invoke("plan", "--in", "100MB/s", "--fan-out", "3", "--message-size", "100", "--json").json
    assert found["brokers"] == 65 and found["limited_by"] == "disk space"
    assert found["load"]["fan_out"] == 3 and found["broker"]["spare"] == 1
    assert {"name", "formula", "value", "unit"} == set(found["lines"][0])
