"""Typed columns, the contract of a topic and Java's Avro agree about which bytes can be read, and as what.

Also with a schema that is not the writer's: Java resolves it below Spark's `from_avro`.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.avro.cases import cases, encoded, record_cases, source
from tests.support.spark.avro import SparkAvro

from ottla.columns.avro.decoder import decoder
from ottla.columns.codec import UnsupportedSchema
from ottla.schemas.readable import reader_of

EXAMPLES = int(os.environ.get("OTTLA_AVRO_EXAMPLES", "60"))  # thousands, now and then
slow_data = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=EXAMPLES)


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


NAMES = ["f0", "f1", "g0", "g1"]
PROMOTED = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"]}
PROMOTED.update({"string": ["bytes"], "bytes": ["string"]})
ADDED: list[tuple[Any, Any]] = [
    ("int", 7),
    ("string", "dé"),
    (["null", "long"], None),
    (["long", "null"], -8),
    ({"type": "array", "items": "double"}, [1.5, -0.0]),
    ({"type": "map", "values": ["int", "string"]}, {"k": 5}),
    ("bytes", "\u00ff\u0000"),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001\u0002"),
    ({"type": "long", "logicalType": "timestamp-millis"}, 1_700_000_000_123),
    ("boolean", True),
]


class Evolution:
    """Makes of a writer's schema a reader's that may or may not read it: some changes, anywhere in it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._new = 0
        self._renamed: dict[str, str] = {}

    def record(self, schema: Any) -> Any:
        """The schema at the top stays a record: Spark reads no others."""
        return self._changed(schema)

    def schema(self, schema: Any) -> Any:
        if self._rng.random() < 0.06:
            return self._rng.choice(["int", "string", "double", ["null", "long"], ["null", "int", "string"]])
        made = self._changed(schema)
        if not isinstance(made, list) and self._rng.random() < 0.2:
            others = ["null", "long", "string", {"type": "array", "items": "int"}]
            others = [each for each in others if kind(each) != kind(made)]
            made = [made, *self._rng.sample(others, self._rng.randrange(1, 3))]
            self._rng.shuffle(made)
        return made

    def _changed(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self._union(schema)
        if isinstance(schema, str):
            chosen = self._rng.random() < 0.3
            return self._rng.choice(PROMOTED[schema]) if chosen and schema in PROMOTED else schema
        match schema["type"]:
            case "array":
                return {**schema, "items": self.schema(schema["items"])}
            case "map":
                return {**schema, "values": self.schema(schema["values"])}
            case "record":
                return self._named({**schema, "fields": self._fields(schema["fields"])})
            case "enum":
                return self._named(self._enum(schema))
            case "fixed":
                size = schema["size"] + (self._rng.random() < 0.1)
                return self._named({**schema, "size": size})
            case _:
                return schema

    def _union(self, schema: list[Any]) -> Any:
        branches: list[Any] = []
        for each in schema:
            made = self._changed(each)
            if kind(made) not in map(kind, branches) and self._rng.random() < 0.9:
                branches.append(made)
        self._rng.shuffle(branches)
        if branches in ([], ["null"]):
            return "null"  # Spark reads a union of nothing but null as an empty struct
        return branches if len(branches) != 1 or self._rng.random() < 0.5 else branches[0]

    def _named(self, schema: Any) -> Any:
        match self._rng.randrange(12):
            case 0:
                return {**schema, "name": f"Other{schema['name']}"}
            case 1:
                return {**schema, "name": f"Other{schema['name']}", "aliases": [schema["name"]]}
            case 2:
                return {**schema, "namespace": "space"}
            case 3:
                return {**schema, "namespace": "space", "aliases": [f".{schema['name']}"]}
            case _:
                return schema

    def _enum(self, schema: Any) -> Any:
        symbols = [each for each in schema["symbols"] if self._rng.random() < 0.8] or schema["symbols"][:1]
        symbols += ["NEW"] * (self._rng.random() < 0.3)
        self._rng.shuffle(symbols)
        more = {"default": symbols[0]} if self._rng.random() < 0.4 else {}
        return {**schema, "symbols": symbols, **more}

    def _fields(self, fields: list[Any]) -> list[Any]:
        made = []
        for field in fields:
            changed = {"name": field["name"], "type": self.schema(field["type"])}
            match self._rng.randrange(8):
                case 0:
                    continue
                case 1:
                    made.append({**changed, "name": f"g{len(made)}", "aliases": [field["name"]]})
                case 2:
                    made.append({**changed, "aliases": [self._rng.choice(NAMES)]})
                case _:
                    made.append(changed)
        for _ in range(self._rng.randrange(3)):
            of, default = self._rng.choice(ADDED)
            made.append({"name": f"added{self._new}", "type": of, "default": default})
            self._new += 1
        if self._rng.random() < 0.05:
            made.append({"name": "required", "type": "int"})
        self._rng.shuffle(made)
        return made


def kind(schema: Any) -> str:
    """What must be unique in a union."""
    return str(schema if isinstance(schema, str) else schema.get("name", schema["type"]))


def in_order(value: Any) -> Any:
    """A map's entries have none in Java."""
    if isinstance(value, list):
        made = [in_order(each) for each in value]
        return sorted(made, key=lambda pair: str(pair[0])) if made and isinstance(made[0], tuple) else made
    if isinstance(value, tuple):
        return tuple(in_order(each) for each in value)
    return {name: in_order(each) for name, each in value.items()} if isinstance(value, dict) else value


STRICTER = ("a string is not UTF-8", "cannot be read as", "no decimal of this scale", "does not fit its type")


@slow_data
@given(st.data(), record_cases(3, "N", ["N"]), st.randoms(use_true_random=False))
def test_values_are_resolved_as_by_java(java: SparkAvro, data: st.DataObject, case: Any, rng: Any) -> None:
    payloads = [encoded(case.schema, value) for value in data.draw(st.lists(case.values, min_size=1, max_size=4))]
    readers = [Evolution(rng).record(case.schema) for _ in range(8)]
    texts = [json.dumps(each) for each in (case.schema, *readers)]
    for reader, theirs in zip(readers, java.read([(texts[0], text, payloads) for text in texts[1:]]), strict=True):
        if theirs.refused:
            continue  # two types of one name, say
        ours = decoder(source(case.schema), source(reader)).decode(pa.array(payloads, pa.binary()))
        told = (case.schema, reader, ours.reasons, theirs.errors)
        assert theirs.column is not None and ours.columns.type == theirs.column.type, told
        for row, payload in enumerate(payloads):
            if row in ours.reasons:
                assert row in theirs.errors or any(each in ours.reasons[row] for each in STRICTER), (payload, *told)
            elif "Duplicate field" not in theirs.errors.get(row, ""):  # names before aliases; Java takes neither
                assert row not in theirs.errors, (payload, *told)
                pair = [in_order(each.slice(row, 1).to_pylist()) for each in (ours.columns, theirs.column)]
                assert pair[0] == pair[1], (payload, *told)
