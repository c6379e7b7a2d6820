"""Every column type into every Protobuf type, and every Protobuf type as columns: as Spark's own functions do it, or
for a reason that is listed here. A difference that appears, or is no more, fails: the numbers say how many there are.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from tests.columns.protobuf.matrix import COLUMNS, NAMES, NAMES2, RECORDED, descriptor, payloads, plain

from ottla.columns.codec import UnsupportedSchema
from ottla.columns.names import sql_name
from ottla.columns.protobuf.decoder import ProtobufDecoder
from ottla.columns.protobuf.encoder import ProtobufEncoder

SPARK = json.loads(RECORDED.read_text())
REFUSED = "refused"

WRITTEN_OTHERWISE = {
    "wider: integers go into any integer field that holds them, FLOAT into double": 58,
    "wrapped: Spark makes another number of one that the field does not hold, here it is an error": 9,
    "decimal: DECIMAL(20, 0) goes into all that is read as one, and none with decimal places into an integer": 6,
    "enum: a number without a name is written as it was read": 1,
    "null: no null in an array or map, or for a required field, becomes a 0 or goes unnoticed": 12,
    "another time: only google.protobuf.Timestamp and Duration are times": 102,
    "exact: microseconds are kept, and nanoseconds are never negative": 2,
    "wrapper: a wrapper is a value, not a STRUCT": 2,
}
READ_OTHERWISE = {
    "unsigned: fixed32 and fixed64 are unsigned, too": 5,
    "unnamed: an enum's number without a name is its digits": 2,
    "unknown: a field of another wire type, and a number that a closed enum does not have, are unknown fields": 13,
    "entry: an entry of a map with more than key and value is unknown": 3,
}


def written(name: str, column: str) -> str:
    each = COLUMNS[column]
    of = pa.struct([("f", each.type)])
    encoder = ProtobufEncoder(descriptor(name))
    try:
        encoder.fits(of)
        (payload,) = encoder.encode(pa.array([{"f": each.value}], of)).to_pylist()
    except ValueError:
        return REFUSED
    return str(payload.hex())


def why_written(name: str, column: str, ours: str, theirs: str) -> str:
    """Which of the reasons a difference has."""
    kind = column.split(" ")[0]
    short = name[2:]
    if column.endswith("null"):
        return "null"
    if kind in ("timestamp", "interval"):
        return "exact" if short == "timestamp" and kind == "timestamp" else "another time"
    if kind == "struct":
        return "wrapper" if short.endswith("Value") else "?"
    if kind.startswith("decimal"):
        return "decimal"
    if kind == "string":
        return "enum"
    if ours == REFUSED and "int" in kind and short.lower().removeprefix("repeated_").startswith(("uint", "fixed")):
        return "wrapped"
    return "wider" if theirs == REFUSED and kind in ("tinyint", "smallint", "int", "bigint", "float") else "?"


def counted(found: Counter[str], told: dict[str, int]) -> dict[str, int]:
    return {reason: found.get(reason.split(":")[0], 0) for reason in told} | {"?": found.get("?", 0)}


def test_what_is_written() -> None:
    found: Counter[str] = Counter()
    for name in [*NAMES, *NAMES2]:
        for column in COLUMNS:
            theirs = SPARK["written"].get(name, {}).get(column, REFUSED)
            ours = written(name, column)
            if ours != theirs:
                found[why_written(name, column, ours, theirs)] += 1
                assert why_written(name, column, ours, theirs) != "?", (name, column, ours, theirs)
    assert counted(found, WRITTEN_OTHERWISE) == WRITTEN_OTHERWISE | {"?": 0}


def simple(of: pa.DataType) -> str:
    """A type as Spark's `simpleString` says it."""
    return sql_name(of).lower().replace(": ", ":").replace(", ", ",")


def why_read(name: str, what: str, ours: Any, theirs: Any) -> str:
    if name in ("p.fixed32", "p.fixed64") and theirs != REFUSED:
        return "unsigned"
    if name == "p.enum" and str(theirs["f"]).startswith("UNKNOWN_ENUM_VALUE_E_"):
        return "unnamed"
    if theirs == REFUSED and ours == plain_default(name):
        return "unknown"
    return "entry" if what == "more" and not ours["f"] else "?"


def plain_default(name: str) -> Any:
    return plain(ProtobufDecoder(descriptor(name)).decode(pa.array([b""])).columns.to_pylist()[0])


def test_what_is_read() -> None:
    found: Counter[str] = Counter()
    for name in [*NAMES, *NAMES2]:
        theirs = SPARK["read"][name]
        if "type" not in theirs:
            with pytest.raises(UnsupportedSchema, match="recursive messages have no columns"):
                ProtobufDecoder(descriptor(name))
            assert theirs["nothing"] == {"refused": "RECURSIVE_PROTOBUF_SCHEMA"}
            continue
        decoder = ProtobufDecoder(descriptor(name))
        if simple(decoder.type) != theirs["type"]:
            found["unsigned"] += 1
            assert name in ("p.fixed32", "p.fixed64"), (name, simple(decoder.type), theirs["type"])
        for what, payload in payloads(name).items():
            decoded = decoder.decode(pa.array([payload], pa.binary()))
            ours = REFUSED if decoded.reasons else plain(decoded.columns.to_pylist()[0])
            them = REFUSED if isinstance(theirs[what], dict) and REFUSED in theirs[what] else theirs[what]
            if ours != them and not (ours == {"f": []} and them == {"f": {}}):
                found[why_read(name, what, ours, them)] += 1
                assert why_read(name, what, ours, them) != "?", (name, what, ours, them)
    assert counted(found, READ_OTHERWISE) == READ_OTHERWISE | {"?": 0}
