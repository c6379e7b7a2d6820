"""Internal topics: as many replicas as the cluster has brokers, also while one of them is away."""

from __future__ import annotations

from pathlib import Path

from tests.server.nodes import active, ask, run, running, settings, until

from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.wire.messages.topics.metadata import MetadataRequest


def test_a_client_that_asks_for_one_while_a_broker_is_away_does_not_cost_a_replica(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            leader = active(nodes)
            away = next(id for id in nodes if id != leader.metadata.node_id)
            await nodes[away].stop()
            await until(lambda: leader.metadata.state.brokers[away].fenced)
            wanted = MetadataRequest.Topic(name=CONSUMER_OFFSETS_TOPIC)
            await ask(leader, MetadataRequest(topics=[wanted], allow_auto_topic_creation=True))
            await until(lambda: CONSUMER_OFFSETS_TOPIC in leader.metadata.state.topics)
            topic = leader.metadata.state.topics[CONSUMER_OFFSETS_TOPIC]
            assert {len(partition.replicas) for partition in topic.partitions} == {3}

    run(test)
