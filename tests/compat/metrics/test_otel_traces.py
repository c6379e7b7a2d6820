"""OpenTelemetry's collector takes the spans of three nodes: what one request makes other nodes do is one trace."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.nodes import active, ask, create, run, running, settings, until
from tests.server.otel.traced import CLIENT, INTERNAL, SERVER, Work, traces
from tests.support import tools
from tests.support.processes.otel_collector import OtelCollector, otel_collector
from tests.support.waiting import until_async

from ottla import Cluster, Producer, ProducerOptions
from ottla.server.node import Node
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest


@pytest.fixture(autouse=True)
def _collector() -> None:
    tools.require(tools.missing_collector())


def three(directory: Path, collector: OtelCollector, ratio: str = "1") -> list[dict[str, str]]:
    return settings(
        directory,
        3,
        ottla_otel_endpoint=collector.endpoint,
        ottla_otel_traces_ratio=ratio,
        transaction_state_log_num_partitions="1",
        transaction_state_log_replication_factor="3",
        transaction_state_log_min_isr="2",
    )


async def found(collector: OtelCollector, name: str, wanted: str) -> list[Work]:
    """The traces that a request of this API began, once one of them has this span."""

    async def look() -> list[Work]:
        return [each for each in traces(collector.spans()) if each.span.name == name]

    return await until_async(look, lambda roots: any(wanted in str(each) for each in roots))


@pytest.mark.tool("OpenTelemetry collector 0.145.0, OTLP receiver")
@pytest.mark.feature("traces of requests across nodes")
def test_a_forwarded_request_is_one_trace_of_two_nodes(tmp_path: Path) -> None:
    async def test() -> None:
        with otel_collector(tmp_path / "collector") as collector:
            async with running(three(tmp_path, collector)) as nodes:
                controller = active(nodes)
                other = next(node for node in nodes.values() if node is not controller)
                assert (await create(other, "t")).error_code == 0
                assert (await create(other, "t")).error_code != 0, "it is there"
                to = controller.metadata.node_id
                works = await found(collector, "CreateTopics", f"Envelope/{SERVER}@{to}")
                await until(lambda: sum("Envelope" in str(each) for each in traces(collector.spans())) == 2)
                work = (await found(collector, "CreateTopics", "Envelope"))[0]
                assert works[0].span.trace_id == work.span.trace_id
                (asked,) = work.children
                (handled,) = asked.children
                shown = [(each.span.name, each.span.kind, each.span.node_id) for each in (work, asked, handled)]
                own = other.metadata.node_id
                assert shown == [("CreateTopics", SERVER, own), ("Envelope", CLIENT, own), ("Envelope", SERVER, to)]
                for outer, inner in ((work, asked), (asked, handled)):
                    assert outer.span.begun_ns - 2e6 <= inner.span.begun_ns <= inner.span.ended_ns
                    assert inner.span.ended_ns <= outer.span.ended_ns + 2e6, "the clocks tell milliseconds"
                told = work.span.attributes
                assert told["messaging.client.id"]
                assert told["ottla.listener"] == "PLAINTEXT"
                assert int(told["ottla.request.bytes"]) > 20
                assert told["ottla.forwarded"] == "True"
                times = [float(told[f"ottla.{name}.ms"]) for name in ("queue", "local", "remote")]
                assert min(times) >= 0
                took_ms = (work.span.ended_ns - work.span.begun_ns) / 1e6
                assert abs(sum(times) - took_ms) < 1
                assert handled.span.attributes["ottla.forwarded.api"] == "CreateTopics"
                assert handled.span.attributes["ottla.listener"] == "CONTROLLER"

    run(test)


def test_an_error_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        with otel_collector(tmp_path / "collector") as collector:
            async with running(three(tmp_path, collector)) as nodes:
                assert (await create(active(nodes), "t", replicas=7)).error_code == 38
                (work, *_) = await found(collector, "CreateTopics", "CreateTopics")
                assert work.span.attributes["error.type"] == "INVALID_REPLICATION_FACTOR"
                assert work.span.status == 2
                assert work.children == [], "the controller was asked itself"

    run(test)


def test_a_transaction_has_spans_on_its_coordinator_and_on_the_leaders(tmp_path: Path) -> None:
    async def test() -> None:
        with otel_collector(tmp_path / "collector") as collector:
            async with running(three(tmp_path, collector)) as nodes:
                assert (await create(active(nodes), "t", partitions=6)).error_code == 0
                await write_in_a_transaction(nodes)
                coordinator = leader_of(nodes, "__transaction_state", 0)
                others = {leader_of(nodes, "t", index) for index in range(6)} - {coordinator}
                assert len(others) == 2
                produced = await found(collector, "Produce", f"AddPartitionsToTxn/{SERVER}@{coordinator}")
                asking = next(each for each in produced if each.find("AddPartitionsToTxn", SERVER))
                assert asking.span.node_id in others
                (asked,) = asking.find("AddPartitionsToTxn", CLIENT)
                assert (asked.span.node_id, asked.span.parent_id) == (asking.span.node_id, asking.span.span_id)
                (added,) = asked.children
                assert (added.span.name, added.span.kind, added.span.node_id) == (
                    "AddPartitionsToTxn",
                    SERVER,
                    coordinator,
                )
                waits = [wait for each in produced for wait in each.find("wait for replicas", INTERNAL)]
                assert waits, "acks=all"

                async def ended() -> list[Work]:
                    return [each for each in traces(collector.spans()) if each.span.name == "EndTxn"]

                def is_complete(works: list[Work]) -> bool:
                    return any(len(each.find("WriteTxnMarkers", SERVER)) == len(others) for each in works)

                (end,) = await until_async(ended, is_complete)
                assert end.span.node_id == coordinator
                (writing,) = end.find("write markers", INTERNAL)
                sent = [each.span.node_id for each in end.find("WriteTxnMarkers", CLIENT)]
                assert sent == [coordinator] * len(others)
                assert {each.span.node_id for each in writing.find("WriteTxnMarkers", SERVER)} == others

    run(test)


async def write_in_a_transaction(nodes: dict[int, Node]) -> None:
    host, port = next(iter(nodes.values())).addresses[0]
    options = ProducerOptions(transactional_id="tx")
    async with Cluster(f"{host}:{port}") as cluster, Producer(cluster, options) as producer, producer.transaction():
        for index in range(6):
            await producer.send("t", b"x", partition=index)


def leader_of(nodes: dict[int, Node], topic: str, index: int) -> int:
    state = next(iter(nodes.values())).metadata.state
    return state.topics[topic].partitions[index].leader


def test_a_part_of_the_requests_is_traced(tmp_path: Path) -> None:
    async def test() -> None:
        with otel_collector(tmp_path / "collector") as collector:
            async with running(three(tmp_path, collector, ratio="0.3")) as nodes:
                node = active(nodes)
                request = CreateTopicsRequest(topics=[], timeout_ms=1_000)
                for _ in range(200):
                    await ask(node, request)

            # A node that stops pushes what is left; the collector writes it a little later.
            async def roots() -> list[Work]:
                return [each for each in traces(collector.spans()) if each.span.name == "CreateTopics"]

            many = await until_async(roots, lambda each: len(each) > 20)
            assert len(many) < 110, "200 times 0.3, give or take seven times what chance does"

    run(test)
