"""Transactions that run out of time: the broker aborts them, and the producer is told so in its own way."""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerFenced
from confluent_kafka import KafkaException, Producer
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java
from tests.support.requests.same import Side
from tests.support.requests.transactional import Transactional
from tests.support.waiting import WAIT_S, until

TIMEOUT_MS = 3000  # enough for the first record, also on a busy machine
AMPLE_MS = int(WAIT_S * 1000)


def aborted(bootstrap: str, identity: str) -> bool:
    side = Side("node", bootstrap)
    try:
        return bool(Transactional(side, identity).describe()["transaction_state"] == "CompleteAbort")
    finally:
        side.close()


def values(java: Java, bootstrap: str, topic: str) -> list[str | None]:
    return [each.value for each in java.drain(bootstrap, topic, "read_committed")]


@pytest.fixture
def topic(brisk_node: Node, java_431: Java, new_name: Names) -> str:
    name = new_name("timeout")
    java_431.ask("create_topic", brisk_node.bootstrap, topic=name, partitions=1)
    return name


@pytest.mark.feature("transactions: timeout")
def test_confluent(brisk_node: Node, java_431: Java, new_name: Names, topic: str) -> None:
    bootstrap, identity = brisk_node.bootstrap, new_name("id")
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "transactional.id": identity,
        "transaction.timeout.ms": TIMEOUT_MS,
        "message.timeout.ms": TIMEOUT_MS,
        "log_level": 0,
    }
    producer = Producer(settings)
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"too late", partition=0)
    producer.flush(WAIT_S)
    until(lambda: aborted(bootstrap, identity))
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(WAIT_S)
    assert refused.value.args[0].txn_requires_abort() or refused.value.args[0].fatal()
    again = Producer(settings | {"transaction.timeout.ms": AMPLE_MS, "message.timeout.ms": AMPLE_MS})
    again.init_transactions(WAIT_S)
    again.begin_transaction()
    again.produce(topic, b"in time", partition=0)
    again.commit_transaction(WAIT_S)
    assert values(java_431, bootstrap, topic) == ["in time"]


@pytest.mark.feature("transactions: timeout")
def test_aiokafka(brisk_node: Node, java_431: Java, new_name: Names, topic: str) -> None:
    bootstrap, identity = brisk_node.bootstrap, new_name("id")

    async def run() -> None:
        settings: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "transactional_id": identity,
            "transaction_timeout_ms": TIMEOUT_MS,
        }
        producer = AIOKafkaProducer(**settings)
        again = AIOKafkaProducer(**settings | {"transaction_timeout_ms": AMPLE_MS})
        await producer.start()
        try:
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"too late", partition=0)
            await asyncio.to_thread(until, lambda: aborted(bootstrap, identity))
            with pytest.raises(ProducerFenced):
                await producer.commit_transaction()
            await again.start()
            async with again.transaction():
                await again.send_and_wait(topic, b"in time", partition=0)
        finally:
            await again.stop()
            await producer.stop()

    asyncio.run(run())
    assert values(java_431, bootstrap, topic) == ["in time"]
