"""What a node tells of the lag of its groups: after real commits, of every kind of groups."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.metrics.scraping import ON, Scrape, scraped
from tests.server.share_talk import ACCEPT, REJECT, SMALL, Queue
from tests.server.talk import create, eventually, fetch_request, produce
from tests.support.requests.raw import RawConnection, request_frame

from ottla import Blocking, ConsumerOptions, ProducerOptions
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.records.build import build_batch
from ottla.testing.broker import EmbeddedBroker

RECORDS, SECONDS = "ottla_group_lag_records", "ottla_group_lag_seconds"
OF_PARTITION, AGE_OF_PARTITION = "ottla_group_partition_lag_records", "ottla_group_partition_lag_seconds"
SHARE = "ottla_share_group_"
OTHER = "(other)"
RUN = "12345678-1234-1234-1234-123456789abc"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LAG_INTERVAL_MS", 50)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path / "data", ON | SMALL) as broker:
        yield broker


def until_lag(broker: EmbeddedBroker, records: float, **labels: str) -> Scrape:
    """The first scrape that tells this lag."""
    name = OF_PARTITION if "partition" in labels else RECORDS

    def found() -> Scrape | None:
        scrape = scraped(broker)
        return scrape if scrape.samples.get((name, tuple(sorted(labels.items())))) == records else None

    scrape = eventually(found, f"a lag of {records} records of {labels}")
    assert isinstance(scrape, Scrape)
    return scrape


def test_lag_in_records_and_in_seconds(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 2)
        written_ms = int(time.time() * 1000)
        produce(connection, "t", build_batch([(None, b"a")] * 2, timestamp=written_ms - 1_000_000))
        produce(connection, "t", build_batch([(None, b"b")] * 2, timestamp=written_ms))
        broker.clock.advance("100s")
        produce(connection, "t", build_batch([(None, b"c")], timestamp=written_ms + 100_000))
    group = {"group": "g", "kind": "classic"}
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    with Blocking(broker.bootstrap) as client:
        client.admin.groups.set_offsets("g", {first: 2, second: 0})
        scrape = until_lag(broker, 3, **group)
        assert scrape(SECONDS, **group) == pytest.approx(100, abs=60)
        assert scrape(OF_PARTITION, group="g", topic="t", partition="0") == 3
        assert scrape(OF_PARTITION, group="g", topic="t", partition="1") == 0
        assert scrape(AGE_OF_PARTITION, group="g", topic="t", partition="1") == 0
        assert [each.records for each in client.admin.groups.lag("g")] == [3, 0], "clients say the same"
        assert scrape("ottla_group_lag_unknown_partitions") == 0

        client.admin.groups.set_offsets("g", {first: 4})
        scrape = until_lag(broker, 1, **group)
        assert scrape(SECONDS, **group) < 60, "only the last record is unread"

        client.admin.groups.set_offsets("g", {first: 5})
        assert until_lag(broker, 0, **group)(SECONDS, **group) == 0
        client.admin.topics.delete("t")
    eventually(lambda: not scraped(broker).labels(OF_PARTITION, "group"), "nothing is told of a deleted topic")


def test_a_marker_behind_the_last_record_is_not_waited_for(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
    with Blocking(broker.bootstrap, ProducerOptions(transactional_id="tx")) as client:
        with client.transaction():
            client.send("t", b"x")
        client.admin.groups.set_offsets("g", {TopicPartition("t", 0): 1})
        broker.clock.advance("100s")
        group = {"group": "g", "kind": "classic"}
        assert until_lag(broker, 1, **group)(SECONDS, **group) == 0


def test_a_consumer_group(broker: EmbeddedBroker) -> None:
    options = ConsumerOptions("g", auto_offset_reset="earliest", group_protocol="consumer")
    with (
        RawConnection(broker.bootstrap) as connection,
        Blocking(broker.bootstrap) as client,
        client.consumer(options) as consumer,
    ):
        create(connection, "t")
        produce(connection, "t", [b"x"])
        consumer.subscribe(["t"])
        assert next(iter(consumer)).value == b"x"
        consumer.commit()
        until_lag(broker, 0, group="g", kind="consumer")
        assert scraped(broker)("ottla_group_rebalances_total") >= 1
        produce(connection, "t", [b"y", b"z"])
        until_lag(broker, 2, group="g", kind="consumer")


def test_a_query_of_spark(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t")
        produce(connection, "t", [b"x", b"y", b"z"])
        client_id = f"consumer-spark-kafka-source-{RUN}-1-executor-1"
        connection.send(request_frame(fetch_request({("t", 0): 2}), 12, 1, client_id))
        connection.receive()
    until_lag(broker, 1, group="spark-kafka-source-00000001", kind="classic")


def test_a_share_group(broker: EmbeddedBroker) -> None:
    with RawConnection(broker.bootstrap) as connection, Queue(broker, connection) as queue:
        member = queue.join()
        queue.put(b"a", b"b", b"c", b"d")
        eventually(member.poll, "records")
        group = {"group": queue.group}
        scrape = scraped(broker)
        assert scrape(f"{SHARE}in_flight_records", **group) == 4
        assert scrape(f"{SHARE}acquired_records_total", **group) == 4

        member.poll([(0, 0, [ACCEPT]), (1, 1, [REJECT]), (3, 3, [ACCEPT])], max_records=0)
        until_lag(broker, 1, **group, kind="share")
        scrape = scraped(broker)
        assert scrape(f"{SHARE}in_flight_records", **group) == 1
        assert scrape(f"{SHARE}acknowledged_records_total", **group) == 2
        assert scrape(f"{SHARE}archived_records_total", **group) == 1
        assert scrape(f"{SHARE}redelivered_records_total", **group) == 0

        member.close()
        again = queue.join("another")
        eventually(again.poll, "the record again")
        scrape = scraped(broker)
        assert scrape(f"{SHARE}redelivered_records_total", **group) == 1
        assert scrape(f"{SHARE}acquired_records_total", **group) == 5, "the counts outlive the session"


def test_the_groups_with_most_lag_are_told_one_by_one(tmp_path: Path) -> None:
    settings = {**ON, **SMALL, "ottla.metrics.groups.max": 2, "ottla.metrics.groups.exclude": "secret.*"}
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        with RawConnection(broker.bootstrap) as connection:
            create(connection, "t")
            produce(connection, "t", [b"x"] * 10)
        with Blocking(broker.bootstrap) as client:
            for group, offset in (("a", 9), ("b", 2), ("c", 3), ("secret.d", 0), (OTHER, 1)):
                client.admin.groups.set_offsets(group, {TopicPartition("t", 0): offset})
        scrape = until_lag(broker, 1 + 10 + 9, group=OTHER, kind="classic")
        assert scrape.labels(RECORDS, "group") == {"b", "c", OTHER}
        assert scrape(RECORDS, group="b", kind="classic") == 8
        assert scrape.labels(OF_PARTITION, "group") == {"b", "c"}


def test_only_groups_that_are_wanted_are_told_one_by_one(tmp_path: Path) -> None:
    settings = {
        **ON,
        **SMALL,
        "ottla.metrics.groups.include": "orders-*,payments",
        "ottla.metrics.groups.exclude": "*-test",
    }
    with EmbeddedBroker(tmp_path / "data", settings) as broker:
        with RawConnection(broker.bootstrap) as connection:
            create(connection, "t")
            produce(connection, "t", [b"x"] * 10)
        with Blocking(broker.bootstrap) as client:
            for group, offset in (("orders-eu", 9), ("orders-test", 8), ("payments", 7), ("payments-eu", 6)):
                client.admin.groups.set_offsets(group, {TopicPartition("t", 0): offset})
        scrape = until_lag(broker, 2 + 4, group=OTHER, kind="classic")
        assert scrape.labels(RECORDS, "group") == {"orders-eu", "payments", OTHER}
        assert scrape.labels(OF_PARTITION, "group") == {"orders-eu", "payments"}


def test_more_partitions_than_a_look_takes_in(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LAG_PARTITIONS_MAX", 1)
    with RawConnection(broker.bootstrap) as connection:
        create(connection, "t", 2)
    with Blocking(broker.bootstrap) as client:
        for group in ("a", "b"):
            client.admin.groups.set_offsets(group, {TopicPartition("t", 0): 0})
    unknown = "ottla_group_lag_unknown_partitions"
    eventually(lambda: scraped(broker).samples.get((unknown, ())) == 1)
    assert scraped(broker).labels(RECORDS, "group") == {"a"}
