"""Client telemetry (KIP-714): a real Kafka with a receiver and Ottla with its metrics on answer alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from tests.support.clients.assigned import Java
from tests.support.java.programs import JavaServer
from tests.support.ports import free_ports
from tests.support.processes.kafka import SINGLE_NODE, RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.same import Both, Plain, Side
from tests.support.tools import CLASSES
from tests.support.waiting import until
from tests.telemetry.pushes import gauge, payload

from ottla.model.ids import METADATA_TOPIC_ID, NO_ID
from ottla.records.compress import Codec, compress
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.cluster.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.cluster.push_telemetry import PushTelemetryRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

CLIENT_METRICS = 16
MAX_BYTES = 1_000
PAYLOAD = payload(gauge("a", 1))
TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
# Each instance of a client has an id that no other test uses, and that both sides are told.
_IDS = itertools.count(1 << 64)


@pytest.fixture(scope="module")
def both(java_431: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    directory = tmp_path_factory.mktemp("telemetry")
    more = {"telemetry.max.bytes": str(MAX_BYTES)}
    receiver = {"metric.reporters": "ottla.TelemetryReceiver"}
    kafka = RealKafka(directory / "kafka", properties=more | receiver, plugins=CLASSES)
    (port,) = free_ports(1)
    listener = {"ottla.metrics.listener": f"127.0.0.1:{port}"}
    ottla = OttlaNode(directory / "ottla", properties=SINGLE_NODE | more | listener)
    try:
        kafka.start()
        ottla.start()
        sides = Both(
            Side("kafka", kafka.bootstrap),
            Side("ottla", ottla.bootstrap),
            java_431.ask("error_texts", kafka.bootstrap),
        )
        for side in (sides.kafka, sides.ottla):
            side.answer(ApiVersionsRequest(client_software_name="me", client_software_version="1.0"), 3)
        yield sides
        sides.kafka.close()
        sides.ottla.close()
    finally:
        kafka.stop()
        ottla.stop()


@pytest.fixture
def id() -> bytes:
    return next(_IDS).to_bytes(16, "big")


def subscribe(side: Side, wanted: list[str], **subscriptions: dict[str, str]) -> None:
    """Have exactly these subscriptions, and wait until a new client is asked for `wanted`."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    for name in ("one", "two", "three"):
        values = subscriptions.get(name, {})
        configs = [
            resource.AlterableConfig(name=key, config_operation=0 if key in values else 1, value=values.get(key))
            for key in ("metrics", "interval.ms", "match")
        ]
        asked = resource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs)
        answer = side.answer(IncrementalAlterConfigsRequest(resources=[asked], validate_only=False), 1)
        assert not answer.responses[0].error_code, answer  # type: ignore[attr-defined]

    def metrics() -> list[str]:
        found = side.answer(GetTelemetrySubscriptionsRequest(client_instance_id=NO_ID), 0)
        assert isinstance(found, GetTelemetrySubscriptionsResponse)
        return sorted(found.requested_metrics)

    until(metrics, lambda found: found == sorted(wanted))


def ask(side: Side, id: bytes) -> Plain:
    return side.call(GetTelemetrySubscriptionsRequest(client_instance_id=id), 0)


def push(
    side: Side, id: bytes, subscription_id: int, metrics: bytes = PAYLOAD, codec: int = 0, *, is_last: bool = False
) -> Plain:
    request = PushTelemetryRequest(
        client_instance_id=id,
        subscription_id=subscription_id,
        terminating=is_last,
        compression_type=codec,
        metrics=metrics,
    )
    return side.call(request, 0)


HOUR = {"metrics": "*", "interval.ms": "3600000"}


def test_both_are_offered(both: Both) -> None:
    def script(side: Side) -> Iterator[Plain]:
        answer = side.call(ApiVersionsRequest(client_software_name="me", client_software_version="1.0"), 3)
        yield [each for each in answer["api_keys"] if each["api_key"] in (71, 72)]

    assert both.same(script) == [[{"api_key": key, "min_version": 0, "max_version": 0} for key in (71, 72)]]


