"""The rows of each view of `ottla top`, from two samples: pure functions.

A rate is None if it is not known: the thing was not there at the first sample, or nobody tells. A rate over many series
of a counter is the sum of how much each of them grew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from math import isnan
from typing import TypeAlias

from ottla.client.metadata import NO_LEADER
from ottla.model.ids import TopicPartition
from ottla.observe.metrics.catalogue import connections, loop, requests
from ottla.observe.metrics.catalogue import topics as of_topics
from ottla.observe.metrics.request_names import NO_ERROR, PARTS_OF_FETCH
from ottla.operations.doctor.cluster.cluster_seen import GroupLag
from ottla.operations.metrics.samples import Labels, MetricSamples
from ottla.operations.sampling.sample import TopSample, TopView

Cell: TypeAlias = str | int | float | None
Row: TypeAlias = dict[str, Cell]

_P99 = "0.99"


def rows(view: TopView, before: TopSample, now: TopSample) -> list[Row]:
    """Return the rows of a view."""
    return _VIEWS[view](before, now)


def per_second(growth: float | None, elapsed_s: float) -> float | None:
    """Return the rate of what grew by so much."""
    return growth / elapsed_s if growth is not None and elapsed_s > 0 else None


def _brokers(before: TopSample, now: TopSample) -> list[Row]:
    elapsed_s = now.at_s - before.at_s
    partitions = [each for topic in now.topics for each in topic.partitions]
    behind = [now.behind(topic.name, each) for topic in now.topics for each in topic.partitions]
    found: list[Row] = []
    for broker in now.brokers:
        led = [each for each in partitions if each.leader == broker.node_id]
        row: Row = {
            "broker": broker.node_id,
            "address": str(broker.address),
            "state": "fenced" if broker.is_fenced else "up",
            "leaders": len(led),
            "replicas": sum(broker.node_id in each.replicas for each in partitions),
            "out of sync": sum(broker.node_id in each for each in behind),
        }
        if now.metrics:
            row |= _measured(before.metrics.get(broker.node_id), now.metrics.get(broker.node_id), elapsed_s)
        found.append(row)
    return found


def _measured(before: MetricSamples | None, now: MetricSamples | None, elapsed_s: float) -> Row:
    def rate(name: str, counts: Callable[[Labels], bool] = lambda _: True) -> float | None:
        if before is None or now is None:
            return None
        return per_second(sum(grown for labels, grown in now.growth(before, name) if counts(labels)), elapsed_s)

    idle = None if now is None else now.value(loop.IDLE.name)
    return {
        "in/s": rate(of_topics.BYTES_IN.name),
        "out/s": rate(of_topics.BYTES_OUT.name),
        "req/s": rate(requests.REQUESTS.name, _is_whole),
        "err/s": rate(requests.ERRORS.name, lambda labels: _is_whole(labels) and is_error(labels)),
        "idle": None if idle is None else 100 * idle,
        "conns": None if now is None else now.value(connections.CONNECTIONS.name),
    }


def _is_whole(labels: Labels) -> bool:
    """Whether requests of an API count in a total: Fetch is there as a whole and in parts."""
    return labels.get("request") not in PARTS_OF_FETCH


def is_error(labels: Labels) -> bool:
    """Whether a counter of answers by code is one of answers with an error."""
    return labels.get("error") != NO_ERROR


def _topics(before: TopSample, now: TopSample) -> list[Row]:
    elapsed_s = now.at_s - before.at_s
    written, grown = _growth(before.ends, now.ends), _growth(before.sizes, now.sizes)
    records = _by_topic({at: end - now.starts.get(at, end) for at, end in now.ends.items()})
    sizes = _by_topic(now.sizes)
    return [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "under": sum(bool(now.behind(topic.name, each)) for each in topic.partitions),
            "offline": sum(each.leader == NO_LEADER for each in topic.partitions),
            "records/s": per_second(written.get(topic.name), elapsed_s),
            "bytes/s": per_second(grown.get(topic.name), elapsed_s),
            "records": records.get(topic.name),
            "bytes": sizes.get(topic.name),
        }
        for topic in now.topics
    ]


def _growth(before: Mapping[TopicPartition, int], now: Mapping[TopicPartition, int]) -> dict[str, int]:
    """What the partitions of each topic grew by; what was deleted meanwhile does not count against it."""
    return _by_topic({at: max(value - before[at], 0) for at, value in now.items() if at in before})


def _by_topic(values: Mapping[TopicPartition, int]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for at, value in values.items():
        found[at.topic] += value
    return dict(found)


def _groups(before: TopSample, now: TopSample) -> list[Row]:
    elapsed_s = now.at_s - before.at_s
    earlier, later = _by_group(before.lags), _by_group(now.lags)
    found: list[Row] = []
    for group in now.groups:
        old, lags = earlier.get(group.group_id, {}), later.get(group.group_id, {})
        both = [(old[at], each) for at, each in lags.items() if at in old]
        read = sum(max(each.committed - first.committed, 0) for first, each in both) if both else None
        grown = sum(each.records - first.records for first, each in both) if both else None
        waited = [0.0 if each.records == 0 else each.waited_s for each in lags.values()]
        found.append(
            {
                "group": group.group_id,
                "kind": group.kind.lower(),
                "state": group.state,
                "lag": sum(each.records for each in lags.values()) if lags else None,
                "seconds": max((each for each in waited if each is not None), default=None),
                "read/s": per_second(read, elapsed_s),
                "lag/s": per_second(grown, elapsed_s),
            }
        )
    return found


def _by_group(lags: Iterable[GroupLag]) -> dict[str, dict[TopicPartition, GroupLag]]:
    found: dict[str, dict[TopicPartition, GroupLag]] = defaultdict(dict)
    for each in lags:
        found[each.group][each.partition] = each
    return dict(found)


def _requests(before: TopSample, now: TopSample) -> list[Row]:
    elapsed_s = now.at_s - before.at_s
    counts, errors = defaultdict[str, float](float), defaultdict[str, float](float)
    for node_id, told in now.metrics.items():
        earlier = before.metrics.get(node_id)
        if earlier is None:
            continue
        for labels, grown in told.growth(earlier, requests.REQUESTS.name):
            counts[labels.get("request", "")] += per_second(grown, elapsed_s) or 0.0
        for labels, grown in told.growth(earlier, requests.ERRORS.name):
            if is_error(labels):
                errors[labels.get("request", "")] += per_second(grown, elapsed_s) or 0.0
    total = _slowest(now.metrics.values(), requests.TOTAL_TIME.name)
    local = _slowest(now.metrics.values(), requests.LOCAL_TIME.name)
    return [
        {
            "request": api,
            "req/s": counts[api],
            "err/s": errors[api],
            "p99 ms": total.get(api, local.get(api)),
            "local p99": local.get(api),
        }
        for api in sorted(counts)
    ]


def _slowest(nodes: Iterable[MetricSamples], name: str) -> dict[str, float]:
    """The highest 99th percentile of all nodes, by API."""
    found: dict[str, float] = {}
    for told in nodes:
        for api, value in told.by(name, "request", quantile=_P99).items():
            if not isnan(value):  # NaN: there were no requests
                found[api] = max(value, found.get(api, 0.0))
    return found


_VIEWS: dict[TopView, Callable[[TopSample, TopSample], list[Row]]] = {
    TopView.BROKERS: _brokers,
    TopView.TOPICS: _topics,
    TopView.GROUPS: _groups,
    TopView.REQUESTS: _requests,
}
