"""Rolling restarts and a rolling upgrade of a cluster under load: no write with acks=all fails beyond its retries."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.cluster.whole import create, until_in_sync
from tests.chaos.work import PARTITIONS, Entrance
from tests.chaos.writers import TOPIC, Writers
from tests.support.java.programs import run_tool
from tests.support.processes.clusters import OttlaCluster, ProcessCluster
from tests.support.processes.kafka import CLUSTER_ID
from tests.support.waiting import WAIT_S

REPLICAS = 3
OLD = "4.0"


async def roll(cluster: ProcessCluster) -> None:
    """One node after the other, the active controller last, as the book says."""
    active = await asyncio.to_thread(cluster.controller)
    for id in sorted(cluster.ids, key=lambda id: id == active):
        await asyncio.to_thread(cluster.stop_node, id)
        await asyncio.to_thread(cluster.start_node, id)
        await asyncio.to_thread(until_in_sync, cluster, [TOPIC], PARTITIONS)


async def under_load(cluster: ProcessCluster, work: list[str]) -> dict[str, int]:
    writers = Writers(Entrance(cluster.bootstrap))
    writers.start()
    for step in work:
        if step == "roll":
            await roll(cluster)
        else:
            await asyncio.to_thread(feature_tool, cluster, *step.split(" "))
    await writers.rest()
    assert await writers.judge() == []
    return writers.facts()


def feature_tool(cluster: ProcessCluster, *words: str) -> str:
    done = run_tool(
        "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", cluster.bootstrap, *words, timeout_s=WAIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def format_all(cluster: OttlaCluster) -> None:
    """As a cluster lies there that an older release of Kafka made, by Kafka's own tool."""
    for id in cluster.ids:
        path = cluster.directory / f"node-{id}" / "server.properties"
        words = ("format", "-t", CLUSTER_ID, "-c", str(path), "--release-version", OLD)
        done = run_tool("kafka.tools.StorageTool", *words)
        assert done.returncode == 0, done.stdout + done.stderr


def test_rolling_restart_and_upgrade_lose_nothing(tmp_path: Path) -> None:
    cluster = OttlaCluster(tmp_path)
    format_all(cluster)
    try:
        cluster.start()
        create(cluster, [TOPIC], PARTITIONS, REPLICAS)
        until_in_sync(cluster, [TOPIC], PARTITIONS)
        assert "FinalizedVersionLevel: 4.0" in feature_tool(cluster, "describe")
        facts = asyncio.run(under_load(cluster, ["roll", "upgrade --release-version 4.3", "roll"]))
        assert "FinalizedVersionLevel: 4.3" in feature_tool(cluster, "describe")
    finally:
        cluster.stop()
    assert facts["producers_given_up"] == 0
    assert facts["acknowledged"] > 100
