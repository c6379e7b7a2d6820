"""The same pages against a real Kafka, and what they say where only Ottla would know."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tests.console.consoles import Visitor, running_console
from tests.console.pages.groups.people import HOSTILE, fill, member
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.console.named import named_path
from ottla.console.options import ConsoleOptions
from ottla.model.ids import TopicPartition

pytestmark = pytest.mark.compat

NAME = HOSTILE.replace("\x00", "")


@pytest.fixture(scope="module")
def kafka_visitor(real_kafka: RealKafka) -> Iterator[Visitor]:
    with running_console(ConsoleOptions(real_kafka.bootstrap, port=0)) as console:
        yield Visitor(console.url)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_kafka(real_kafka: RealKafka, kafka_visitor: Visitor, protocol: str) -> None:
    topic, group, visitor = f"console-{protocol}", f"console-{protocol}-{NAME}", kafka_visitor
    fill(real_kafka.bootstrap, topic, {0: 20, 1: 10})
    place = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    with Blocking(real_kafka.bootstrap) as client:
        if protocol == "classic":
            client.admin.groups.set_offsets(group, {place[0]: 5})
        with member(real_kafka.bootstrap, group, topic, **{"group.protocol": protocol}):
            page = until(lambda: visitor.get(named_path("groups", group)), lambda found: "Stable" in found.words)
            assert "reader" in page.words and "<script>alert" not in page.text
            assert f"{topic}-0" in visitor.get(named_path("groups", group, "assignment")).text
            refused = visitor.get(named_path("groups", group, "reset", "preview", to="latest", topics=topic))
            assert "which would commit over them" in refused.words
        until(lambda: visitor.get(named_path("groups", group)).words, lambda words: "Empty" in words)
        client.admin.groups.set_offsets(group, {place[0]: 5, place[1]: 10})
        words = visitor.get(f"/groups?q={topic}").words
        assert "Empty 0 2 15" in words
        assert f"{topic}-0 5 20 15" in visitor.get(named_path("groups", group, "partitions")).words
        rebalances = visitor.get(named_path("groups", group, "rebalances"))
        assert "only Ottla's do" in rebalances.words and "The group is Empty with 0 members now." in rebalances.words
        (*_, last) = visitor.stream(named_path("groups", group, "lag", "run", seconds=1))
        assert "no consumer" in last["html"] and "15 records behind in 1 partition" in last["html"]
        preview = named_path("groups", group, "reset", "preview", to="shift", value=-3)
        assert visitor.send(preview, named_path("groups", group, "reset")).status == 200
        assert [client.admin.groups.offsets(group)[at].offset for at in place] == [2, 7]
        forget = named_path("groups", group, "forget")
        assert visitor.send(named_path("groups", group, "forget", topic=topic), forget).status == 200
        assert not client.admin.groups.offsets(group)


def test_letters_and_transactions_of_kafka(real_kafka: RealKafka, kafka_visitor: Visitor) -> None:
    visitor = kafka_visitor
    fill(real_kafka.bootstrap, "console-old.dlq", 2)
    letters = visitor.get("/letters")
    assert "console-old.dlq its own name 2" in letters.words and "Only Ottla's brokers tell" in letters.words
    assert "2 of the records here are no dead letters" in visitor.get("/letters/console-old.dlq").words
    producer = Producer({"bootstrap.servers": real_kafka.bootstrap, "transactional.id": "console-pay"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("console-old.dlq", b"x", partition=0)
    producer.flush(30)
    assert "console-pay Ongoing" in visitor.get("/transactions").words
    (*_, last) = visitor.stream("/transactions/held/partitions/run")
    assert "/transactions/console-pay" in last["html"] and "hangs" not in last["html"]
    assert "console-old.dlq-0 2 3 1" in visitor.get("/transactions/console-pay").words
    to = "/transactions/console-pay/abort"
    assert "is aborted, and its producer fenced" in visitor.send(to, to, name="console-pay", reason="test").words
    (*_, last) = visitor.stream("/transactions/held/partitions/run")
    assert "/transactions/console-pay" not in last["html"]
