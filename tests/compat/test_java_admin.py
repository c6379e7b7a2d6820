"""The Java admin client, old and new: topics, configs, records, log directories, quorum, features."""

import time
from collections.abc import Callable

import pytest
from tests.compat.conftest import MakeTopic, Node
from tests.support.clients.assigned import Java, Message, Sending
from tests.support.lines import HarnessError
from tests.support.waiting import until


def eventually(ask: Callable[[], object], wanted: object) -> None:
    """A Kafka broker learns of changes from the metadata log, a moment after they were acknowledged."""
    until(ask, lambda found: found == wanted)


@pytest.mark.feature("topics")
def test_topic_life(java: Java, node: Node, new_name: Callable[[str], str]) -> None:
    topic = new_name("life")
    made = java.ask("create_topic", node.bootstrap, topic=topic, partitions=3, configs={"retention.ms": "1000000"})
    assert made["partitions"] == 3 and made["configs"] > 30
    eventually(lambda: topic in java.ask("list_topics", node.bootstrap), True)
    described = java.ask("describe_topic", node.bootstrap, topic=topic)
    assert described["id"] == made["id"] and not described["internal"]
    assert [each["index"] for each in described["partitions"]] == [0, 1, 2]
    assert all(each["replicas"] == each["isr"] == [each["leader"]] for each in described["partitions"])
    java.ask("create_partitions", node.bootstrap, topic=topic, total=5)
    eventually(lambda: len(java.ask("describe_topic", node.bootstrap, topic=topic)["partitions"]), 5)
    java.ask("delete_topic", node.bootstrap, topic=topic)
    eventually(lambda: topic in java.ask("list_topics", node.bootstrap), False)


@pytest.mark.feature("topics")
def test_refusals(java: Java, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic()

    def refused(verb: str, **arguments: object) -> str:
        with pytest.raises(HarnessError) as caught:
            java.ask(verb, node.bootstrap, **arguments)
        return caught.value.name

    assert refused("create_topic", topic=topic) == "TopicExistsException"
    assert refused("create_topic", topic="no good") == "InvalidTopicException"
    assert refused("create_topic", topic="too-many-replicas", replicas=9) == "InvalidReplicationFactorException"
    assert (
        refused("create_topic", topic="bad-config", configs={"retention.ms": "soon"}) == "InvalidConfigurationException"
    )
    assert refused("create_partitions", topic=topic, total=1) == "InvalidPartitionsException"
    assert refused("delete_topic", topic="never-made") == "UnknownTopicOrPartitionException"
    assert refused("describe_topic", topic="never-made") == "UnknownTopicOrPartitionException"


@pytest.mark.feature("configs")
def test_topic_configs(java: Java, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic(**{"cleanup.policy": "compact"})
    where = {"type": "TOPIC", "name": topic}

    def config(name: str) -> tuple[str, str]:
        found = java.ask("describe_configs", node.bootstrap, **where)[name]
        return found["value"], found["source"]

    everything = java.ask("describe_configs", node.bootstrap, **where)
    assert all(entry["documented"] for entry in everything.values())
    assert config("cleanup.policy") == ("compact", "DYNAMIC_TOPIC_CONFIG")
    assert config("segment.bytes") == ("1073741824", "DEFAULT_CONFIG")
    operations = [["APPEND", "cleanup.policy", "delete"], ["SET", "retention.ms", "12345"]]
    java.ask("alter_configs", node.bootstrap, **where, operations=operations)
    eventually(lambda: config("cleanup.policy")[0], "compact,delete")
    assert config("retention.ms") == ("12345", "DYNAMIC_TOPIC_CONFIG")
    operations = [["SUBTRACT", "cleanup.policy", "compact"], ["DELETE", "retention.ms", None]]
    java.ask("alter_configs", node.bootstrap, **where, operations=operations)
    eventually(lambda: config("cleanup.policy")[0], "delete")
    assert config("retention.ms") == ("604800000", "DEFAULT_CONFIG")


@pytest.mark.feature("configs")
def test_broker_configs(java: Java, node: Node) -> None:
    broker = str(java.ask("describe_cluster", node.bootstrap)["controller"])
    found = java.ask("describe_configs", node.bootstrap, type="BROKER", name=broker)
    assert found["log.segment.bytes"]["value"] == "1073741824"
    assert found["log.dirs"]["read_only"]

    def threads() -> tuple[str, str]:
        entry = java.ask("describe_configs", node.bootstrap, type="BROKER", name=broker)["log.cleaner.threads"]
        return entry["value"], entry["source"]

    dynamic = {"type": "BROKER", "name": broker, "operations": [["SET", "log.cleaner.threads", "2"]]}
    java.ask("alter_configs", node.bootstrap, **dynamic)
    eventually(threads, ("2", "DYNAMIC_BROKER_CONFIG"))
    dynamic["operations"] = [["DELETE", "log.cleaner.threads", None]]
    java.ask("alter_configs", node.bootstrap, **dynamic)
    eventually(threads, ("1", "DEFAULT_CONFIG"))


@pytest.mark.feature("offsets and delete-records")
def test_offsets(java: Java, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic()
    times = [5000, 9000, 7000]
    base = int(time.time() * 1000) - 3_600_000
    for ms in times:
        java.produce(node.bootstrap, topic, 0, [Message(b"x", timestamp=base + ms)])

    def offset(spec: str) -> tuple[int, int]:
        found = java.ask("list_offsets", node.bootstrap, topic=topic, spec=spec)
        return found["offset"], found["timestamp"]

    assert offset("latest") == (3, -1)
    assert offset("max_timestamp") == (1, base + 9000)
    assert offset(str(base + 5001)) == (1, base + 9000)
    deleted = java.ask("delete_records", node.bootstrap, topic=topic, before=2)
    assert deleted["low_watermark"] == 2
    assert offset("earliest") == (2, -1)
    with pytest.raises(HarnessError) as caught:
        java.ask("delete_records", node.bootstrap, topic=topic, before=9)
    assert caught.value.name == "OffsetOutOfRangeException"


@pytest.mark.feature("cluster, log dirs, quorum, features")
def test_cluster(java: Java, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic()
    java.produce(node.bootstrap, topic, 0, [Message(b"x" * 1000)])
    cluster = java.ask("describe_cluster", node.bootstrap)
    host, port = node.bootstrap.split(":")
    assert cluster["nodes"] == [[cluster["controller"], host, int(port)]]
    assert len(cluster["cluster_id"]) == 22
    directories = java.ask("describe_log_dirs", node.bootstrap, broker=cluster["controller"])
    [directory] = directories.values()
    assert directory["replicas"][f"{topic}-0"] > 1000
    assert directory["total"] >= directory["usable"] > 0
    quorum = java.ask("describe_quorum", node.bootstrap)
    assert quorum["leader"] == cluster["controller"] and quorum["voters"] == [quorum["leader"]]
    assert quorum["high_watermark"] > 0
    features = java.ask("describe_features", node.bootstrap)
    assert features["finalized"]["metadata.version"] == [30, 30]
    assert set(features["finalized"]) <= set(features["supported"])


@pytest.mark.feature("describe producers")
def test_producers(java: Java, node: Node, make_topic: MakeTopic) -> None:
    topic = make_topic()
    java.produce(node.bootstrap, topic, 0, [Message(b"x")] * 10, Sending(idempotent=True))
    [producer] = java.ask("describe_producers", node.bootstrap, topic=topic)
    assert producer["id"] >= 0 and producer["epoch"] == 0 and producer["last_sequence"] == 9
