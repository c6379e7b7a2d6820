"""Every type of column, every Avro type, values at the edges and random ones: what matrices of writing and reading are
made of. `OTTLA_MATRIX_SEED` asks for other random values, `OTTLA_MATRIX_ROWS` for more of them.
"""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.columns.random_rows import random_rows

_SEED = os.environ.get("OTTLA_MATRIX_SEED", "1")
_ROWS = int(os.environ.get("OTTLA_MATRIX_ROWS", "25"))
_DAY_US = 86_400_000_000
# 0001-01-01, 1582-10-15 and the day before, 1900, 1969, 1970, summer time in Berlin begins, 9999-12-31.
_DAYS = [-719_162, -141_427, -141_428, -25_567, -1, 0, 1, 20_541, 2_932_896, -(2**31), 2**31 - 1]
_MICROS = [
    *(each * _DAY_US for each in _DAYS[:-2]),
    -1,
    -999,
    -1000,
    -1001,
    1,
    999,
    1001,
    1_700_000_000_123_456,
    1_774_746_000_000_001,
    253_402_300_799_999_999,
    -(2**63),
    2**63 - 1,
]


def _integers(bits: int) -> list[int]:
    return [0, 1, -1, 63, 64, -64, -65, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1]


def _decimals(precision: int, scale: int) -> list[Decimal]:
    most = 10**precision - 1
    return [Decimal(f"{each}E-{scale}") for each in (0, 1, -1, most, -most, most // 2, 127, 128, -128, -129)]


_FLOATS = [0.0, -0.0, 1.5, -1.25, float("nan"), float("inf"), float("-inf")]
_STRINGS = ["", "a", "B", "zürich \U0001f600", "x" * 70, "5", "00000000-0000-0000-0000-00000000000f"]
_BYTES = [b"", b"\x01", b"\x80\0", b"\xff" * 12, bytes(range(16))]


def _column(of: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.array([*values, None], of)


def _raw(of: pa.DataType, values: list[int]) -> pa.Array:
    """By the number that is inside, which need not be a moment of Python's."""
    width = pa.int32() if pa.types.is_date32(of) else pa.int64()
    return _column(width, values).cast(of) if of != pa.time64("ns") else _column(width, values).view(of)


_INNER = pa.struct([("x", pa.int32()), ("y", pa.string())])
_MEMBERS = pa.struct([("member0", pa.int32()), ("member1", pa.string())])

# By the names that Spark gives the types. Values at the edges come first, then random ones.
EDGES: dict[str, pa.Array] = {
    "VOID": pa.nulls(2),
    "BOOLEAN": _column(pa.bool_(), [True, False]),
    "TINYINT": _column(pa.int8(), _integers(8)),
    "SMALLINT": _column(pa.int16(), _integers(16)),
    "INT": _column(pa.int32(), _integers(32)),
    "BIGINT": _column(pa.int64(), [*_integers(64), 1_700_000_000_123]),
    "FLOAT": _column(pa.float32(), [*_FLOATS, 3.4028234663852886e38, 1e-45]),
    "DOUBLE": _column(pa.float64(), [*_FLOATS, 1.7976931348623157e308, 5e-324]),
    "DECIMAL(4,2)": _column(pa.decimal128(4, 2), _decimals(4, 2)),
    "DECIMAL(9,2)": _column(pa.decimal128(9, 2), _decimals(9, 2)),
    "DECIMAL(12,3)": _column(pa.decimal128(12, 3), _decimals(12, 3)),
    "DECIMAL(20,0)": _column(pa.decimal128(20, 0), _decimals(20, 0)),
    "DECIMAL(38,9)": _column(pa.decimal128(38, 9), _decimals(38, 9)),
    "STRING": _column(pa.string(), _STRINGS),
    "BINARY": _column(pa.binary(), _BYTES),
    "DATE": _raw(pa.date32(), _DAYS),
    "TIMESTAMP": _raw(pa.timestamp("us", "UTC"), _MICROS),
    "TIMESTAMP in New York": _raw(pa.timestamp("us", "America/New_York"), _MICROS),
    "TIMESTAMP_NTZ": _raw(pa.timestamp("us"), _MICROS),
    "TIME": _raw(pa.time64("ns"), [0, 1, 999, 1000, 1001, 86_399_999_999_999]),
    "INTERVAL DAY TO SECOND": _raw(pa.duration("us"), [*_MICROS]),
    "ARRAY<INT>": _column(pa.list_(pa.int32()), [[], [1, -2], [3, None]]),
    "ARRAY<TIMESTAMP>": _column(pa.list_(pa.timestamp("us", "UTC")), [[], [-1], [1_700_000_000_123_456, None]]),
    "ARRAY<ARRAY<STRING>>": _column(pa.list_(pa.list_(pa.string())), [[], [["a"], []], [["b", None], None]]),
    "MAP<STRING, BIGINT>": _column(pa.map_(pa.string(), pa.int64()), [[], [("k", 1_700_000_000_123)], [("n", None)]]),
    "MAP<INT, STRING>": _column(pa.map_(pa.int32(), pa.string()), [[], [(1, "a")]]),
    "STRUCT<x: INT, y: STRING>": _column(_INNER, [{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 3, "y": None}]),
    "STRUCT<x: INT>": _column(pa.struct([("x", pa.int32())]), [{"x": 1}, {"x": None}]),
    "STRUCT<X: INT>": _column(pa.struct([("X", pa.int32())]), [{"X": 1}, {"X": None}]),
    "STRUCT<member0: INT, member1: STRING>": _column(
        _MEMBERS,
        [
            {"member0": 1, "member1": None},
            {"member0": None, "member1": "a"},
            {"member0": 2, "member1": "b"},
            {"member0": 2**31 - 1, "member1": None},
            {"member0": None, "member1": None},
        ],
    ),
    "STRUCT<member0: STRING, member1: INT>": _column(
        pa.struct([("member0", pa.string()), ("member1", pa.int32())]), [{"member0": "a"}, {"member1": 2**31 - 1}, {}]
    ),
}
COLUMNS = {
    name: pa.concat_arrays([edges, random_rows(edges.type, f"{_SEED} {name}", _ROWS)]) for name, edges in EDGES.items()
}


def _logical(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


def _fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


def _record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)}


_PLAIN = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_ON_LONG = (
    *("timestamp-millis", "timestamp-micros", "timestamp-nanos"),
    *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos", "time-micros", "no-such-type"),
)
_X_INT = {"name": "x", "type": ["null", "int"]}

AVRO: dict[str, Any] = {
    **{each: each for each in _PLAIN},
    **{f"{each} (int)": _logical("int", each) for each in ("date", "time-millis", "no-such-type")},
    **{f"{each} (long)": _logical("long", each) for each in _ON_LONG},
    "date (long)": _logical("long", "date"),
    "interval (long)": {"type": "long", "spark.sql.catalyst.type": "interval day to second"},
    "interval (int)": {"type": "int", "spark.sql.catalyst.type": "interval year to month"},
    "uuid (string)": _logical("string", "uuid"),
    "uuid (fixed)": _fixed(16, logicalType="uuid"),
    "duration (fixed)": _fixed(12, logicalType="duration"),
    "fixed of 1": _fixed(1),
    "enum": {"type": "enum", "name": "E", "symbols": ["a", "B", "C"]},
    **{
        f"decimal({precision},{scale}) (bytes)": _logical("bytes", "decimal", precision=precision, scale=scale)
        for precision, scale in ((4, 2), (9, 2), (12, 3), (20, 0), (38, 9))
    },
    "decimal(9,2) (fixed of 4)": _fixed(4, logicalType="decimal", precision=9, scale=2),
    "decimal(9,2) (fixed of 20)": _fixed(20, logicalType="decimal", precision=9, scale=2),
    "decimal(9,2) (fixed of 2, too few)": _fixed(2, logicalType="decimal", precision=9, scale=2),
    "big-decimal (bytes)": _logical("bytes", "big-decimal"),
    "array of int": {"type": "array", "items": ["null", "int"]},
    "array of int, none null": {"type": "array", "items": "int"},
    "array of long": {"type": "array", "items": ["null", "long"]},
    "array of timestamp-millis": {"type": "array", "items": [_logical("long", "timestamp-millis"), "null"]},
    "array of arrays": {"type": "array", "items": ["null", {"type": "array", "items": ["null", "string"]}]},
    "map of long": {"type": "map", "values": ["long", "null"]},
    "map of timestamp-millis": {"type": "map", "values": ["null", _logical("long", "timestamp-millis")]},
    "map of string": {"type": "map", "values": "string"},
    "record x": _record(_X_INT),
    "record x, y": _record(_X_INT, {"name": "y", "type": ["string", "null"]}),
    "record x, none null": _record({"name": "x", "type": "int"}),
    "record x, optional z": _record({"name": "z", "type": ["null", "long"]}, _X_INT),
    "record x, z with default": _record({"name": "z", "type": "long", "default": 7}, _X_INT),
    "record x, optional z with default": _record({"name": "z", "type": ["long", "null"], "default": 7}, _X_INT),
    "record x, required z": _record({"name": "z", "type": "long"}, _X_INT),
    "null or int": ["null", "int"],
    "int or null": ["int", "null"],
    "null or timestamp-millis": ["null", _logical("long", "timestamp-millis")],
    "null or string": ["null", "string"],
    "one of int": ["int"],
    "int or long": ["int", "long"],
    "null, float or double": ["double", "null", "float"],
    "int or string": ["int", "string"],
    "string, null or int": ["string", "null", "int"],
    "int, null or string": ["int", "null", "string"],
}
TEXTS = {name: json.dumps(each) for name, each in AVRO.items()}
