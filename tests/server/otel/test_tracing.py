"""Spans of one node: which requests have one, what is sent on, and that what waits for a collector is bounded."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData
from tests.server.metrics.scraping import ON, scraped
from tests.server.otel.odd_collector import OddCollector, odd_collector, partly_accepted
from tests.server.talk import create, fetch_request, produce
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.model import limits
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.slices import Slices
from ottla.server.otel.pushes import Pushes
from ottla.server.otel.tracer import Tracer
from ottla.server.settings.otel_place import OtelPlace
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.api import OWN_CLIENT
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

PARENT = bytes(range(24))
SPANS = "ottla_otel_spans_total"


@pytest.fixture
def collector() -> Iterator[OddCollector]:
    with odd_collector() as collector:
        yield collector


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.server.composed_node.OTEL_SPANS_INTERVAL_MS", 50)


def settings(collector: OddCollector, ratio: str = "1") -> dict[str, str]:
    return ON | {"ottla.otel.endpoint": collector.endpoint, "ottla.otel.traces.ratio": ratio}


def spans(collector: OddCollector) -> list[Span]:
    """All that were pushed; a node that stops in the middle of a push does it again."""
    pushed = {
        span.span_id: span
        for pushed in list(collector.pushed)
        if pushed.path == "/v1/traces"
        for resource in TracesData.FromString(pushed.body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    }
    return list(pushed.values())


def attributes(span: Span) -> dict[str, object]:
    return {each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in span.attributes}


def tracer_to(collector: OddCollector) -> Tracer:
    """A tracer without a node."""
    runtime = Runtime(asyncio.get_running_loop(), now_ms=lambda: 0, rng=random.Random(1), clock_s=time.monotonic)
    pushes = Pushes(runtime, OtelPlace(urlsplit(collector.endpoint), {}, None), "traces")
    return Tracer(runtime, pushes, bytes, 1.0)


def count(broker: EmbeddedBroker, outcome: str) -> float:
    return scraped(broker).samples.get((SPANS, (("outcome", outcome),)), 0)


def test_each_request_has_a_span(collector: OddCollector, tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", settings(collector)) as broker:
        with RawConnection(broker.bootstrap) as connection:
            create(connection, "t")
            produce(connection, "t", [b"x"])
            produce(connection, "missing", [b"x"])
            wait = fetch_request({("t", 0): 1}, max_wait_ms=200)
            connection.call(wait, 12)
        until(lambda: len(spans(collector)) >= 4)
        until(lambda: count(broker, "pushed") >= 4)
    found = {span.name: span for span in spans(collector)}
    assert found.keys() >= {"CreateTopics", "Produce", "Fetch"}
    assert all(span.kind == Span.SpanKind.SPAN_KIND_SERVER and not span.parent_span_id for span in found.values())
    assert len({span.trace_id for span in spans(collector)}) == len(spans(collector)), "a trace each"
    errors = [attributes(span).get("error.type") for span in spans(collector) if span.name == "Produce"]
    assert sorted(map(str, errors)) == ["None", "UNKNOWN_TOPIC_OR_PARTITION"]
    fetch = found["Fetch"]
    took_ms = (fetch.end_time_unix_nano - fetch.start_time_unix_nano) / 1e6
    told = attributes(fetch)
    assert took_ms >= 199
    assert abs(float(str(told["ottla.remote.ms"])) - took_ms) < 50
    assert (told["messaging.system"], told["client.address"]) == ("kafka", "127.0.0.1")


def test_a_produce_that_waits_for_the_disk(collector: OddCollector, tmp_path: Path) -> None:
    own = settings(collector) | {"ottla.fsync.before.ack": "true"}
    with EmbeddedBroker(tmp_path / "data", own) as broker, RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        produce(connection, "t", [b"x"], acks=1)
        until(lambda: {span.name for span in spans(collector)} >= {"Produce", "wait for the disk"})
    found = {span.name: span for span in spans(collector)}
    wait, produced = found["wait for the disk"], found["Produce"]
    assert (wait.kind, wait.trace_id) == (Span.SpanKind.SPAN_KIND_INTERNAL, produced.trace_id)
    assert wait.parent_span_id == produced.span_id


def test_a_request_of_a_trace_goes_on_with_it(collector: OddCollector, tmp_path: Path) -> None:
    """However small the ratio is: who began the trace has decided."""
    with EmbeddedBroker(tmp_path / "data", settings(collector, "0.000001")) as broker:
        with RawConnection(broker.bootstrap) as connection:
            for parent in (PARENT, PARENT[:-1], bytes(24), b"x" * 1_000, None):
                connection.send(request_frame(MetadataRequest(topics=[]), 12, 1, "me", parent))
                connection.receive()
        until(lambda: spans(collector))
        broker.stop()
    assert len(spans(collector)) == 1, "what is no parent begins no trace"
    span = spans(collector)[0]
    assert span.trace_id == PARENT[:16]
    assert (span.parent_span_id, attributes(span)["messaging.client.id"]) == (PARENT[16:], "me")


@pytest.mark.parametrize(
    ("ratio", "client", "traces"), [("1", OWN_CLIENT, True), ("1", "other", False), ("0", OWN_CLIENT, False)]
)
def test_only_our_nodes_are_told_that_this_one_traces(
    collector: OddCollector, tmp_path: Path, ratio: str, client: str, traces: bool
) -> None:
    with (
        EmbeddedBroker(tmp_path / "data", settings(collector, ratio)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        request = ApiVersionsRequest(client_software_name=client, client_software_version="1")
        assert connection.call(request, 4).traces is traces


def test_what_waits_for_a_collector_is_bounded(
    collector: OddCollector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OTEL_SPANS_WAITING_MAX", 20)
    collector.status = 503
    with (
        EmbeddedBroker(tmp_path / "data", settings(collector)) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        create(connection, "t")
        for _ in range(100):
            produce(connection, "t", [b"x"])
        until(lambda: count(broker, "dropped") >= 81)
        assert count(broker, "pushed") == 0
        collector.status = 200
        collector.pushed.clear()
        until(lambda: count(broker, "pushed") >= 20)
    assert len(spans(collector)) >= 20


@pytest.mark.parametrize(
    ("status", "body", "refused"), [(400, b"", 3), (200, partly_accepted(2, "too old"), 2), (200, b"", 0)]
)
def test_what_the_collector_refuses_is_not_counted_as_pushed(
    collector: OddCollector, status: int, body: bytes, refused: int
) -> None:
    collector.status, collector.body = status, body

    async def outcomes() -> Counter[str]:
        tracer = tracer_to(collector)
        for name in ("a", "b", "c"):
            tracer.begin(name, None, tracer.clock_s()).end()
        await tracer.push()
        await tracer.push()
        return tracer.outcomes

    assert asyncio.run(outcomes()) == +Counter({"refused": refused, "pushed": 3 - refused})
    assert len(collector.pushed) == 1, "nothing of it is pushed again"


def test_spans_are_kept_if_they_cannot_be_encoded_in_time(
    collector: OddCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that stops gives up while the spans are encoded: they are there for the last push."""

    async def cancelled(*_: object) -> bytes:
        raise asyncio.CancelledError

    async def outcomes() -> Counter[str]:
        tracer = tracer_to(collector)
        tracer.begin("a", None, tracer.clock_s()).end()
        with monkeypatch.context() as patched:
            patched.setattr(Slices, "finish", cancelled)
            with pytest.raises(asyncio.CancelledError):
                await tracer.push()
        await tracer.close()
        return tracer.outcomes

    assert +asyncio.run(outcomes()) == {"pushed": 1}
    assert [span.name for span in spans(collector)] == ["a"]


def test_what_a_client_does_not_wait_for_is_no_span_that_waits(collector: OddCollector, tmp_path: Path) -> None:
    """A client that leaves while its fetch waits: the span says so."""
    with EmbeddedBroker(tmp_path / "data", settings(collector)) as broker:
        with RawConnection(broker.bootstrap) as connection:
            create(connection, "t")
            wait = fetch_request({("t", 0): 0}, max_wait_ms=60_000)
            connection.send(request_frame(wait, 12, 1, "me"))
            until(lambda: broker.node is not None and broker.node.storage.waiters.count)
        until(lambda: [span for span in spans(collector) if span.name == "Fetch"])
    (fetch,) = [span for span in spans(collector) if span.name == "Fetch"]
    assert attributes(fetch)["error.type"] == "the client has left"
