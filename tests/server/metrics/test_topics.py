"""Which topics are told one by one, and that no total goes down while it is told."""

from __future__ import annotations

from pathlib import Path

from tests.server.metrics.scraping import ON, scraped
from tests.server.talk import create, delete, produce
from tests.support.requests.raw import RawConnection

from ottla.testing.broker import EmbeddedBroker

OTHER = "(other)"
RECORDS = "kafka_server_brokertopicmetrics_messagesin_total"


def test_the_busiest_are_told_one_by_one_and_the_others_together(tmp_path: Path) -> None:
    settings = {**ON, "ottla.metrics.topics.max": 2}
    with EmbeddedBroker(tmp_path / "data", settings) as broker, RawConnection(broker.bootstrap) as connection:
        for topic, count in (("a", 1), ("b", 3), ("c", 2), ("d", 1)):
            create(connection, topic)
            for _ in range(count):
                produce(connection, topic, [b"x"])
        found = scraped(broker)
        assert found.labels(RECORDS, "topic") == {"b", "c", OTHER}
        assert (found(RECORDS, topic="b"), found(RECORDS, topic="c"), found(RECORDS, topic=OTHER)) == (3, 2, 2)
        assert found("kafka_log_log_numlogsegments", topic=OTHER) == 2

        # b goes on, c is idle, d becomes busy: it takes the place of c, and counts from here.
        for topic, count in (("b", 1), ("d", 5)):
            for _ in range(count):
                produce(connection, topic, [b"x"])
        found = scraped(broker)
        assert found.labels(RECORDS, "topic") == {"b", "d", OTHER}
        assert (found(RECORDS, topic="b"), found(RECORDS, topic="d"), found(RECORDS, topic=OTHER)) == (4, 5, 2)

        produce(connection, "c", [b"x"])
        produce(connection, "b", [b"x"])
        produce(connection, "d", [b"x"])
        found = scraped(broker)
        assert found.labels(RECORDS, "topic") == {"b", "d", OTHER}, "both are busy"
        assert found(RECORDS, topic=OTHER) == 3


def test_patterns_of_names(tmp_path: Path) -> None:
    settings = {
        **ON,
        "ottla.metrics.topics.include": "orders.*,payments",
        "ottla.metrics.topics.exclude": "*.internal",
    }
    with EmbeddedBroker(tmp_path / "data", settings) as broker, RawConnection(broker.bootstrap) as connection:
        for topic in ("orders.eu", "orders.internal", "payments", "payments.eu"):
            create(connection, topic)
            produce(connection, topic, [b"x"])
        found = scraped(broker)
        assert found.labels(RECORDS, "topic") == {"orders.eu", "payments", OTHER}
        assert found(RECORDS, topic=OTHER) == 2


def test_a_topic_that_is_deleted_and_made_anew(tmp_path: Path) -> None:
    with EmbeddedBroker(tmp_path / "data", ON) as broker, RawConnection(broker.bootstrap) as connection:
        for _ in range(2):
            create(connection, "t")
            produce(connection, "t", [b"x", b"y"])
            assert scraped(broker)(RECORDS, topic="t") == 2
            delete(connection, "t")
            assert scraped(broker).labels(RECORDS, "topic") == set()
