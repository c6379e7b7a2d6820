"""Three nodes: the lag of a group is told by its coordinator alone, also in partitions that others lead."""

from __future__ import annotations

from pathlib import Path

from tests.server.metrics.scraping import Scrape
from tests.server.metrics.test_cluster_metrics import scrape
from tests.server.nodes import active, create, listener_of, run, running, settings
from tests.support.waiting import until_async

from ottla import Admin, Producer
from ottla.model.ids import TopicPartition
from ottla.server.node import Node

RECORDS, OF_PARTITION = "ottla_group_lag_records", "ottla_group_partition_lag_records"
UNKNOWN = "ottla_group_lag_unknown_partitions"
GROUP = {"group": "g", "kind": "classic"}


async def looked(node: Node) -> Scrape:
    assert node.composed is not None
    assert node.composed.metrics is not None
    await node.composed.metrics.lags.look()
    return await scrape(node)


def test_partitions_led_by_other_nodes(tmp_path: Path) -> None:
    async def test() -> None:
        more = {"ottla_metrics_listener": "127.0.0.1:0", "offsets_topic_num_partitions": "1"}
        async with running(settings(tmp_path, 3, **more)) as nodes:
            await create(active(nodes), "t", partitions=6, replicas=1)
            everyone = list(nodes.values())
            bootstrap = ",".join(
                f"{address.host}:{address.port}" for address in (listener_of(node, "PLAINTEXT") for node in everyone)
            )
            async with Producer(bootstrap) as producer, Admin(bootstrap) as admin:
                for index in range(6):
                    for value in (b"a", b"b", b"c"):
                        await producer.send("t", value, partition=index)
                await producer.flush()
                await admin.groups.set_offsets("g", {TopicPartition("t", index): 1 for index in range(6)})

            (coordinator,) = [each for each in everyone if (await looked(each)).labels(RECORDS, "group") == {"g"}]
            found = await looked(coordinator)
            assert found(RECORDS, **GROUP) == 12
            assert found("ottla_group_lag_seconds", **GROUP) > 0
            assert found(UNKNOWN) == 0
            assert {found(OF_PARTITION, group="g", topic="t", partition=str(index)) for index in range(6)} == {2}

            gone = next(node for node in everyone if node is not coordinator and node is not active(nodes))
            led = sum(each.leader == gone.metadata.node_id for each in gone.metadata.state.topics["t"].partitions)
            assert led > 0
            await gone.stop()
            await until_async(lambda: looked(coordinator), lambda found: found(UNKNOWN) == led)
            assert (await looked(coordinator))(RECORDS, **GROUP) == 2 * (6 - led)

    run(test)
