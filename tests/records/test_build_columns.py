"""Batches built from columns hold the same records as others, in the partitions that Java would choose."""

import hashlib
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.ids import NO_LEADER_EPOCH
from ottla.model.java import murmur2 as murmur2_of_bytes
from ottla.records import build_columns
from ottla.records.build import assemble
from ottla.records.build_columns import (
    ALL_THERE,
    COUNT,
    END,
    NO_HEADERS,
    NO_PARTITIONS,
    PARTITION,
    HeaderColumns,
    InputColumn,
    frozen,
)
from ottla.records.record import records

Field = bytes | None
ROOT = Path(__file__).parents[2]


def column(fields: list[Field]) -> InputColumn:
    ends = np.cumsum([0, *(len(each or b"") for each in fields)], dtype=np.int32)
    there = np.array([each is not None for each in fields], np.bool_)
    data = np.frombuffer(b"".join(each or b"" for each in fields), np.uint8)
    return InputColumn(data, frozen(ends), ALL_THERE if all(there) else frozen(there))


def header_columns(rows: list[list[tuple[str, Field]]]) -> HeaderColumns:
    flat = [pair for row in rows for pair in row]
    ends = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32)
    return HeaderColumns(
        frozen(ends), column([name.encode() for name, _ in flat]), column([content for _, content in flat])
    )


def decoded(encoded: build_columns.EncodedRows) -> dict[int, list[tuple[Field, Field, tuple[tuple[str, Field], ...]]]]:
    found: dict[int, list[tuple[Field, Field, tuple[tuple[str, Field], ...]]]] = {}
    for partition, begin, end, count in encoded.table.tolist():
        batch = assemble(
            bytearray(encoded.data[begin:end]),
            base_offset=0,
            leader_epoch=NO_LEADER_EPOCH,
            attributes=0,
            last_offset_delta=count - 1,
            base_timestamp=7,
            max_timestamp=7,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            count=count,
        )
        read = list(records(batch))
        assert [each.offset for each in read] == list(range(count))
        assert {each.timestamp for each in read} == {7}
        found.setdefault(partition, []).extend((each.key, each.value, each.headers) for each in read)
    return found


fields = st.none() | st.binary(max_size=200)
pairs = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=70)), max_size=3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(fields, fields, pairs, st.integers(0, 2)), min_size=1, max_size=150),
    st.sampled_from([1, 400, 5_000]),
)
def test_rows_become_the_records_of_their_partitions(
    rows: list[tuple[Field, Field, list[tuple[str, Field]], int]], batch_bytes: int
) -> None:
    chosen = np.array([row[3] for row in rows], np.int32)
    encoded = build_columns.encode_rows(
        column([row[0] for row in rows]),
        column([row[1] for row in rows]),
        header_columns([row[2] for row in rows]),
        chosen,
        3,
        batch_bytes,
    )
    wanted: dict[int, list[tuple[Field, Field, tuple[tuple[str, Field], ...]]]] = {}
    for key, value, headers, partition in rows:
        wanted.setdefault(partition, []).append((key, value, tuple(headers)))
    assert decoded(encoded) == wanted
    sizes = encoded.table[:, END] - encoded.table[:, 1]
    assert all(size <= batch_bytes or count == 1 for size, count in zip(sizes, encoded.table[:, COUNT], strict=True))


def test_a_large_value_and_no_headers() -> None:
    values = column([b"x" * 300_000, None, b""])
    encoded = build_columns.encode_rows(build_columns.missing(3), values, NO_HEADERS, np.zeros(3, np.int32), 1, 16_384)
    assert decoded(encoded) == {0: [(None, b"x" * 300_000, ()), (None, None, ()), (None, b"", ())]}
    assert encoded.table[:, PARTITION].tolist() == [0, 0]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_the_hash_is_javas(data: bytes) -> None:
    assert build_columns.murmur2(np.frombuffer(b"pad" + data, np.uint8), 3, 3 + len(data)) == murmur2_of_bytes(data)


def choose(keys: list[Field], given_partitions: list[int], count: int, run_bytes: int) -> list[int]:
    chosen = np.empty(len(keys), np.int32)
    values = column([b"v" * 79 for _ in keys])
    build_columns.choose(
        *column(keys),
        values.ends,
        frozen(np.array(given_partitions, np.int32)),
        count,
        frozen(np.arange(count, dtype=np.int32)),
        0,
        run_bytes,
        run_bytes,
        chosen,
    )
    return [int(each) for each in chosen]


def test_a_given_partition_comes_first_then_the_key_then_turns() -> None:
    by_key = (murmur2_of_bytes(b"k") & 0x7FFF_FFFF) % 5
    assert choose([b"k", b"k", None], [4, -1, 3], 5, 1_000) == [4, by_key, 3]
    assert choose([None] * 9, [], 3, 300) == [0, 0, 0, 1, 1, 1, 2, 2, 2]  # 100 bytes each with what a record takes


def some_rows(encode: Callable[..., build_columns.EncodedRows]) -> str:
    rng = random.Random(5)
    keys = column([rng.choice([None, rng.randbytes(rng.randrange(12))]) for _ in range(300)])
    values = column([rng.randbytes(rng.randrange(80)) for _ in range(300)])
    headers = header_columns([[("h", b"1"), ("", None)][: rng.randrange(3)] for _ in range(300)])
    chosen = np.empty(300, np.int32)
    build_columns.choose(*keys, values.ends, NO_PARTITIONS, 4, frozen(np.arange(4, dtype=np.int32)), 0, 0, 300, chosen)
    encoded = encode(keys, values, headers, chosen, 4, 500)
    end = int(encoded.table[-1, END])
    return hashlib.sha256(encoded.data[:end].tobytes() + encoded.table.tobytes()).hexdigest()


def test_without_numba_it_is_the_same() -> None:
    if not hasattr(build_columns.encode, "py_func"):
        pytest.skip("numba is not installed")
    program = (
        "import sys; sys.modules['numba'] = None\n"
        "from tests.records.test_build_columns import build_columns, some_rows\n"
        "assert not hasattr(build_columns.encode, 'py_func')\n"
        "print(some_rows(build_columns.encode_rows))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.split() == [some_rows(build_columns.encode_rows)]
