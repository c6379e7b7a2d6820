"""Rows that cannot be written, without Spark: each is one clear line, and none is taken for written."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import TopicUnknown
from ottla.model.errors import ApiError, ErrorCode
from ottla.spark.pipelines.causes import CauseKind, cause_of
from ottla.spark.sink import driver, task
from ottla.spark.sink import rows as rows_module
from ottla.spark.sink.schema import BadRows
from ottla.spark.sink.settings import WriteSettings, write_settings
from ottla.testing.broker import EmbeddedBroker

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    settings = {"auto.create.topics.enable": "false", "message.max.bytes": 2_000}
    running = EmbeddedBroker(tmp_path_factory.mktemp("broker"), settings).start()
    with Blocking(running.bootstrap) as client:
        client.admin.topics.create("t", 2)
    yield running
    running.stop()


def settings_of(broker: EmbeddedBroker, options: dict[str, str]) -> WriteSettings:
    return write_settings({"kafka.bootstrap.servers": broker.bootstrap, **options}, streaming=False)


def write(settings: WriteSettings, rows: pa.RecordBatch) -> None:
    if settings.exactly_once:
        task.write(settings, driver.prepare(settings), [rows], run="run", batch=0, task=0, attempt=0)
    else:
        task.send(settings, [rows])


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
@pytest.mark.parametrize(
    ("options", "columns", "kind", "message"),
    [
        ({}, {"topic": ["t", None]}, BadRows, "contains a null topic. Use the `topic` option"),
        ({}, {"topic": ["t", "no/pe"]}, BadRows, "rows cannot be written to topic 'no/pe'"),
        ({}, {"topic": ["", "t"]}, BadRows, "rows cannot be written to topic ''"),
        (
            {"topic": "nope", "kafka.max.block.ms": "500"},
            {"value": ["a", "b"]},
            BadRows,
            "Topic nope not present in metadata after 500 ms: create it, or let brokers do so",
        ),
        ({"topic": "t"}, {"value": ["a" * 5_000]}, ApiError, "exceeds the maximum configured value of 2000"),
        ({"topic": "t"}, {"value": ["a", "b" * 5_000]}, ApiError, "exceeds the maximum configured value of 2000"),
        (
            {"topic": "t", "kafka.max.request.size": "1000"},
            {"value": ["a" * 1_500]},
            ApiError,
            "a record of 1570 bytes is larger than",
        ),
        ({"topic": "t"}, {"partition": pa.array([1, 2], pa.int32())}, BadRows, "Partition 2 of topic t is not in the"),
        ({"topic": "t"}, {"partition": pa.array([1, -2], pa.int32())}, BadRows, "Invalid partition: -2"),
        ({"topic": "t"}, {"headers": pa.array([[(None, b"x")]], HEADERS)}, BadRows, "the name of a header is null"),
        ({"topic": "t"}, {"headers": pa.array([[], [None]], HEADERS)}, BadRows, "the name of a header is null"),
    ],
)
def test_rows_that_cannot_be_written(
    broker: EmbeddedBroker,
    delivery: str,
    options: dict[str, str],
    columns: dict[str, Any],
    kind: type[Exception],
    message: str,
) -> None:
    settings = settings_of(broker, {**options, "delivery": delivery})
    count = len(next(iter(columns.values())))
    rows = pa.record_batch({"value": ["v"] * count} | columns)
    with pytest.raises(kind) as failure:
        write(settings, rows)
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize("rows", [1, 2])
def test_rows_that_nobody_acknowledged_are_not_taken_for_written(broker: EmbeddedBroker, rows: int) -> None:
    """Also where the first batch of a task is one row, for which its place is asked."""
    settings = settings_of(broker, {"topic": "t"})
    fault = broker.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", times=None)
    try:
        with pytest.raises(ApiError, match="TOPIC_AUTHORIZATION_FAILED"):
            task.send(settings, [pa.record_batch({"value": ["v"] * rows})])
        assert fault.hits
    finally:
        broker.heal()


async def never(*_: object, **__: object) -> Any:
    await asyncio.Future()


async def absent(*_: object, **__: object) -> Any:
    return None, {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def leaderless(*_: object, **__: object) -> Any:
    raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE)


@pytest.mark.parametrize(
    ("topic", "refresh", "kind"),
    [
        (never, never, CauseKind.BROKER_AWAY),
        (never, leaderless, CauseKind.BROKER_AWAY),
        (leaderless, never, CauseKind.BROKER_BUSY),
        (never, absent, CauseKind.DATA),
    ],
)
def test_a_broker_that_does_not_answer_is_no_missing_topic(
    topic: Any, refresh: Any, kind: CauseKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows_module, "_ASK_S", 0.01)
    client: Any = SimpleNamespace(cluster=SimpleNamespace(topic=topic, refresh=refresh))
    producer: Any = SimpleNamespace(options=SimpleNamespace(max_block_ms=10, batch_size_bytes=1))
    with pytest.raises((TopicUnknown, ApiError, BadRows)) as raised:
        asyncio.run(rows_module.RowSender(client, producer, "t", lambda: 0)._find("t"))
    assert cause_of(raised.value).kind is kind
