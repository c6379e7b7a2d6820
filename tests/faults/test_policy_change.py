"""A compacted topic that is to be deleted from now on, then kill -9: the gaps that compaction left cost nothing."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from tests.support.processes.kafka import SINGLE_NODE
from tests.support.processes.node import OttlaNode
from tests.support.waiting import WAIT_S, until

TOPIC = "changes"
ACKNOWLEDGED = 20_000


def send(node: OttlaNode, records: list[tuple[bytes, bytes]]) -> int:
    """Acknowledged by all; the end of the log then."""
    offsets: list[int] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "acks": "all", "linger.ms": 5})

    def done(error: object, message: confluent_kafka.Message) -> None:
        assert error is None
        offsets.append(message.offset() or 0)

    for key, value in records:
        producer.produce(TOPIC, value, key, on_delivery=done)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    assert len(offsets) == len(records)
    return max(offsets) + 1


def everything(node: OttlaNode, end: int) -> list[confluent_kafka.Message]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": node.bootstrap, "group.id": "all", "enable.auto.commit": False}
    )
    try:
        place = confluent_kafka.TopicPartition(TOPIC, 0, 0)
        assert consumer.get_watermark_offsets(place, timeout=WAIT_S)[1] == end
        consumer.assign([place])
        found: list[confluent_kafka.Message] = []
        while not found or (found[-1].offset() or 0) < end - 1:
            found += until(lambda: consumer.consume(5_000, 0.2))
        return found
    finally:
        consumer.close()


def is_compacted(node: OttlaNode) -> bool:
    path = node.data_dir / "cleaner-offset-checkpoint"
    return path.exists() and f"{TOPIC} 0 " in path.read_text()


def test_nothing_is_lost_behind_the_gaps(tmp_path: Path) -> None:
    # Kafka's defaults, but that the cleaner does not wait for 15 seconds.
    node = OttlaNode(tmp_path, properties=SINGLE_NODE | {"log.cleaner.backoff.ms": "100"}).start()
    try:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        config = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)}
        admin.create_topics([NewTopic(TOPIC, 1, 1, config=config)])[TOPIC].result(WAIT_S)
        send(node, [(b"k%d" % (number % 10), b"x" * 1_000) for number in range(3_000)])
        until(lambda: is_compacted(node))
        entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
        end = send(node, [(b"n%d" % number, b"v%d" % number) for number in range(ACKNOWLEDGED)])
        before = everything(node, end)
        assert len(before) < end, "there are gaps"
        for _ in range(2):
            node.kill()
            node.start()
            after = everything(node, end)
            assert [(m.offset(), m.key(), m.value()) for m in after] == [
                (m.offset(), m.key(), m.value()) for m in before
            ]
        assert {m.value() for m in after[-ACKNOWLEDGED:]} == {b"v%d" % number for number in range(ACKNOWLEDGED)}
    finally:
        node.stop()
