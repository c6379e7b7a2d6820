"""What a client pushed, as series: names, labels, deltas, bounds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model import limits
from ottla.telemetry.otlp import MetricPoint
from ottla.telemetry.series import ClientSeries, label_names, series_name

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@pytest.mark.parametrize(
    ("name", "is_counter", "expected"),
    [
        ("org.apache.kafka.producer.record.send.total", True, "ottla_client_producer_record_send_total"),
        ("org.apache.kafka.producer.record.send.total", False, "ottla_client_producer_record_send_total_now"),
        ("org.apache.kafka.consumer.poll.idle.ratio.avg", False, "ottla_client_consumer_poll_idle_ratio_avg"),
        ("org.apache.kafka.producer.sent", True, "ottla_client_producer_sent_total"),
        ("com.example.MyMetric-1", False, "ottla_client_com_example_mymetric_1"),
        ("{}", False, "ottla_client_"),
    ],
)
def test_names(name: str, is_counter: bool, expected: str) -> None:
    assert series_name(name, is_counter) == expected


@given(st.text(max_size=50), st.booleans())
def test_any_name_becomes_one_that_prometheus_reads(name: str, is_counter: bool) -> None:
    found = series_name(name, is_counter)
    assert NAME.fullmatch(found)
    assert found.endswith("_total") == is_counter, "so that a name has one type"


@given(st.lists(st.text(max_size=5), max_size=8, unique=True))
def test_any_labels_become_labels_that_prometheus_reads(labels: list[str]) -> None:
    found = label_names(tuple(labels))
    assert len(set(found)) == len(labels)
    assert all(LABEL.fullmatch(each) and not each.startswith("__") for each in found)
    assert not {"client_id", "client_instance_id"} & set(found)


def test_labels() -> None:
    names = label_names(("topic", "node-id", "node.id", "client_id", "1", "", "quantile"))
    assert names == ("topic", "node_id", "node_id_", "label_client_id", "label_1", "label_", "label_quantile")


def test_deltas_are_added_and_all_else_is_replaced() -> None:
    series = ClientSeries()
    labels = (("topic", "t"),)
    for value in (2, 3):
        points = [
            MetricPoint("delta", labels, value, is_counter=True, is_delta=True),
            MetricPoint("whole", labels, value, is_counter=True, is_delta=False),
            MetricPoint("gauge", (), value, is_counter=False, is_delta=False),
            MetricPoint("up.and.down", (), -value, is_counter=False, is_delta=True),
        ]
        assert series.take(points) == 0
    assert series.values == {
        ("ottla_client_delta_total", labels): 5,
        ("ottla_client_whole_total", labels): 3,
        ("ottla_client_gauge", ()): 3,
        ("ottla_client_up_and_down", ()): -5,
    }


def test_series_are_bounded() -> None:
    series = ClientSeries()
    points = [
        MetricPoint(f"m{n}", (), 1, is_counter=False, is_delta=False) for n in range(limits.TELEMETRY_SERIES_MAX + 3)
    ]
    assert series.take(points) == 3
    assert series.take([points[0]._replace(value=9)]) == 0
    assert (len(series.values), series.values["ottla_client_m0", ()]) == (limits.TELEMETRY_SERIES_MAX, 9)


def test_their_characters_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TELEMETRY_SERIES_CHARS_MAX", 115)
    series = ClientSeries()
    long, short = (MetricPoint("m", (("l", "x" * n),), 1, is_counter=False, is_delta=False) for n in (80, 1))
    assert series.take([long, short, short._replace(labels=())]) == 1
    assert series.take([long._replace(value=2)]) == 0, "what there is goes on"
    assert [*series.values.values()] == [2, 1]