def test_without_a_subscription(both: Both, id: bytes) -> None:
    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, [])
        answer = ask(side, id)
        yield answer
        yield ask(side, id)
        yield push(side, id, answer["subscription_id"])
        yield push(side, id, answer["subscription_id"])

    both.same(script)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_what_cannot_be_read_without_a_subscription(both: Both, id: bytes, codec: Codec) -> None:
    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, [])
        yield push(side, id, ask(side, id)["subscription_id"], b"no metrics", codec)

    both.same(script)


def test_one_for_all_metrics(both: Both, id: bytes) -> None:
    """The subscription ids are the same, too."""

    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, ["*"], one=HOUR)
        yield ask(side, id)

    both.same(script)


def test_a_new_client_gets_an_id(both: Both) -> None:
    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, ["*"], one=HOUR)
        request = GetTelemetrySubscriptionsRequest(client_instance_id=NO_ID)
        first, second = (side.call(request, 0) for _ in range(2))
        yield first["client_instance_id"] not in (NO_ID, METADATA_TOPIC_ID, second["client_instance_id"])
        yield first | {"client_instance_id": b"", "subscription_id": 0}

    both.same(script)


@pytest.mark.parametrize(
    "match",
    [
        "client_id=raw",
        "client_id=r",
        "client_id=r.*",
        "client_id=.*,client_software_name=me",
        "client_software_name=me,client_software_version=2.*",
        "client_source_address=127[.]0[.]0[.]1",
        r"client_source_port=\d+",
        "client_instance_id=A*.*",
        "client_id=no,client_id=raw",
        "client_id=a||raw",
        "client_id=raw=",
        "client_id=(?i)RAW",
        " client_id = raw ",
    ],
)
def test_whom_a_subscription_matches(both: Both, match: str) -> None:
    def script(side: Side) -> Iterator[Plain]:
        two = {"metrics": "marker", "interval.ms": "3600000", "match": match}
        subscribe(side, ["*"], one=HOUR)
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        configs = [
            resource.AlterableConfig(name=key, config_operation=0, value=value)
            for key, value in (two | {"metrics": "marker", "interval.ms": "3600000"}).items()
        ]
        asked = resource(resource_type=CLIENT_METRICS, resource_name="two", configs=configs)
        yield side.call(IncrementalAlterConfigsRequest(resources=[asked], validate_only=False), 1)
        # The first one is taken away afterwards, so what is asked for now says whether the second one matches.
        gone = [
            resource.AlterableConfig(name=key, config_operation=1, value=None) for key in ("metrics", "interval.ms")
        ]
        asked = resource(resource_type=CLIENT_METRICS, resource_name="one", configs=gone)
        side.call(IncrementalAlterConfigsRequest(resources=[asked], validate_only=False), 1)

        def metrics() -> list[str]:
            return list(ask(side, NO_ID)["requested_metrics"])

        yield until(metrics, lambda found: found != ["*"])

    both.same(script)


@pytest.mark.parametrize(
    "match", ["client_id", "nope=a", "client_id=[a", "=a", "client_id==a", "client_id=a=b", "client_id="]
)
def test_what_no_subscription_may_match(both: Both, match: str) -> None:
    def script(side: Side) -> Iterator[Plain]:
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        configs = [resource.AlterableConfig(name="match", config_operation=0, value=match)]
        asked = resource(resource_type=CLIENT_METRICS, resource_name="three", configs=configs)
        yield side.call(IncrementalAlterConfigsRequest(resources=[asked], validate_only=False), 1)

    both.same(script)


def test_several_subscriptions(both: Both) -> None:
    def script(side: Side) -> Iterator[Plain]:
        two = {"metrics": "b,c", "interval.ms": "7000"}
        subscribe(side, ["a", "b", "c"], one={"metrics": "a,b", "interval.ms": "9000"}, two=two)
        answer = ask(side, NO_ID)
        yield sorted(answer["requested_metrics"]), answer["push_interval_ms"]
        subscribe(side, ["*"], one={"metrics": "a,*"}, two=two)
        answer = ask(side, NO_ID)
        yield answer["requested_metrics"], answer["push_interval_ms"]

    both.same(script)


def test_the_interval(both: Both, id: bytes) -> None:
    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, ["*"], one=HOUR)
        subscription_id = ask(side, id)["subscription_id"]
        yield ask(side, id)
        for _ in range(3):
            yield push(side, id, subscription_id)
        yield ask(side, id)

    both.same(script)


