"""Options of a write, and the transactional ids that they lead to."""

import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructField, StructType

from ottla.spark.option_values import OptionError
from ottla.spark.sink.settings import write_settings
from ottla.spark.sink.transactions import driver_id, sink_name, task_id, task_prefix
from ottla.spark.source import OttlaSource
from ottla.spark.writer import BatchWriter


@pytest.mark.parametrize(
    ("options", "streaming", "complaint"),
    [
        ({"sink.id": " "}, True, "option sink.id: must not be empty"),
        ({}, True, "needs a name for the sink that stays the same when the query is restarted"),
        ({"batch.id": "7", "sink.id": "s"}, False, "needs delivery=exactly_once and a sink.id"),
        ({"batch.id": "7", "delivery": "exactly_once"}, False, "needs delivery=exactly_once and a sink.id"),
        ({"batch.id": "7", "sink.id": "s"}, True, "streams have numbers of their own"),
        ({"sink.id": "s", "sink.give.up": "run-1"}, True, "<run>:<batch> is expected"),
        ({"sink.id": "s", "sink.give.up": ":3"}, True, "<run>:<batch> is expected"),
        ({"sink.id": "s", "dlq.topic": "dead"}, True, "option 'dlq.topic' is for reading"),
        ({"sink.id": "s", "kafka.acks": "1"}, True, "needs kafka.acks=all"),
    ],
)
def test_what_writes_refuse(options: dict[str, str], streaming: bool, complaint: str) -> None:
    with pytest.raises(OptionError, match=complaint):
        write_settings({"kafka.bootstrap.servers": "localhost:1", "topic": "t", **options}, streaming=streaming)


SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:1"}
TYPED = {**SERVERS, "topic": "t", "value.format": "avro"}


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: _writer(overwrite=True), "use mode('append'), not mode('overwrite')"),
        (
            lambda: _writer(**{"value.schema": '{"type": "record", "name": "R", "fields": []}'}),
            "the schema has no field n",
        ),
        (lambda: _writer(**{"value.schema": "{"}), "JSON"),
        (lambda: _writer(**{"schema.registry.url": "http://127.0.0.1:1"}), "the schema registry at"),
        (lambda: OttlaSource({**SERVERS, "subscribe": "t", "value.format": "avro"}).schema(), "needs schema.registry"),
        (
            lambda: OttlaSource({**SERVERS, "subscribe": "t", "on.bad": "dlq", "dlq.topic": "t"}).schema(),
            "is read itself",
        ),
    ],
)
def test_what_spark_shows_of_an_error_is_its_message(call: Callable[[], Any], complaint: str) -> None:
    """Of each frame, and of each exception before it, Spark would print some lines."""
    with pytest.raises((ValueError, OSError), match=re.escape(complaint)) as raised:
        call()
    assert raised.value.__cause__ is None and raised.value.__suppress_context__
    inside = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__) if "/ottla/" in frame.filename]
    assert inside == ["call"], inside


def _writer(*, overwrite: bool = False, **options: str) -> BatchWriter:
    return BatchWriter({**TYPED, **options}, StructType([StructField("n", LongType())]), overwrite=overwrite)


@given(st.lists(st.text(st.sampled_from("ab/-_.1é "), min_size=1, max_size=90), min_size=2, max_size=2, unique=True))
def test_sinks_do_not_share_transactional_ids(sink_ids: list[str]) -> None:
    """No id of one sink is, or begins with what finds those of, another one's."""
    one, other = map(sink_name, sink_ids)
    assert one != other
    assert "/" not in one
    assert not driver_id(one).startswith(task_prefix(other))
    assert not task_id(one, 1, 0).startswith(task_prefix(other))
