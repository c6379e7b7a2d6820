"""Real clients push their metrics by themselves, and Kafka's tool says which (KIP-714)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from tests.cli.conftest import invoke
from tests.compat.conftest import Names
from tests.server.metrics.scraping import Scrape, scraped
from tests.support import tools
from tests.support.clients.assigned import Java, Message
from tests.support.clients.members import JavaGroups, Joining
from tests.support.java.programs import JavaServer
from tests.support.ports import free_ports
from tests.support.processes.prometheus import Prometheus
from tests.support.waiting import until

from ottla.testing.broker import EmbeddedBroker

INTERVAL_MS = 200
TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
INFO = "ottla_telemetry_client_info"


@pytest.fixture
def broker(tmp_path: Path, java_commands: JavaServer) -> Iterator[EmbeddedBroker]:
    settings = {"ottla.metrics.listener": f"127.0.0.1:{free_ports(1)[0]}", "offsets.topic.num.partitions": 1}
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        words = ["--bootstrap-server", broker.bootstrap, "--alter", "--name", "all"]
        words += ["--metrics", "*", "--interval", str(INTERVAL_MS)]
        answer = java_commands.ask({"main": TOOL, "args": words, "stdin": ""})
        assert answer["code"] == 0, answer
        yield broker


def scrape_with(broker: EmbeddedBroker, has: Callable[[Scrape], bool]) -> Scrape:
    return until(lambda: scraped(broker), has)


def labels_of(scrape: Scrape, name: str) -> list[dict[str, str]]:
    return [dict(labels) for found, labels in scrape.samples if found == name]


def sent(scrape: Scrape, topic: str) -> list[float]:
    name = "ottla_client_producer_topic_record_send_total"
    return [value for (found, labels), value in scrape.samples.items() if found == name and ("topic", topic) in labels]


@pytest.mark.parametrize("protocol", ["range", "consumer"])
def test_a_java_consumer(
    broker: EmbeddedBroker, java_clients_431: JavaServer, java_431: Java, new_name: Names, protocol: str
) -> None:
    topic, group = new_name("t"), new_name("g")
    java_431.ask("create_topic", broker.bootstrap, topic=topic, partitions=1)
    java_431.produce(broker.bootstrap, topic, 0, [Message(b"x")] * 9)
    member = JavaGroups(java_clients_431, "4.3.1").join(broker.bootstrap, Joining(group, [topic], protocol))
    consumed = "ottla_client_consumer_fetch_manager_records_consumed_total"

    def has_consumed(found: Scrape) -> bool:
        return any(value == 9 for (name, _), value in found.samples.items() if name == consumed)

    found = scrape_with(broker, has_consumed)
    (about,) = [each for each in labels_of(found, INFO) if each["group_id"] == group]
    assert about["software"] == "apache-kafka-java"
    assert about["software_version"] == "4.3.1"
    assert about["group_member_id"]
    of_group = [each for each in labels_of(found, consumed) if each["client_id"] == about["client_id"]]
    assert {each.get("topic") for each in of_group} >= {topic}
    assert found("ottla_telemetry_pushes_total", error="NONE") > 0
    member.leave()


def test_a_java_producer(broker: EmbeddedBroker, java_clients_431: JavaServer, java_431: Java, new_name: Names) -> None:
    topic, identity = new_name("t"), new_name("id")
    java_431.ask("create_topic", broker.bootstrap, topic=topic, partitions=1)
    producer = JavaGroups(java_clients_431, "4.3.1").transactional(broker.bootstrap, identity)
    for count, total in ((2, 2), (3, 5)):  # it pushes what came since its last push
        producer.begin()
        producer.send(topic, 0, ["x"] * count)
        producer.commit()
        found = scrape_with(broker, lambda found, total=total: sent(found, topic) == [total])
    (about,) = labels_of(found, INFO)
    assert about["transactional_id"] == identity
    assert found("ottla_telemetry_values_left_out_total") == 0
    producer.close()
    assert sent(scraped(broker), topic) == [5], "what was pushed is told a while longer"


def test_librdkafka(broker: EmbeddedBroker, new_name: Names) -> None:
    client_id = new_name("librdkafka")
    settings = {"bootstrap.servers": broker.bootstrap, "client.id": client_id, "enable.metrics.push": True}
    producer = confluent_kafka.Producer(settings)
    topic = new_name("t")
    producer.produce(topic, b"x")
    producer.flush()

    def pushed(found: Scrape) -> bool:
        producer.poll(0)
        return client_id in found.labels(INFO, "client_id")

    found = scrape_with(broker, pushed)
    (about,) = [each for each in labels_of(found, INFO) if each["client_id"] == client_id]
    assert about["software"] == "confluent-kafka-python"
    rows = invoke("client", "list", "--json", env={"OTTLA_BOOTSTRAP": broker.bootstrap}).json
    (row,) = [each for each in rows if each["client"] == client_id]
    assert (row["software"], row["address"], row["node"]) == ("confluent-kafka-python", "127.0.0.1", 1)
    assert row["instance"] == about["client_instance_id"] and 0 <= row["seconds"] < 60
    shown = invoke("client", "list", env={"OTTLA_BOOTSTRAP": broker.bootstrap})
    assert client_id in shown.out and " ago" in shown.out
    theirs = {name for name, labels in found.samples if dict(labels).get("client_id") == client_id}
    assert "ottla_client_producer_connection_creation_total" in theirs, sorted(theirs)


def test_prometheus_reads_what_clients_push(
    broker: EmbeddedBroker, java_clients_431: JavaServer, java_431: Java, new_name: Names, tmp_path: Path
) -> None:
    tools.require(tools.missing_prometheus())
    assert broker.node is not None
    assert broker.node.metrics_address is not None
    host, port = broker.node.metrics_address
    topic = new_name("t")
    java_431.ask("create_topic", broker.bootstrap, topic=topic, partitions=1)
    producer = JavaGroups(java_clients_431, "4.3.1").transactional(broker.bootstrap, new_name("id"))
    producer.begin()
    producer.send(topic, 0, ["x"] * 5)
    with Prometheus(tmp_path / "prometheus", [f"{host}:{port}"]) as asked:
        asked.until_scraped()
        query = f'sum(ottla_client_producer_topic_record_send_total{{topic="{topic}"}})'
        until(lambda: asked.query(query), lambda found: found == {"": 5})
        assert asked.query("up") == {"": 1}
    producer.close()
