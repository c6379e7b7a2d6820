"""Declarations of metrics, and the catalogue as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from ottla.observe.metrics.catalogue.areas import metrics
from ottla.observe.metrics.catalogue.registry import registry
from ottla.observe.metrics.declaration import Area, Metric, MetricKind

ALL = (*metrics(), *registry.metrics)


@pytest.mark.parametrize(
    "declare",
    [
        lambda area: area.counter("ottla_things", "A counter without _total."),
        lambda area: area.gauge("things", "Nobody's."),
        lambda area: area.gauge("kafka_things", "Kafka's, without its MBean."),
        lambda area: area.gauge("ottla_things", "Ours, with one.", mbean="kafka.server:type=Things"),
        lambda area: area.gauge("ottla_Things", "Upper case."),
        lambda area: area.gauge("ottla_things", "A label that is none.", "client-id"),
    ],
)
def test_what_is_refused(declare: Callable[[Area], Any]) -> None:
    with pytest.raises(ValueError, match="name"):
        declare(Area("Test", "…"))


def test_names_are_unique() -> None:
    names = [metric.name for metric in ALL]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("metric", [each for each in ALL if each.mbean], ids=lambda metric: metric.name)
def test_kafkas_metrics_have_the_names_that_the_jmx_exporter_gives_them(metric: Metric) -> None:
    """Its example rules for Kafka make `kafka_<domain>_<type>_<name>` of an MBean, in lower case; a rate becomes a
    counter. Rules that are as common (Strimzi's) call a share of idle time `…_percent`."""
    if (attribute := re.fullmatch(r"kafka\.server:type=([\w-]+)((?:,\w+=\*)*) \(([\w-]+)\)", metric.mbean)) is not None:
        type_, keys, name = attribute.groups()
        told = {"socket-server-metrics": "socket_server_metrics"}.get(type_, type_.replace("-", ""))
        assert metric.name == f"kafka_server_{told}_{name.replace('-', '_')}"
        return
    found = re.fullmatch(r"kafka\.([a-z.]+):type=(\w+),name=([\w-]+)((?:,\w+=(?:\*|Replica))*)", metric.mbean)
    assert found is not None, metric.mbean
    domain, type_, name, keys = found.groups()
    if metric.kind is MetricKind.COUNTER:
        name = f"{name.removesuffix('PerSec')}_total"
    elif name.endswith("Percent"):
        name = f"{name.removesuffix('Percent')}_percent"
    assert metric.name == f"kafka_{domain.replace('.', '_')}_{type_}_{name.replace('-', '_')}".lower()
    # The partition of a log is not told: logs are added up by topic.
    assert [each for each in re.findall(r",(\w+)=\*", keys) if each != "partition"] == list(metric.labels)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_each_says_what_it_means(metric: Metric) -> None:
    assert metric.help[0].isupper() or metric.help[0].isdigit()
    assert metric.help.endswith(".")
