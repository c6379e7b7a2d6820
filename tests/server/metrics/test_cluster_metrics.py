"""Three nodes: what their metrics say of partitions whose replicas are missing, and when they are back."""

from __future__ import annotations

from pathlib import Path

from tests.server.metrics.scraping import Scrape
from tests.server.nodes import active, create, run, running, settings, until
from tests.support.waiting import until_async

from ottla.server.node import Node

MANAGER = "kafka_server_replicamanager_"
CONTROLLER = "kafka_controller_kafkacontroller_"


async def scrape(node: Node) -> Scrape:
    assert node.composed is not None
    assert node.composed.metrics is not None
    exposition = await node.composed.metrics.collect()
    return Scrape(b"".join(exposition.chunks()).decode())


async def total(nodes: list[Node], name: str) -> float:
    return sum([(await scrape(node))(name) for node in nodes])


def test_a_broker_that_leaves_and_comes_back(tmp_path: Path) -> None:
    async def test() -> None:
        more = {"ottla_metrics_listener": "127.0.0.1:0", "min_insync_replicas": "2"}
        values = settings(tmp_path, 3, **more)
        async with running(values) as nodes:
            await create(active(nodes), "t", partitions=6)
            everyone = list(nodes.values())
            await until(lambda: all("t" in node.metadata.state.topics for node in everyone))
            assert await total(everyone, f"{CONTROLLER}activecontrollercount") == 1
            assert await total(everyone, f"{MANAGER}leadercount") == 6
            assert await total(everyone, f"{MANAGER}partitioncount") == 18
            assert await total(everyone, f"{MANAGER}underreplicatedpartitions") == 0
            assert {(await scrape(node))("ottla_quorum_leader_id") for node in everyone} == {
                active(nodes).member.quorum.leader_id
            }

            gone = next(node for node in everyone if node is not active(nodes))
            left = [node for node in everyone if node is not gone]
            led = sum(each.leader == gone.metadata.node_id for each in gone.metadata.state.topics["t"].partitions)
            await gone.stop()

            async def under_replicated() -> float:
                return await total(left, f"{MANAGER}underreplicatedpartitions")

            await until_async(under_replicated, lambda found: found == 6)
            assert await total(left, f"{MANAGER}atminisrpartitioncount") == 6
            assert await total(left, f"{MANAGER}underminisrpartitioncount") == 0
            assert await total(left, f"{MANAGER}isrshrinks_total") == 6
            by_topic = "kafka_cluster_partition_"
            for kind, expected in (("atminisr", 6), ("underminisr", 0), ("underreplicated", 6), ("replicascount", 18)):
                assert sum([(await scrape(node))(f"{by_topic}{kind}", topic="t") for node in left]) == expected, kind
            assert {(await scrape(node))("kafka_server_replicafetchermanager_maxlag") for node in left} == {0}
            for node in left:
                found = await scrape(node)
                assert found("ottla_partition_leader_changes_total") >= led
                assert found(f"{CONTROLLER}fencedbrokercount") + found(f"{CONTROLLER}activebrokercount") == 3
                assert found("ottla_metadata_lag_records") == 0

    run(test)
