"""Client telemetry at its bounds: the largest pushes, the worst patterns, very many subscriptions and series."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint
from tests.server.metrics.scraping import ON, Scrape, get
from tests.server.telemetry.talk import CLIENT_METRICS, TelemetryTalk
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of
from tests.telemetry.pushes import attributes, gauge, payload

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.limits import CONFIG_VALUE_BYTES_MAX
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

# Bounded by the size of a setting, by the steps of a program, and by the work of matching.
LONG_NAMES = ",".join(f"metric.{number}" for number in range(CONFIG_VALUE_BYTES_MAX // 12))
SLOW_PATTERN = "client_id=" + "(.*b|.*c|.*d)" * 150
LARGE_PATTERN = "client_id=(a{1000}){2}"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    with MeasuredNode(tmp_path_factory.mktemp("node"), ON) as node:
        yield node


def bootstrap(node: MeasuredNode) -> str:
    host, port = node.node.addresses[0]
    return f"{host}:{port}"


def alter(node: MeasuredNode, names: list[str], **values: str) -> list[int]:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [resource.AlterableConfig(name=key, config_operation=0, value=text) for key, text in values.items()]
    asked = [resource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs) for name in names]
    with node.connect() as connection:
        answer = connection.call(IncrementalAlterConfigsRequest(resources=asked, validate_only=False), 1)
        return [each.error_code for each in answer.responses]


def pushed(node: MeasuredNode, payload: bytes) -> ErrorCode:
    talk = TelemetryTalk(bootstrap(node))
    talk.asked()
    found = talk.push(payload)
    talk.close()
    return found


def many_points() -> bytes:
    metric = gauge("many", 0)
    for number in range(limits.TELEMETRY_POINTS_MAX):
        labels = attributes({f"l{at}": f"{number}-{at}" for at in range(8)})
        metric.gauge.data_points.append(NumberDataPoint(as_int=number, attributes=labels))
    return payload(metric)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (many_points(), ErrorCode.NONE),
        (payload(gauge("a", 1)) + b"\x10\x01" * 190_000, ErrorCode.NONE),
        (b"\x10\x01" * 500_000, ErrorCode.INVALID_RECORD),
    ],
    ids=["points", "fields", "too-many-fields"],
)
def test_large_pushes(node: MeasuredNode, body: bytes, error: ErrorCode) -> None:
    """What takes long is done by a worker."""
    found: list[ErrorCode] = []
    worst = best_of(lambda: node.cost(lambda: found.append(pushed(node, body))))
    assert set(found) == {error}
    assert worst.cpu_ms <= BUDGET_MS, worst


@pytest.mark.parametrize("match", [SLOW_PATTERN, LARGE_PATTERN])
def test_the_worst_patterns(node: MeasuredNode, match: str) -> None:
    numbers = iter(range(1_000))

    def work() -> None:
        name = f"pattern-{next(numbers)}"
        assert alter(node, [name], match=match, metrics=name) == [0]
        talk = TelemetryTalk(bootstrap(node), client_id="a" * 30_000)
        talk.asked()
        talk.close()

    worst = best_of(lambda: node.cost(work))
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_very_many_subscriptions(node: MeasuredNode) -> None:
    names = [f"many-{number}" for number in range(limits.TELEMETRY_SUBSCRIPTIONS_MAX)]
    for at in range(0, len(names), 100):
        assert set(alter(node, names[at : at + 100], metrics="a,b", match="client_id=app.*")) == {0}
    assert set(alter(node, names[:50], metrics=LONG_NAMES)) == {0}

    def work() -> None:
        talk = TelemetryTalk(bootstrap(node))
        assert talk.asked().requested_metrics == ["*"]
        talk.close()

    worst = best_of(lambda: node.cost(work))
    assert worst.cpu_ms <= BUDGET_MS, worst


def test_a_scrape_of_very_many_series(node: MeasuredNode) -> None:
    series = payload(*(gauge(f"m{number}", number, topic="t") for number in range(limits.TELEMETRY_SERIES_MAX)))
    for number in range(limits.TELEMETRY_CLIENTS):
        talk = TelemetryTalk(bootstrap(node), client_id=f"app-{number}")
        talk.asked()
        assert talk.push(series) is ErrorCode.NONE
        talk.close()
    bodies: list[str] = []

    def cost() -> Callback:
        return node.cost(lambda: bodies.append(get(node.node.metrics_address, "/metrics").body))

    worst = best_of(cost)
    assert worst.cpu_ms <= BUDGET_MS, worst
    told = Scrape(bodies[-1])
    assert len([name for name, _ in told.samples if name.startswith("ottla_client_m")]) > 45_000
    assert told("ottla_telemetry_pushes_total", error="NONE") >= limits.TELEMETRY_CLIENTS
