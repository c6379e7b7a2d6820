"""Typed columns, the contract of a topic and Java's Avro agree about which bytes can be read, and as what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.avro_cases import cases, encoded, source
from tests.support.spark_avro import SparkAvro

from ottla.columns.avro.decoder import decoder
from ottla.columns.codec import UnsupportedSchema
from ottla.schemas.readable import reader_of

slow_data = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=150)


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkAvro]:
    made = SparkAvro(tmp_path_factory.mktemp("spark-avro") / "java.log")
    yield made
    made.close()


# Bytes of which Java would make something that nobody wrote.
NOBODY_WROTE = (
    "a string is not UTF-8",
    "a boolean is neither 0 nor 1",
    "the number does not fit its type",
)
LOWEST = b"\xff" * 9 + b"\x01"  # as many items, says Java, are none

ODD = [0, 1, 2, 3, 4, 0x7F, 0x80, 0x81, 0xFF]


def mutated(payload: bytes, rng: Any) -> bytes:
    made = bytearray(payload)
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(made) + 1)
        match rng.randrange(5):
            case 0:
                made[place:place] = bytes(rng.choice(ODD) for _ in range(rng.randrange(1, 12)))
            case 1:
                made[place : place + 1] = bytes([rng.choice([*ODD, rng.randrange(256)])])
            case 2:
                del made[place : place + rng.randrange(1, 4)]
            case 3:
                made[place:place] = b"\x80" * rng.randrange(1, 11) + bytes([rng.choice(ODD)])
            case 4:
                made += made[place:]
    return bytes(made)


@slow_data
@given(st.data(), cases(), st.randoms(use_true_random=False))
def test_the_same_bytes_are_readable_everywhere(java: SparkAvro, data: st.DataObject, case: Any, rng: Any) -> None:
    good = encoded(case.schema, data.draw(case.values))
    payloads = [good, *(mutated(good, rng) for _ in range(20))]
    payloads += [payload[: rng.randrange(len(payload) + 1)] for payload in payloads]
    judge_all(java, case.schema, payloads)


def judge_all(java: SparkAvro, schema: Any, payloads: list[bytes]) -> None:
    (theirs,) = java.judge([(json.dumps(schema), None, payloads)])
    assert isinstance(theirs, list), theirs
    columns = decoder(source(schema)).decode(pa.array(payloads, pa.binary()))
    columns.columns.validate(full=True)
    contract = reader_of(source(schema))
    for row, (payload, left) in enumerate(zip(payloads, theirs, strict=True)):
        why, fault = columns.reasons.get(row, ""), contract(payload, None)
        told = (payload, left, why, fault)
        if not why:
            assert isinstance(left, int), told
            assert fault == (f"{left} bytes are left over behind the value" if left else None), told
        else:
            if isinstance(left, int):
                assert why.endswith(NOBODY_WROTE) or LOWEST in payload, told
            # What is only too large for a column is fine for a contract, which leaves logical types aside.
            assert fault is not None or why.endswith(NOBODY_WROTE[-1]), told


TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "trees", "type": {"type": "array", "items": "Tree"}},
        {"name": "twin", "type": ["null", "Tree", {"type": "map", "values": "Tree"}]},
    ],
}
_trees = st.deferred(
    lambda: st.fixed_dictionaries(
        {
            "name": st.text(max_size=3),
            "trees": st.lists(_trees, max_size=2),
            "twin": st.none() | _trees | st.dictionaries(st.text(max_size=2), _trees, max_size=2),
        }
    )
)


@slow_data
@given(_trees, st.randoms(use_true_random=False))
def test_contracts_of_recursive_schemas_are_javas(java: SparkAvro, tree: Any, rng: Any) -> None:
    good = encoded(TREE, tree)
    payloads = [good, *(mutated(good, rng) for _ in range(10))]
    (theirs,) = java.judge([(json.dumps(TREE), None, payloads)])
    contract = reader_of(source(TREE))
    for payload, left in zip(payloads, theirs, strict=True):
        fault = contract(payload, None)
        is_odd = fault is not None and ("UTF-8" in fault or "no branch" in fault or LOWEST in payload)
        assert (fault is None) == (left == 0) or (left == 0 and is_odd), (payload, left, fault)


def test_recursive_types_are_refused_by_both_when_a_query_is_planned(java: SparkAvro) -> None:
    (theirs,) = java.read([(json.dumps(TREE), None, [])])
    assert "Found recursive reference" in theirs.refused
    with pytest.raises(UnsupportedSchema, match="Tree is inside itself: recursive types have no columns"):
        decoder(source(TREE))
