"""The rows of `ottla top` from two samples, and which of them fit on a screen."""

from __future__ import annotations

import pytest

from ottla.cli.top.layout import COLUMNS, arranged, fitted, text
from ottla.client.admin.groups import GroupListing
from ottla.client.metadata import AdvertisedBroker, PartitionInfo, TopicInfo
from ottla.console.sampling.moment import moment_of
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.operations.doctor.cluster.cluster_seen import GroupLag
from ottla.operations.metrics.samples import MetricSamples
from ottla.operations.sampling.rates import Row, per_second, rows
from ottla.operations.sampling.sample import TopSample, TopView

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def partition(index: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionInfo:
    return PartitionInfo(index, leader, LeaderEpoch(0), replicas, isr)


TOPIC = TopicInfo("t", bytes(16), False, (partition(0, 1, (1, 2), (1,)), partition(1, -1, (2,), (2,))))


def test_rates_are_not_known_without_growth_or_time() -> None:
    assert per_second(20, 2) == 10
    assert per_second(None, 2) is None
    assert per_second(1, 0) is None


def test_topics() -> None:
    before = TopSample(0.0, topics=[TOPIC], ends={A: 10, B: 5}, sizes={A: 1000})
    now = TopSample(2.0, topics=[TOPIC], ends={A: 30, B: 5}, starts={A: 4, B: 0}, sizes={A: 900, B: 7})
    (row,) = rows(TopView.TOPICS, before, now)
    assert row == {
        "topic": "t",
        "partitions": 2,
        "under": 1,
        "offline": 1,
        "records/s": 10.0,
        "bytes/s": 0.0,
        "records": 31,
        "bytes": 907,
    }
    (first,) = rows(TopView.TOPICS, now, now)
    assert first["records/s"] is None and first["bytes/s"] is None


def test_groups() -> None:
    groups = [GroupListing("g", "Consumer", "Stable", "consumer"), GroupListing("new", "Classic", "Empty", "consumer")]
    before = TopSample(0.0, groups=groups, lags=[GroupLag("g", A, 10, 100, 3.0), GroupLag("g", B, 0, 4, 1.0)])
    now = TopSample(2.0, groups=groups, lags=[GroupLag("g", A, 30, 120, 5.0), GroupLag("g", B, 4, 0)])
    found = rows(TopView.GROUPS, before, now)
    assert found[0] == {
        "group": "g",
        "kind": "consumer",
        "state": "Stable",
        "lag": 120,
        "seconds": 5.0,
        "read/s": 12.0,
        "lag/s": 8.0,
    }
    assert found[1]["lag"] is None and found[1]["read/s"] is None


METRICS = """# HELP x y
kafka_network_requestmetrics_requests_total{request="Produce",version="9"} %d
kafka_network_requestmetrics_requests_total{request="Produce",version="12"} %d
kafka_network_requestmetrics_errors_total{request="Produce",error="NONE"} 100
kafka_network_requestmetrics_errors_total{request="Produce",error="NOT_LEADER_OR_FOLLOWER"} %d
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.50"} 1
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} %s
kafka_server_brokertopicmetrics_bytesin_total{topic="a\\"b"} %d
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.875
ottla_connections{listener="PLAINTEXT"} 3
ottla_connections{listener="C"} 1
"""


def test_fetches_are_counted_once_in_the_total_of_a_broker() -> None:
    """They are told as a whole and, as in Kafka, once more for consumers and followers."""
    told = """kafka_network_requestmetrics_requests_total{request="Fetch",version="12"} %d
kafka_network_requestmetrics_requests_total{request="FetchConsumer",version="12"} %d
kafka_network_requestmetrics_errors_total{request="Fetch",error="OFFSET_OUT_OF_RANGE"} %d
kafka_network_requestmetrics_errors_total{request="FetchConsumer",error="OFFSET_OUT_OF_RANGE"} %d
"""
    brokers = [AdvertisedBroker(1, "h", 9092)]
    before = TopSample(0.0, brokers, [TOPIC], metrics={1: MetricSamples(told % (0, 0, 0, 0))})
    now = TopSample(2.0, brokers, [TOPIC], metrics={1: MetricSamples(told % (20, 20, 4, 4))})
    (row,) = rows(TopView.BROKERS, before, now)
    assert (row["req/s"], row["err/s"]) == (10.0, 2.0)
    assert [each["request"] for each in rows(TopView.REQUESTS, before, now)] == ["Fetch", "FetchConsumer"]


def test_brokers_with_metrics_and_without() -> None:
    brokers = [AdvertisedBroker(1, "h", 9092), AdvertisedBroker(2, "h", 9093, is_fenced=True)]
    before = TopSample(0.0, brokers, [TOPIC], metrics={1: MetricSamples(METRICS % (10, 5, 1, "4.5", 1000))})
    now = TopSample(2.0, brokers, [TOPIC], metrics={1: MetricSamples(METRICS % (30, 5, 2, "4.5", 5000))})
    first, second = rows(TopView.BROKERS, before, now)
    assert first == {
        "broker": 1,
        "address": "h:9092",
        "state": "up",
        "leaders": 1,
        "replicas": 1,
        "out of sync": 0,
        "in/s": 2000.0,
        "out/s": 0.0,
        "req/s": 10.0,
        "err/s": 0.5,
        "idle": 87.5,
        "conns": 4.0,
    }
    assert (second["state"], second["out of sync"], second["req/s"]) == ("fenced", 1, None)
    assert "req/s" not in rows(TopView.BROKERS, TopSample(0.0, brokers), TopSample(2.0, brokers))[0]


def test_a_deleted_topic_is_no_restart() -> None:
    """Its counters go, and the sum over all topics falls; what the other topics got since counts, and no more."""
    told = 'kafka_server_brokertopicmetrics_bytesin_total{topic="%s"} %d\n'
    brokers = [AdvertisedBroker(1, "h", 9092)]
    first = MetricSamples(told % ("gone", 1_000_000_000) + told % ("kept", 500_000_000) + told % ("anew", 700))
    then = MetricSamples(told % ("kept", 500_000_100) + told % ("new", 40) + told % ("anew", 60))
    before, now = (TopSample(at_s, brokers, metrics={1: told}) for at_s, told in ((0.0, first), (2.0, then)))
    (row,) = rows(TopView.BROKERS, before, now)
    assert row["in/s"] == (100 + 40 + 60) / 2
    assert moment_of(before, now, {}).bytes_in == (100 + 40 + 60) / 2


def test_replicas_that_are_being_added_are_not_behind() -> None:
    moving = TopicInfo("t", bytes(16), False, (partition(0, 1, (1, 2, 3), (1,)), partition(1, 1, (1, 3), (1,))))
    brokers = [AdvertisedBroker(each, "h", 9092) for each in (1, 2, 3)]
    now = TopSample(2.0, brokers, [moving], adding={A: (3,), B: (3,)})
    assert [each["out of sync"] for each in rows(TopView.BROKERS, now, now)] == [0, 1, 0]
    assert rows(TopView.TOPICS, now, now)[0]["under"] == 1, "replica 2 of the first partition is behind"


def test_requests_in_a_version_that_is_no_more_told_are_no_restart() -> None:
    told = 'kafka_network_requestmetrics_requests_total{request="Produce",version="%d"} %d\n'
    brokers = [AdvertisedBroker(1, "h", 9092)]
    before = TopSample(0.0, brokers, metrics={1: MetricSamples(told % (9, 5000) + told % (12, 100))})
    now = TopSample(2.0, brokers, metrics={1: MetricSamples(told % (12, 104))})
    assert rows(TopView.BROKERS, before, now)[0]["req/s"] == rows(TopView.REQUESTS, before, now)[0]["req/s"] == 2.0


def test_requests_of_all_nodes() -> None:
    """Rates are added up, of times the worst is shown; a node that has just come has no rates yet."""
    one, two = MetricSamples(METRICS % (10, 0, 1, "4.5", 0)), MetricSamples(METRICS % (20, 0, 2, "7", 0))
    later, new = MetricSamples(METRICS % (40, 0, 3, "NaN", 0)), MetricSamples(METRICS % (9, 9, 9, "1", 0))
    (row,) = rows(
        TopView.REQUESTS, TopSample(0.0, metrics={1: one, 2: one}), TopSample(2.0, metrics={1: two, 2: later, 3: new})
    )
    assert row == {"request": "Produce", "req/s": 20.0, "err/s": 1.5, "p99 ms": 7.0, "local p99": None}


def test_order_and_filter() -> None:
    found: list[Row] = [{"topic": name, "records/s": value} for name, value in (("b", 1.0), ("c", None), ("a", 5.0))]
    assert [each["topic"] for each in arranged(TopView.TOPICS, found, "records/s", "")] == ["a", "b", "c"]
    assert [each["topic"] for each in arranged(TopView.TOPICS, found, "topic", "")] == ["a", "b", "c"]
    assert [each["topic"] for each in arranged(TopView.TOPICS, found, "topic", "[bc]*")] == ["b", "c"]
    assert [each["topic"] for each in arranged(TopView.TOPICS, found, "topic", "B")] == ["b"]


@pytest.mark.parametrize("view", TopView)
@pytest.mark.parametrize("width", [20, 60, 80, 500])
def test_what_fits(view: TopView, width: int) -> None:
    name = COLUMNS[view][0]
    found: list[Row] = [dict.fromkeys(COLUMNS[view], 12_345_678.9) | {name: f"name-{'x' * 300}-{n}"} for n in range(50)]
    shown = fitted(view, found, width, 10)
    assert len(shown.rows) == 10 and shown.more == 40 and shown.columns[0] == name
    for row in shown.rows:
        assert len("  ".join(row)) <= max(width, 12)
    if width == 500:
        assert set(shown.columns) == set(COLUMNS[view])


def test_texts() -> None:
    assert text("bytes/s", 1536.0) == "1.5 KiB" and text("idle", 87.4) == "87%" and text("lag", None) == "-"
    assert text("records/s", 1234567.0) == "1,234,567" and text("records/s", 1.25) == "1.2"
    assert text("topic", "a\x1bb") == "a\\x1bb"
