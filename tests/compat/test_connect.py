"""Kafka Connect: a distributed worker copies a file to a topic and the topic to a file, and goes on after a restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Java
from tests.support.clients.members import until
from tests.support.processes.connect import ConnectWorker

FILE = "org.apache.kafka.connect.file.FileStream"


@pytest.fixture
def worker(brisk_node: Node, java_tools: None, tmp_path: Path, new_name: Names) -> Iterator[ConnectWorker]:
    made = ConnectWorker(tmp_path, brisk_node.bootstrap, new_name("connect"))
    made.start()
    yield made
    made.kill()


@pytest.mark.tool("Kafka Connect 4.3.1")
@pytest.mark.feature("distributed worker, file source (exactly once) and sink, over kill -9")
def test_file_to_topic_to_file(
    worker: ConnectWorker, brisk_node: Node, java_431: Java, tmp_path: Path, new_name: Names
) -> None:
    topic, source, sink = new_name("piped"), tmp_path / "source.txt", tmp_path / "sink.txt"
    java_431.ask("create_topic", brisk_node.bootstrap, topic=topic, partitions=1)
    lines: list[str] = []

    def write(count: int) -> None:
        new = [f"line {len(lines) + at}" for at in range(count)]
        lines.extend(new)
        with source.open("a") as file:
            file.writelines(f"{line}\n" for line in new)

    def arrived() -> bool:
        return sink.exists() and lines[-1] in sink.read_text().splitlines()

    write(50)
    worker.connect("source", connector_class=FILE + "SourceConnector", file=str(source), topic=topic)
    worker.connect("sink", connector_class=FILE + "SinkConnector", file=str(sink), topics=topic)
    until(arrived, lambda: (worker.state("source"), worker.state("sink")))
    assert sink.read_text().splitlines() == lines
    assert worker.state("source") == worker.state("sink") == ["RUNNING", "RUNNING"]

    worker.kill()
    write(50)
    worker.start()
    until(arrived, lambda: (worker.state("source"), worker.state("sink")))
    # The source writes in transactions, with its offsets in them; a sink that was killed may repeat what it wrote.
    assert [each.value for each in java_431.drain(brisk_node.bootstrap, topic)] == lines
    assert list(dict.fromkeys(sink.read_text().splitlines())) == lines
