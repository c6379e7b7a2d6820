"""Negative offsets are refused where a caller gives one, before anything is asked of a broker."""

import asyncio
from typing import Any

import pytest
from tests.client.partitions import ScriptedPartitions
from tests.client.producer.test_producer import with_producer
from tests.client.producer.test_transaction_refusals import Coordinating
from tests.client.scripted import ScriptedBroker

from ottla import Admin, Cluster, Consumer, ConsumerOptions, OffsetAndMetadata, Producer, TopicPartition

HERE, NOBODY = TopicPartition("t", 0), "127.0.0.1:1"
REFUSED = r"an offset of t-0 is 0 or more, not -\d"


@pytest.mark.parametrize("offset", [-1, -7, OffsetAndMetadata(-5)])
def test_committing(offset: Any) -> None:
    async def run() -> None:
        async with Cluster(NOBODY) as cluster:
            consumer = Consumer(cluster, ConsumerOptions(group_id="g", enable_auto_commit=False))
            for call in (consumer.commit, consumer.each.commit):
                with pytest.raises(ValueError, match=REFUSED):
                    await call({HERE: offset})
            with pytest.raises(ValueError, match=REFUSED):
                await Admin(cluster).groups.set_offsets("g", {TopicPartition("t", 1): 1, HERE: offset})

    asyncio.run(run())


def test_seeking() -> None:
    async def run() -> None:
        async with Consumer(NOBODY) as consumer:
            consumer.assign([HERE])
            consumer.seek(HERE, 5)
            with pytest.raises(ValueError, match=REFUSED):
                consumer.seek(HERE, -7)
            assert consumer.position(HERE) == 5

    asyncio.run(run())


def test_committing_with_a_transaction() -> None:
    async def test(logs: ScriptedPartitions, producer: Producer, broker: ScriptedBroker) -> None:
        there = Coordinating(broker)
        with pytest.raises(ValueError, match=REFUSED):
            async with producer.transaction() as txn:
                await txn.send_offsets({HERE: -1}, "g")
        assert True not in there.ends

    with_producer(test, transactional_id="x")
