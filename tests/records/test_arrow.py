"""Arrow columns against the record iterator: whatever is in a batch, both say the same; malformed bytes are refused."""

import random
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.errors import ApiError
from ottla.records.arrow import SCHEMA, WantedBatch, record_batch
from ottla.records.batch import read_header
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.record import NO_OFFSET, Record, records

CONTENT = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.text(max_size=5), CONTENT), max_size=3).map(tuple)
RECORDS = st.lists(
    st.builds(Record, st.just(NO_OFFSET), st.integers(0, 2**40), CONTENT, CONTENT, HEADERS), min_size=1, max_size=12
)
BATCHES = st.lists(
    st.tuples(
        st.sampled_from(["orders", "payments"]),
        st.integers(0, 3),
        st.integers(0, 2**50),
        st.sampled_from(list(Codec)),
        RECORDS,
        st.none() | st.integers(0, 2**40),
    ),
    min_size=1,
    max_size=5,
)


def wanted(topic: str, partition: int, data: bytes | bytearray, start: int = 0, end: int = -1) -> WantedBatch:
    view = memoryview(data)
    return WantedBatch(topic, partition, read_header(view), view, start, end)


def rows(batches: list[WantedBatch]) -> list[dict[str, object]]:
    table = record_batch(batches)
    table.validate(full=True)
    assert table.schema == SCHEMA
    found: list[dict[str, object]] = table.to_pylist()
    return found


def expected(batch: WantedBatch) -> list[dict[str, object]]:
    return [
        {
            "topic": batch.topic,
            "partition": batch.partition,
            "offset": record.offset,
            "timestamp": datetime.fromtimestamp(record.timestamp / 1000, UTC),
            "timestamp_type": int(batch.header.is_log_append_time),
            "key": record.key,
            "value": record.value,
            "headers": [{"key": name, "value": value} for name, value in record.headers] or None,
        }
        for record in records(batch.data)
        if batch.start <= record.offset and (batch.end < 0 or record.offset < batch.end)
    ]


@settings(deadline=None, max_examples=150)
@given(BATCHES, st.data())
def test_columns_say_what_records_say(given_batches: list[tuple], data: st.DataObject) -> None:  # type: ignore[type-arg]
    batches = []
    for topic, partition, base, codec, content, append_time in given_batches:
        made = build_batch(content, base_offset=base, codec=codec, log_append_time=append_time)
        start = data.draw(st.integers(0, len(content)), "start") + base
        end = data.draw(st.sampled_from([-1, base + len(content) // 2]), "end")
        batches.append(wanted(topic, partition, made, start, end))
    assert rows(batches) == [row for batch in batches for row in expected(batch)]


def test_an_empty_batch() -> None:
    made = build_batch([(None, b"gone")], base_offset=5)
    assert rows([wanted("orders", 0, made, start=6)]) == []


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32), st.sampled_from([Codec.NONE, Codec.LZ4]))
def test_malformed_bytes_are_refused_or_read_as_they_stand(seed: int, codec: Codec) -> None:
    """Nothing may be read outside the batch, whatever its bytes say: the process must live to tell."""
    rng = random.Random(seed)
    made = build_batch(
        [Record(NO_OFFSET, 1000 + n, b"k%d" % n, b"v" * n, (("h", b"x"),)) for n in range(8)], codec=codec
    )
    for _ in range(rng.randint(1, 6)):
        made[rng.randrange(57, len(made))] = rng.randrange(256)
    with suppress(ApiError):  # and nothing else
        record_batch([wanted("orders", 0, made)]).validate(full=True)


def test_a_count_that_cannot_be() -> None:
    made = build_batch([(b"k", b"v")])
    made[57:61] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(ApiError, match="malformed"):
        record_batch([wanted("orders", 0, made)])


def test_without_numba_it_is_the_same() -> None:
    """The loop is one source: where numba cannot be had it runs as it is."""
    program = """
import sys
sys.modules["numba"] = None
from ottla.records.arrow import record_batch, WantedBatch
from ottla.records.batch import read_header
from ottla.records.build import build_batch
data = memoryview(build_batch([(b"k%d" % n, None if n % 3 == 0 else b"v%d" % n) for n in range(10)]))
table = record_batch([WantedBatch("orders", 1, read_header(data), data, 2, 9)])
print(table.column("offset").to_pylist(), table.column("value").to_pylist()[:2])
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[2, 3, 4, 5, 6, 7, 8] [b'v2', None]"


def test_names_of_headers_that_are_not_utf8_are_read_as_java_reads_them() -> None:
    batch = bytes(build_batch([Record(NO_OFFSET, 0, None, b"v", (("name", b"x"), ("ok", b"y")))]))
    found = rows([wanted("orders", 0, batch.replace(b"name", b"na\xff\xfe"))])
    assert found[0]["headers"] == [{"key": "na\ufffd\ufffd", "value": b"x"}, {"key": "ok", "value": b"y"}]
