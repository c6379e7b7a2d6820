"""The pages of topics and records of a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.console.consoles import Visitor, running_console
from tests.support.processes.kafka import RealKafka

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import UnsupportedApi
from ottla.console.options import ConsoleOptions
from ottla.model.ids import TopicPartition


@pytest.fixture(scope="module")
def kafka(real_kafka: RealKafka) -> Iterator[Visitor]:
    with running_console(ConsoleOptions(real_kafka.bootstrap, port=0)) as console:
        yield Visitor(console.url)


def test_create_list_produce_browse_search_and_delete(kafka: Visitor) -> None:
    made = kafka.send("/topics/+new", "/topics/%2Bnew", name="console-topic", partitions="2", settings="")
    assert "Topic console-topic was created" in made.words
    form = {"key_format": "text", "key": "k", "value_format": "json", "headers": "a=b"}
    for number in range(4):
        said = kafka.send(
            "/topics/console-topic/produce",
            "/topics/console-topic/produce",
            value=f'{{"n": {number}}}',
            partition=str(number % 2),
            **form,
        )
        assert f"partition {number % 2}, offset {number // 2}" in said.words
    assert "console-topic 2 1 4" in kafka.get("/topics?q=console-topic").words
    assert "0 in sync 1 1 leader 0 2 2" in kafka.get("/topics/console-topic").words
    records = kafka.get("/topics/console-topic/records?count=3&start=oldest").words
    assert "0 0" in records
    assert '{"n":2}' in records
    assert '{"n":3}' not in records
    assert '"n": 3' in kafka.get("/topics/console-topic/records/1/1").words
    parts = kafka.stream("/topics/console-topic/search/run?in=path&path=$.n%20>=%203")
    assert "1 found; 4 records read" in parts[-1]["html"]
    assert '{"n":1}' in kafka.get("/topics/console-topic/live/part").words
    storage = kafka.get("/topics/console-topic/storage").words
    assert "A real Kafka tells the sizes" in storage
    assert "4 replicas" in storage or "2 replicas" in storage
    assert "older than 7 d" in storage
    setting = "/topics/console-topic/settings/retention.ms"
    assert "604800000" in kafka.get(setting).words
    refused = kafka.send(setting, setting, value="soon")
    assert refused.status == 400
    assert "is now 1000000" in kafka.send(setting, setting, value="1000000").words
    deletion = "/topics/console-topic/delete-records?before=offset&offset=1"
    assert (
        "were deleted" in kafka.send(deletion, "/topics/console-topic/delete-records/now", name="console-topic").words
    )
    assert (
        "now has 3 partitions"
        in kafka.send("/topics/console-topic/partitions", "/topics/console-topic/partitions", total="3").words
    )
    (heat,) = kafka.stream("/topics/console-topic/heat/run?seconds=1")
    assert "records sampled" in heat["html"]
    deleted = kafka.send("/topics/console-topic/delete", "/topics/console-topic/delete", name="console-topic")
    assert "Topic console-topic was deleted" in deleted.words


def test_segments_are_told_by_ottla_only(real_kafka: RealKafka) -> None:
    with Blocking(real_kafka.bootstrap) as client:
        client.admin.topics.create("no-segments")
        with pytest.raises(UnsupportedApi, match="Ottla only"):
            client.run(client.admin.inner.topics.segments(TopicPartition("no-segments", 0)))
