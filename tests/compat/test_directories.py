"""A data directory moves from a real Kafka to Ottla and back, and each serves what the other wrote."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.clients.assigned import Confluent, Java, Message, Sending
from tests.support.java.programs import JavaServer
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode

START = int(time.time() * 1000) - 3_600_000


@pytest.fixture
def kafka(java_tools: None, tmp_path: Path) -> Iterator[RealKafka]:
    """A Kafka of this test's own, to be stopped and started."""
    found = RealKafka(tmp_path / "kafka")
    try:
        yield found
    finally:
        found.kill()


def messages(first: int) -> list[Message]:
    return [Message(b"%d " % at * 20, b"key %d" % (at % 7), timestamp=START + at) for at in range(first, first + 500)]


@pytest.mark.slow
@pytest.mark.tool("data directory of Kafka 4.3.1")
@pytest.mark.feature("taken over, given back, recovered after kill -9")
def test_there_and_back(kafka: RealKafka, java_431: Java, java_commands: JavaServer) -> None:
    kafka.start()
    configs = {"cleanup.policy": "compact,delete", "segment.bytes": "1048576", "index.interval.bytes": "500"}
    made = java_431.ask("create_topic", kafka.bootstrap, topic="moved", partitions=2, configs=configs)
    java_431.ask("create_topic", kafka.bootstrap, topic="gone")
    java_431.ask("delete_topic", kafka.bootstrap, topic="gone")
    cluster = java_431.ask("describe_cluster", kafka.bootstrap)
    written = messages(0)
    java_431.produce(kafka.bootstrap, "moved", 1, written, Sending(codec="zstd", idempotent=True))
    java_431.ask("delete_records", kafka.bootstrap, topic="moved", partition=1, before=10)
    kafka.stop()

    node = OttlaNode.in_place_of(kafka).start()
    try:
        assert java_431.ask("describe_cluster", node.bootstrap) == cluster
        assert java_431.ask("list_topics", node.bootstrap) == ["moved"]
        assert java_431.ask("describe_topic", node.bootstrap, topic="moved")["id"] == made["id"]
        found = java_431.ask("describe_configs", node.bootstrap, type="TOPIC", name="moved")
        assert {name: found[name]["value"] for name in configs} == configs
        check(java_431, node.bootstrap, written)
        more = messages(500)
        java_431.produce(node.bootstrap, "moved", 1, more, Sending(codec="lz4", idempotent=True))
        written += more
        check(java_431, node.bootstrap, written)
        java_431.ask("create_topic", node.bootstrap, topic="ours", configs={"retention.ms": "987654321"})
        Confluent().produce(node.bootstrap, "ours", 0, [Message(b"made here")])
        java_431.ask("create_partitions", node.bootstrap, topic="moved", total=3)
    finally:
        node.stop()
    dump(java_commands, kafka.data_dir / "moved-1")

    kafka.start()
    check(java_431, kafka.bootstrap, written)
    assert java_431.ask("describe_cluster", kafka.bootstrap) == cluster
    assert java_431.ask("list_topics", kafka.bootstrap) == ["moved", "ours"]
    assert len(java_431.ask("describe_topic", kafka.bootstrap, topic="moved")["partitions"]) == 3
    ours = java_431.ask("describe_configs", kafka.bootstrap, type="TOPIC", name="ours")
    assert ours["retention.ms"]["value"] == "987654321"
    assert [each.value for each in java_431.consume(kafka.bootstrap, "ours", 0, 0, 1)] == [b"made here"]
    more = messages(1000)
    java_431.produce(kafka.bootstrap, "moved", 1, more, Sending(idempotent=True))
    written += more
    kafka.kill()  # this time Ottla has to recover what a crash left

    node = OttlaNode.in_place_of(kafka).start()
    try:
        check(java_431, node.bootstrap, written)
        assert java_431.ask("list_topics", node.bootstrap) == ["moved", "ours"]
    finally:
        node.stop()


def check(java: Java, bootstrap: str, written: list[Message]) -> None:
    """All that was written is there, from the offset up to which records were deleted."""
    assert java.watermarks(bootstrap, "moved", 1) == (10, len(written))
    received = java.consume(bootstrap, "moved", 1, 10, len(written) - 10)
    assert received == [each._replace(offset=at) for at, each in enumerate(written)][10:]
    assert java.offset_for_time(bootstrap, "moved", 1, START + 321) == 321


def dump(java_commands: JavaServer, directory: Path) -> None:
    """Kafka's own reader finds nothing wrong."""
    files = [str(each) for each in sorted(directory.iterdir()) if each.suffix in (".log", ".index", ".timeindex")]
    assert len(files) >= 3
    words = ["--deep-iteration", "--files", ",".join(files)]
    answer = java_commands.ask({"main": "org.apache.kafka.tools.DumpLogSegments", "args": words})
    assert answer["code"] == 0
    assert not re.search(r"mismatch|out of order|isvalid: false|corrupt", answer["out"] + answer["err"], re.I)