def test_a_push_without_a_question(both: Both, id: bytes) -> None:
    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, ["*"], one=HOUR)
        yield push(side, id, 0)
        answer = ask(side, id)
        yield answer
        yield ask(side, id)
        yield push(side, id, answer["subscription_id"])

    both.same(script)


Change = Callable[[Side], None]


def test_a_subscription_that_is_out_of_date(both: Both, id: bytes) -> None:
    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, ["*"], one=HOUR)
        old = ask(side, id)["subscription_id"]
        yield push(side, id, old)
        subscribe(side, ["a"], one={"metrics": "a", "interval.ms": "3600000"})
        yield push(side, id, old)
        yield push(side, id, old)
        answer = ask(side, id)
        yield answer
        yield push(side, id, answer["subscription_id"])

    both.same(script)


@pytest.mark.parametrize("codec", [*map(int, Codec), 5, 127, -1])
def test_codecs(both: Both, id: bytes, codec: int) -> None:
    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, ["*"], one=HOUR)
        subscription_id = ask(side, id)["subscription_id"]
        known = codec in list(Codec)
        yield push(side, id, subscription_id, compress(Codec(codec), PAYLOAD) if known else PAYLOAD, codec)
        yield ask(side, id)
        yield ask(side, id)

    both.same(script)


@pytest.mark.parametrize(
    ("metrics", "codec"),
    [
        (b"", 0),
        (payload(gauge("x" * 100, 1)).ljust(MAX_BYTES, b"\0"), 5),
        (PAYLOAD.ljust(MAX_BYTES + 1, b"\0"), 0),
        (b"\x10", 0),
        (b"no codec", int(Codec.GZIP)),
    ],
)
def test_payloads(both: Both, id: bytes, metrics: bytes, codec: int) -> None:
    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, ["*"], one=HOUR)
        subscription_id = ask(side, id)["subscription_id"]
        yield push(side, id, subscription_id, metrics, codec)
        yield ask(side, id)

    both.same(script)


def test_the_last_push(both: Both, id: bytes) -> None:
    def script(side: Side) -> Iterator[Plain]:
        subscribe(side, ["*"], one=HOUR)
        subscription_id = ask(side, id)["subscription_id"]
        yield push(side, id, subscription_id)
        yield push(side, id, subscription_id, is_last=True)
        yield push(side, id, subscription_id, is_last=True)
        yield push(side, id, subscription_id)
        yield push(side, id, subscription_id)
        yield ask(side, id)

    both.same(script)


@pytest.mark.parametrize("reserved", [NO_ID, METADATA_TOPIC_ID])
def test_reserved_ids(both: Both, reserved: bytes) -> None:
    def script(side: Side) -> Iterator[Plain]:
        yield push(side, reserved, 0)

    both.same(script)


def test_the_tool(both: Both, java_commands: JavaServer) -> None:
    """kafka-client-metrics.sh."""

    def script(side: Side) -> Iterator[Plain]:
        def run(*words: str) -> Plain:
            answer = java_commands.ask(
                {"main": TOOL, "args": ["--bootstrap-server", side.bootstrap, *words], "stdin": ""}
            )
            return answer["code"], str(answer["out"] + answer["err"]).replace(side.bootstrap, "ADDRESS")

        subscribe(side, [])
        named = ("--name", "tool")
        match = "client_software_name=apache-kafka-java,client_software_version=4.*"
        yield run("--list")
        yield run("--describe", *named)
        yield run(
            "--alter", *named, "--metrics", "org.apache.kafka.producer.,a", "--interval", "5000", "--match", match
        )
        yield until(lambda: run("--list"), lambda found: "tool" in found[1])
        code, described = run("--describe", *named)
        yield code, sorted(described.split("\n"))
        yield run("--alter", *named, "--interval", "50")
        yield run("--alter", *named, "--match", "nope=1")
        yield run("--alter", "--generate-name", "--metrics", "*")[0]
        yield run("--delete", *named)
        yield until(lambda: run("--describe", *named), lambda found: "org.apache" not in found[1])

    both.same(script)
