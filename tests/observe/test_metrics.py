"""Metrics: counting, buckets, and the text that Prometheus reads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.limits import SERIES_PER_METRIC_MAX
from ottla.observe.metrics import BYTES, OVERFLOW_LABEL, SECONDS, Histogram, Registry


def test_the_text_of_everything() -> None:
    registry = Registry()
    requests = registry.counter("ottla_requests_total", "Requests,\nby API.", ("api",))
    requests.labels("Produce").value += 2
    requests.labels('a"b\\c\n').value += 1
    registry.gauge("ottla_connections", "Open connections.").labels().read = lambda: 7
    registry.gauge("ottla_lag", "Lag.").labels().value = 0.5
    sizes = registry.histogram("ottla_batch_bytes", "Batch sizes.", ("topic",), bounds=(1, 10)).labels("t")
    for value in (0, 1, 2, 11):
        sizes.observe(value)
    assert registry.render() == (
        "# HELP ottla_requests_total Requests,\\nby API.\n"
        "# TYPE ottla_requests_total counter\n"
        'ottla_requests_total{api="Produce"} 2\n'
        'ottla_requests_total{api="a\\"b\\\\c\\n"} 1\n'
        "# HELP ottla_connections Open connections.\n"
        "# TYPE ottla_connections gauge\n"
        "ottla_connections 7\n"
        "# HELP ottla_lag Lag.\n"
        "# TYPE ottla_lag gauge\n"
        "ottla_lag 0.5\n"
        "# HELP ottla_batch_bytes Batch sizes.\n"
        "# TYPE ottla_batch_bytes histogram\n"
        'ottla_batch_bytes_bucket{topic="t",le="1"} 2\n'
        'ottla_batch_bytes_bucket{topic="t",le="10"} 3\n'
        'ottla_batch_bytes_bucket{topic="t",le="+Inf"} 4\n'
        'ottla_batch_bytes_sum{topic="t"} 14\n'
        'ottla_batch_bytes_count{topic="t"} 4\n'
    )


def test_a_metric_is_declared_once() -> None:
    registry = Registry()
    registry.counter("a_total", "A.")
    with pytest.raises(AssertionError):
        registry.gauge("a_total", "A again.")


def test_series_are_the_same_object_and_can_be_forgotten() -> None:
    family = Registry().counter("a_total", "A.", ("topic",))
    assert family.labels("x") is family.labels("x")
    family.forget("x")
    assert family.series() == []


def test_series_are_bounded() -> None:
    family = Registry().counter("a_total", "A.", ("client", "topic"))
    for number in range(SERIES_PER_METRIC_MAX + 50):
        family.labels(str(number), "t").value += 1
    assert len(family.series()) == SERIES_PER_METRIC_MAX + 1
    assert family.labels(OVERFLOW_LABEL, OVERFLOW_LABEL).value == 50


@given(st.lists(st.floats(0, 1e12), max_size=30), st.sampled_from([SECONDS, BYTES]))
def test_a_histogram_counts_everything_in_the_right_bucket(values: list[float], bounds: tuple[float, ...]) -> None:
    histogram = Histogram(bounds)
    for value in values:
        histogram.observe(value)
    assert histogram.count == len(values)
    cumulative = [value for suffix, _, value in histogram.samples() if suffix == "_bucket"]
    assert cumulative == [sum(value <= bound for value in values) for bound in (*bounds, float("inf"))]


def test_quantiles() -> None:
    histogram = Histogram((1, 2, 4))
    assert histogram.quantile(0.5) == 0
    for value in (0.5, 1.5, 1.6, 3):
        histogram.observe(value)
    assert histogram.quantile(0.25) == 1
    assert histogram.quantile(0.5) == 2
    assert histogram.quantile(1) == 4
    histogram.observe(9)
    assert histogram.quantile(1) == float("inf")


def test_odd_numbers() -> None:
    registry = Registry()
    gauge = registry.gauge("g", "G.").labels()
    for value, text in ((float("nan"), "NaN"), (float("-inf"), "-Inf"), (2.0**60, repr(2.0**60)), (-3, "-3")):
        gauge.value = value
        assert registry.render().endswith(f"g {text}\n")
