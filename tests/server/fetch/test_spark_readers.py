"""What the client ids of Spark's executors say, and what becomes of the offsets they fetch from."""

from types import SimpleNamespace
from typing import Any

import pytest

from ottla.model.limits import SPARK_READERS_MAX
from ottla.server.fetch.spark_readers import SparkReaders, query_of

RUN = "0b5bf1c4-6cc5-4e1c-9f4e-0a2ad1a1c2d3"
ORDERS_ID = b"1" * 16
_ORDERS = SimpleNamespace(name="orders", partitions=[None] * 3)
STATE: Any = SimpleNamespace(
    topics={"t": SimpleNamespace(name="t", partitions=[None] * 2), "orders": _ORDERS}, topic_by_id={ORDERS_ID: _ORDERS}
)
OTHER = "11111111-6cc5-4e1c-9f4e-0a2ad1a1c2d3"


def wanted(topic: str | bytes, index: int, offset: int) -> Any:
    return SimpleNamespace(topic=topic, index=index, ask=SimpleNamespace(fetch_offset=offset))


def spark_readers() -> SparkReaders:
    nobody: Any = None
    return SparkReaders(nobody, lambda: STATE, nobody)


def positions(readers: SparkReaders) -> dict[str, dict[tuple[str, int], int]]:
    return {
        group: {tuple(p): offset for p, offset in query.positions.items()} for group, query in readers._queries.items()
    }


@pytest.mark.parametrize(
    ("client_id", "expected"),
    [
        (f"consumer-spark-kafka-source-{RUN}-255-executor-3", ("spark-kafka-source-000000ff", RUN)),
        (f"consumer-spark-kafka-source-{RUN}--1-executor-12", ("spark-kafka-source-ffffffff", RUN)),
        (f"consumer-my-team-{RUN}-16-executor-1", ("my-team-00000010", RUN)),
        (f"consumer-spark-kafka-relation-{RUN}-executor-1", None),  # a batch read has no checkpoint and no lag
        (f"consumer-spark-kafka-source-{RUN}-255-driver-0", None),
        (f"consumer-spark-kafka-source-{RUN}-{'1' * 5_000}-executor-1", None),
        ("consumer-my-executor-1", None),
        ("", None),
    ],
)
def test_the_query_of_a_client_id(client_id: str, expected: tuple[str, str] | None) -> None:
    assert query_of(client_id) == expected


def test_positions_go_back_only_with_a_new_run() -> None:
    readers = spark_readers()
    client = "consumer-spark-kafka-source-{}-1-executor-{}"
    readers.noted(client.format(RUN, 1), [wanted("t", 0, 500), wanted("t", 1, 7)])
    readers.noted(client.format(RUN, 2), [wanted("t", 0, 100)])
    assert positions(readers) == {"spark-kafka-source-00000001": {("t", 0): 500, ("t", 1): 7}}
    readers.noted(client.format(OTHER, 1), [wanted("t", 0, 100)])
    assert positions(readers) == {"spark-kafka-source-00000001": {("t", 0): 100}}


def test_topics_by_id_are_named_and_unknown_ones_ignored() -> None:
    readers = spark_readers()
    fetches = [wanted(ORDERS_ID, 2, 9), wanted(b"2" * 16, 0, 1), wanted("unknown", 0, 1), wanted("t", 7, 1)]
    readers.noted(f"consumer-spark-kafka-source-{RUN}-1-executor-1", fetches)
    assert positions(readers) == {"spark-kafka-source-00000001": {("orders", 2): 9}}


def test_the_longest_silent_query_is_forgotten_first() -> None:
    readers = spark_readers()
    for number in range(SPARK_READERS_MAX + 1):
        readers.noted(f"consumer-s-{RUN}-{number}-executor-1", [wanted("t", 0, 0)])
    assert len(positions(readers)) == SPARK_READERS_MAX
    assert "s-00000000" not in positions(readers)
