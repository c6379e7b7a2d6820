"""Kafka's own command-line tools do their work against the node."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.compat.conftest import MakeTopic, Node
from tests.support.clients.assigned import Java, Message, Sending
from tests.support.java.programs import JavaServer, run_tool
from tests.support.waiting import WAIT_MS

TOOLS = "org.apache.kafka.tools."
Run = Callable[..., str]


@pytest.fixture
def run(java_commands: JavaServer, node: Node) -> Run:
    """run(main, *words, stdin, code): the tool's output; the node's address is added."""

    def call(main: str, *words: str, stdin: str = "", code: int = 0, address: str | None = "--bootstrap-server") -> str:
        words = (address, node.bootstrap, *words) if address else words
        answer = java_commands.ask({"main": main, "args": list(words), "stdin": stdin})
        assert answer["code"] == code, answer
        return str(answer["out"] + answer["err"])

    return call


@pytest.mark.tool("kafka-topics 4.3.1")
@pytest.mark.feature("tool")
def test_topics(run: Run, new_name: Callable[[str], str]) -> None:
    topic = new_name("tool")
    main = TOOLS + "TopicCommand"
    words = ("--create", "--topic", topic, "--partitions", "2", "--config", "retention.ms=5000000")
    assert f"Created topic {topic}" in run(main, *words)
    assert topic in run(main, "--list").split()
    described = run(main, "--describe", "--topic", topic)
    assert "PartitionCount: 2" in described and "retention.ms=5000000" in described
    assert len(re.findall(rf"Topic: {topic}\tPartition: \d\tLeader: \d", described)) == 2
    run(main, "--alter", "--topic", topic, "--partitions", "4")
    assert "PartitionCount: 4" in run(main, "--describe", "--topic", topic)
    assert "already exists" in run(main, "--create", "--topic", topic, code=1)
    run(main, "--delete", "--topic", topic)
    assert topic not in run(main, "--list").split()
    assert "does not exist" in run(main, "--describe", "--topic", topic, code=1)


@pytest.mark.tool("kafka-configs 4.3.1")
@pytest.mark.feature("tool")
def test_configs(run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic()
    main = "kafka.admin.ConfigCommand"
    assert "Completed updating" in run(main, "--alter", "--topic", topic, "--add-config", "max.message.bytes=2000000")
    assert "max.message.bytes=2000000" in run(main, "--describe", "--topic", topic)
    assert run(main, "--describe", "--topic", topic, "--all").count("sensitive=") >= 32
    run(main, "--alter", "--topic", topic, "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in run(main, "--describe", "--topic", topic)
    assert "log.retention.hours=168" in run(main, "--describe", "--broker", "1", "--all")
    assert "InvalidConfigurationException" in run(main, "--alter", "--topic", topic, "--add-config", "x=1", code=1)


@pytest.mark.tool("kafka-get-offsets 4.3.1")
@pytest.mark.feature("tool")
def test_get_offsets(run: Run, node: Node, java_431: Java, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    java_431.produce(node.bootstrap, topic, 1, [Message(b"x")] * 7)
    main = TOOLS + "GetOffsetShell"
    assert run(main, "--topic", topic).split() == [f"{topic}:0:0", f"{topic}:1:7"]
    assert run(main, "--topic-partitions", f"{topic}:1", "--time", "earliest").split() == [f"{topic}:1:0"]
    assert run(main, "--topic-partitions", f"{topic}:1", "--time", "max-timestamp").split()[0].startswith(f"{topic}:1:")


@pytest.mark.tool("kafka-delete-records 4.3.1")
@pytest.mark.feature("tool")
def test_delete_records(run: Run, node: Node, java_431: Java, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic()
    java_431.produce(node.bootstrap, topic, 0, [Message(b"x")] * 7)
    file = tmp_path / "offsets.json"
    file.write_text(f'{{"partitions": [{{"topic": "{topic}", "partition": 0, "offset": 4}}], "version": 1}}')
    assert "low_watermark: 4" in run(TOOLS + "DeleteRecordsCommand", "--offset-json-file", str(file))
    assert java_431.watermarks(node.bootstrap, topic, 0) == (4, 7)


@pytest.mark.tool("kafka-log-dirs 4.3.1")
@pytest.mark.feature("tool")
def test_log_dirs(run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic()
    out = run(TOOLS + "LogDirsCommand", "--describe", "--topic-list", topic)
    assert f'"partition":"{topic}-0"' in out and '"error":null' in out


@pytest.mark.tool("kafka-features 4.3.1")
@pytest.mark.feature("tool")
def test_features(run: Run) -> None:
    out = run(TOOLS + "FeatureCommand", "describe")
    assert re.search(r"metadata.version\s.*FinalizedVersionLevel: 4.3-IV0", out)


@pytest.mark.tool("kafka-metadata-quorum 4.3.1")
@pytest.mark.feature("tool")
def test_quorum(run: Run) -> None:
    out = run(TOOLS + "MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"LeaderId:\s+1", out) and "ClusterId" in out
    assert "Leader" in run(TOOLS + "MetadataQuorumCommand", "describe", "--replication")


@pytest.mark.tool("kafka-broker-api-versions 4.3.1")
@pytest.mark.feature("tool")
def test_api_versions(run: Run) -> None:
    out = run(TOOLS + "BrokerApiVersionsCommand")
    assert re.search(r"Produce\(0\): .*\[usable: 13\]", out)
    assert re.search(r"Fetch\(1\): .*\[usable: 18\]", out)


@pytest.mark.tool("kafka-console-producer 4.3.1")
@pytest.mark.feature("tool")
def test_console_producer(run: Run, node: Node, java_431: Java, make_topic: MakeTopic) -> None:
    topic = make_topic()
    words = ("--topic", topic, "--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    run(TOOLS + "ConsoleProducer", *words, stdin="a:1\nb:2\n")
    received = java_431.consume(node.bootstrap, topic, 0, 0, 2)
    assert [(each.key, each.value) for each in received] == [(b"a", b"1"), (b"b", b"2")]


@pytest.mark.tool("kafka-console-consumer 4.3.1")
@pytest.mark.feature("tool")
def test_console_consumer(run: Run, node: Node, java_431: Java, make_topic: MakeTopic) -> None:
    topic = make_topic()
    java_431.produce(node.bootstrap, topic, 0, [Message(b"value %d" % at) for at in range(9)], Sending(codec="lz4"))
    words = ("--topic", topic, "--partition", "0", "--offset", "4", "--max-messages", "3", "--timeout-ms", WAIT_MS)
    out = run(TOOLS + "consumer.ConsoleConsumer", *words)
    assert [line for line in out.splitlines() if line.startswith("value")] == ["value 4", "value 5", "value 6"]


@pytest.mark.tool("kafka-producer-perf-test 4.3.1")
@pytest.mark.feature("tool")
def test_producer_performance(run: Run, node: Node, java_431: Java, make_topic: MakeTopic) -> None:
    topic = make_topic()
    words = ("--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    out = run(TOOLS + "ProducerPerformance", *words)
    assert "20000 records sent" in out
    assert java_431.watermarks(node.bootstrap, topic, 0) == (0, 20000)


@pytest.mark.tool("kafka-verifiable-producer 4.3.1")
@pytest.mark.feature("tool")
def test_verifiable_producer(node: Node, make_topic: MakeTopic) -> None:
    """In a JVM of its own: it reports when the JVM ends."""
    words = ("--bootstrap-server", node.bootstrap, "--topic", make_topic(), "--max-messages", "500")
    done = run_tool(TOOLS + "VerifiableProducer", *words)
    assert done.returncode == 0, done
    assert done.stdout.count('"name":"producer_send_success"') == 500
    assert '"acked":500' in done.stdout


@pytest.mark.tool("kafka-dump-log 4.3.1")
@pytest.mark.feature("tool")
def test_dump_metadata_log(run: Run, node: Node, make_topic: MakeTopic) -> None:
    """The metadata log, decoded record by record."""
    topic = make_topic(**{"retention.ms": "7654321"})
    segments = sorted((node.data_dir / "__cluster_metadata-0").glob("*.log"))
    words = ("--cluster-metadata-decoder", "--skip-record-metadata", "--files", ",".join(map(str, segments)))
    out = run(TOOLS + "DumpLogSegments", *words, address=None)
    assert f'"type":"TOPIC_RECORD","version":0,"data":{{"name":"{topic}"' in out
    assert f'"resourceName":"{topic}","name":"retention.ms","value":"7654321"' in out
    assert "isControl: true" in out and "Could not" not in out and "isvalid: false" not in out


@pytest.mark.tool("kafka-dump-log 4.3.1")
@pytest.mark.feature("tool")
def test_dump_log(run: Run, node: Node, java_431: Java, make_topic: MakeTopic) -> None:
    """Kafka's own reader finds nothing wrong with the files, batch by batch and record by record, indexes included."""
    topic = make_topic(**{"segment.bytes": "1048576", "index.interval.bytes": "1000"})
    for codec in ("none", "gzip", "zstd"):
        sent = [Message(b"%d" % at * 400, b"key") for at in range(1000)]
        java_431.produce(node.bootstrap, topic, 0, sent, Sending(codec=codec, idempotent=True))
    files = sorted((node.data_dir / f"{topic}-0").iterdir())
    segments = [each for each in files if each.suffix == ".log"]
    assert len(segments) > 1
    main = TOOLS + "DumpLogSegments"
    out = run(main, "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, segments)), address=None)
    assert len(re.findall(r"^\| offset: ", out, re.M)) == 3000
    assert "isvalid: false" not in out and "Found mismatches" not in out
    # The active segment's indexes are preallocated while it is open; the closed ones must be exact.
    closed = {each.stem for each in segments[:-1]}
    indexes = [each for each in files if each.stem in closed and each.suffix in (".index", ".timeindex")]
    assert len(indexes) == 2 * len(closed)
    for flags in ((), ("--index-sanity-check",), ("--verify-index-only",)):
        out = run(main, *flags, "--files", ",".join(map(str, indexes)), address=None)
        assert not re.search(r"mismatch|out of order|failed|corrupt", out, re.I), out
    others = [each for each in files if each.suffix in (".txnindex", ".snapshot")]
    if others:
        run(main, "--files", ",".join(map(str, others)), address=None)
