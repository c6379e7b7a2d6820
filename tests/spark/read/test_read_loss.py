"""Tasks without a JVM: data loss and its reasons, gaps that are none, brokers that die meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.reading import fresh, write
from tests.support.processes.node import OttlaNode

pytest.importorskip("pyspark")

from tests.spark.readers import batch_reader, lost, span, values

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.fetching import Fetched
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.spark.read.loss import Reason
from ottla.spark.read.plan import TaskRange
from ottla.spark.read.reader import RangePartition
from ottla.spark.read.settings import parse_read
from ottla.spark.read.task import _Reading


@pytest.fixture
def client(node: OttlaNode) -> Iterator[Blocking]:
    with Blocking(node.bootstrap) as client:
        yield client


def test_retention(client: Blocking, node: OttlaNode) -> None:
    topic = fresh("retention")
    write(node.bootstrap, topic, range(100))
    strict = batch_reader(node.bootstrap, subscribe=topic)
    planned = strict.partitions()
    client.admin.topics.delete_records(topic, {0: 40})
    assert values(strict, planned) == list(range(40, 100))  # "earliest" is wherever that is when it is read
    assert lost(strict, span(topic, 30, 60)) is Reason.RETENTION
    lenient = batch_reader(node.bootstrap, subscribe=topic, failOnDataLoss="false")
    assert values(lenient, span(topic, 30, 60)) == list(range(40, 60))
    assert values(lenient, span(topic, 10, 30)) == []


def test_ahead_deleted_recreated(client: Blocking, node: OttlaNode) -> None:
    topic = fresh("gone")
    write(node.bootstrap, topic, range(10))
    strict = batch_reader(node.bootstrap, subscribe=topic)
    lenient = batch_reader(node.bootstrap, subscribe=topic, failOnDataLoss="false")
    assert lost(strict, span(topic, 50, 60)) is Reason.AHEAD
    assert values(lenient, span(topic, 50, 60)) == []
    ended = {"subscribe": topic, "endingOffsets": f'{{"{topic}":{{"0":99}}}}'}
    assert lost(strict, lambda: batch_reader(node.bootstrap, **ended).partitions()) is Reason.AHEAD
    clipped = batch_reader(node.bootstrap, **ended, failOnDataLoss="false")
    assert values(clipped, clipped.partitions()) == list(range(10))
    begun = {"subscribe": topic, "startingOffsets": f'{{"{topic}":{{"0":99}}}}'}
    assert lost(strict, lambda: batch_reader(node.bootstrap, **begun).partitions()) is Reason.AHEAD
    assert batch_reader(node.bootstrap, **begun, failOnDataLoss="false").partitions() == []
    old_id = client.admin.topics.describe(topic).topic_id
    gone = [RangePartition(TaskRange(TopicPartition(topic, 3), 0, 5))]
    assert lost(strict, gone) is Reason.PARTITION_GONE
    client.admin.topics.delete(topic)
    assert lost(strict, span(topic, 0, 10)) is Reason.TOPIC_DELETED
    assert values(lenient, span(topic, 0, 10)) == []
    write(node.bootstrap, topic, range(10))
    assert lost(strict, span(topic, 0, 10, old_id)) is Reason.RECREATED
    assert values(lenient, span(topic, 0, 10, old_id)) == []


def test_a_log_shorter_than_planned(node: OttlaNode) -> None:
    topic = fresh("short")
    write(node.bootstrap, topic, range(10))
    hasty = {"kafka.fetch.max.wait.ms": "20", "kafkaConsumer.pollTimeoutMs": "50"}
    assert lost(batch_reader(node.bootstrap, subscribe=topic, **hasty), span(topic, 5, 12)) is Reason.TRUNCATED
    lenient = batch_reader(node.bootstrap, subscribe=topic, failOnDataLoss="false", **hasty)
    assert values(lenient, span(topic, 5, 12)) == [5, 6, 7, 8, 9]


def empty(reading: _Reading, high_watermark: int, last_stable_offset: int, times: int, each_s: float = 0.5) -> None:
    """So many answers without anything, at offset 5; each is so long in coming."""
    for number in range(times):
        assert not reading._cursor.done
        fetched = Fetched(reading._cursor, [], 5, high_watermark, last_stable_offset)
        reading._look_at_empty(fetched, number * each_s)


def at_5(**options: str) -> _Reading:
    settings = parse_read({"kafka.bootstrap.servers": "nowhere:1", "subscribe": "t", **options}, streaming=False)
    reading = _Reading(settings, TaskRange(TopicPartition("t", 0), 0, 10), "test")
    reading._cursor.position = 5
    empty(reading, 10, 10, 1)  # moved on: aborted records, say
    return reading


def test_what_does_not_come_fails_the_query() -> None:
    """Defect: the broker sends nothing from 5 on, and says that 10 can be read. That was taken for a gap."""
    reading = at_5()
    with pytest.raises(ApiError, match=r"offsets 5 to 9 of t-0 do not come for 120000 ms: .* failOnDataLoss to false"):
        empty(reading, 10, 10, 1_000)
    assert not reading._cursor.done
    reading = at_5(**{"kafkaConsumer.pollTimeoutMs": "2000"})
    with pytest.raises(ApiError, match="do not come for 2000 ms"):
        empty(reading, 10, 10, 1_000)


def test_what_does_not_come_is_passed_over_if_that_is_allowed(caplog: pytest.LogCaptureFixture) -> None:
    reading = at_5(failOnDataLoss="false")
    empty(reading, 10, 10, 61)
    assert reading._cursor.done
    assert "offsets 5 to 9 of t-0 do not come for 30000 ms" in caplog.text
    reading = at_5(**{"kafkaConsumer.pollTimeoutMs": "2000", "failOnDataLoss": "false"})
    empty(reading, 10, 10, 5)
    assert reading._cursor.done


def test_answers_that_come_at_once_are_no_time() -> None:
    """A broker that throttles, or waits for remote storage, may answer a thousand times in a second."""
    reading = at_5(failOnDataLoss="false")
    empty(reading, 10, 10, 1_000, each_s=0.001)
    assert not reading._cursor.done


def test_what_is_held_back_by_a_transaction_is_not_passed_over() -> None:
    reading = at_5(**{"kafka.isolation.level": "read_committed", "failOnDataLoss": "false"})
    with pytest.raises(ApiError, match="a transaction is open at 5"):
        empty(reading, 10, 5, 1_000)
    assert not reading._cursor.done


def test_a_broker_dies_and_comes_back(tmp_path: Path) -> None:
    node = OttlaNode(tmp_path).start()
    try:
        write(node.bootstrap, "t", range(3000))
        small = {"kafka.max.partition.fetch.bytes": "2000", "rowsPerBatch": "100"}
        reader = batch_reader(node.bootstrap, subscribe="t", **small)
        planned = reader.partitions()
        batches = reader.read(planned[0])
        found = next(batches).column("value").to_pylist()
        node.kill()
        node.start()
        found += [value for batch in batches for value in batch.column("value").to_pylist()]
        assert [int(value) for value in found] == list(range(3000))
        # A task that begins while the broker is down waits for it.
        node.kill()
        late = reader.read(planned[0])
        node.start()
        assert sum(batch.num_rows for batch in late) == 3000
    finally:
        node.stop()
