"""JSON of ours and of Spark's own functions: where `to_json` and `from_json` differ, a table says why; and bad records.

What is compared is what Spark 4 does with its default options, in UTC.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.columns.json.texts import NUMBERS, OTHERS, STRINGS, source
from tests.spark.reading import fresh
from tests.support.processes.node import OttlaNode

from ottla.client.blocking.blocking import Blocking
from ottla.columns.json.decoder import decoder
from ottla.columns.json.derive import derive_json
from ottla.columns.json.encoder import JsonMismatch, encoder

pytestmark = [pytest.mark.spark]

AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
ODD = 'a"\\\n\x01é/😀\u2028'
COLUMNS: dict[str, pa.Array] = {
    "flag": pa.array([True, False, None]),
    "tiny": pa.array([1, -128, None], pa.int8()),
    "small": pa.array([1, 2, None], pa.int16()),
    "int": pa.array([1, 2, None], pa.int32()),
    "long": pa.array([2**63 - 1, -(2**63), None]),
    "float": pa.array([0.1, 1e20, None], pa.float32()),
    "double": pa.array([0.1, 1e22, None]),
    "decimal": pa.array([Decimal("1.50"), Decimal("-0.01"), None], pa.decimal128(12, 2)),
    "fine": pa.array([Decimal("1E-18"), Decimal(3), None], pa.decimal128(38, 18)),
    "text": pa.array([ODD, "", None]),
    "raw": pa.array([b"\0\xff", b"", None]),
    "day": pa.array([AT.date(), dt.date(1, 1, 1), None]),
    "at": pa.array([AT, AT.replace(microsecond=0), None], pa.timestamp("us", "UTC")),
    "local": pa.array([AT.replace(tzinfo=None), None, None], pa.timestamp("us")),
    "tags": pa.array([["a", None], [], None], pa.list_(pa.string())),
    "nested": pa.array([[[1], None, []], [], None], pa.list_(pa.list_(pa.int32()))),
    "counts": pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int32())),
    "by_int": pa.array([[(1, 1)], [], None], pa.map_(pa.int32(), pa.int32())),
    "by_flag": pa.array([[(True, 1)], [], None], pa.map_(pa.bool_(), pa.int32())),
    "by_decimal": pa.array([[(Decimal("1.50"), 1)], [], None], pa.map_(pa.decimal128(9, 2), pa.int32())),
    "by_day": pa.array([[(AT.date(), 1)], [], None], pa.map_(pa.date32(), pa.int32())),
    "by_at": pa.array([[(AT, 1)], [], None], pa.map_(pa.timestamp("us", "UTC"), pa.int32())),
    "by_raw": pa.array([[(b"\0", 1)], [], None], pa.map_(pa.binary(), pa.int32())),
    "by_double": pa.array([[(1.0, 1)], [], None], pa.map_(pa.float64(), pa.int32())),
    "inner": pa.array([{"x": 1.5, "y": None}, {}, None], pa.struct([("x", pa.float32()), ("y", pa.string())])),
    "inners": pa.array([[{"x": 1.5}, None], [], None], pa.list_(pa.struct([("x", pa.float32()), ("y", pa.string())]))),
    "odd": pa.array([float("nan"), float("inf"), None]),
}
WRITTEN_OTHERWISE = {
    "at": "Spark cuts microseconds off",
    "local": "Spark cuts microseconds off, and calls it UTC",
    "by_day": "Spark writes the days since 1970",
    "by_at": "Spark writes the microseconds since 1970",
    "by_raw": "Spark writes Java's name of the array",
    "by_double": "Spark writes 1.0, we write 1",
    "odd": "Spark writes strings 'NaN' and 'Infinity', which are read as strings; we refuse",
}


def test_what_to_json_writes(spark: Any) -> None:
    from pyspark.sql import functions as F

    frame = spark.createDataFrame(pa.table(COLUMNS))
    theirs = frame.select([F.to_json(F.struct(name)).alias(name) for name in COLUMNS]).collect()
    differing = {}
    for name, column in COLUMNS.items():
        array = pa.StructArray.from_arrays([column], names=[name])
        try:
            ours = encoder(derive_json(array.type, "T")).encode(array).to_pylist()
        except JsonMismatch as error:
            ours = [json.dumps(str(error))] * len(column)
        pairs = [(exact(mine), exact(row[name])) for mine, row in zip(ours, theirs, strict=True)]
        if any(mine != other for mine, other in pairs):
            differing[name] = pairs
    assert sorted(differing) == sorted(WRITTEN_OTHERWISE), differing


def exact(text: Any) -> Any:
    return json.loads(text, parse_float=Decimal)


PROPERTIES: dict[str, tuple[Any, str]] = {
    "id": ({"type": "integer"}, "BIGINT"),
    "x": ({"type": "number"}, "DOUBLE"),
    "ok": ({"type": "boolean"}, "BOOLEAN"),
    "s": ({"type": "string"}, "STRING"),
    "at": ({"type": "string", "format": "date-time"}, "TIMESTAMP"),
    "day": ({"type": "string", "format": "date"}, "DATE"),
    "raw": ({"type": "string", "contentEncoding": "base64"}, "BINARY"),
}
WHOLE = [
    '{"id":1,"id":2}', '{"id":2,"id":null}', '{"id":1} {"id":2}', '{"id":1}x', '\ufeff{"id":1}', ' {"id":1}\n',
    '{"id":1,}', '//\n{"id":1}', '{"id":1', '{id:1}', '{"ID":1}', '{"id":1,"more":{"a":[1]}}', '{"id":1,"s":2}',
]  # fmt: skip
BAD = "bad"
Case = Callable[[str, str, Any, Any], bool]
# Field, text, what we read, what Spark reads. Spark makes null of what it cannot read; we call the record bad.
READ_OTHERWISE: dict[str, Case] = {
    "a record with a bad field is bad as a whole": lambda field, text, ours, theirs: (
        text == '{"id":1,"s":2}' and (ours, theirs) == (BAD, 1)
    ),
    "nothing stands behind the value": lambda field, text, ours, theirs: (
        text in ('{"id":1} {"id":2}', '{"id":1}x') and (ours, theirs) == (BAD, 1)
    ),
    "a whole number may have a fraction of zero, or an exponent": lambda field, text, ours, theirs: (
        field == "id" and theirs is None and isinstance(ours, int) and not text.lstrip("-").isdigit()
    ),
    "NaN and Infinity are no JSON, and no double is infinite": lambda field, text, ours, theirs: (
        field == "x" and ours == BAD and str(theirs) in ("nan", "inf", "-inf")
    ),
    "a number, a boolean, an array or an object is no string": lambda field, text, ours, theirs: (
        field == "s" and ours == BAD and text[0] not in "\"'" and theirs is not None
    ),
    "half of a surrogate pair is no character (Spark: ?)": lambda field, text, ours, theirs: (
        field == "s" and ours == BAD and text.lower().startswith('"\\ud') and "?" in str(theirs)
    ),
    "strings have double quotes": lambda field, text, ours, theirs: text[0] == "'" and ours == BAD,
    "a number is no time (Spark: seconds, which may overflow)": lambda field, text, ours, theirs: (
        field == "at" and ours == BAD and text.lstrip("-").isdigit()
    ),
    "times have the form of RFC 3339, in years 1 to 9999 (Spark: blanks, single digits, no minutes)": (
        lambda field, text, ours, theirs: field == "at" and ours == BAD and text[0] == '"'
    ),
    "t and z may be small, zones up to 23:59, and UTC before year 1 or after 9999": lambda field, text, ours, theirs: (
        field == "at" and theirs is None and re.search(r"z\"|-23|\+23", text) is not None
    ),
    "a date is YYYY-MM-DD and nothing else (Spark: cut off, single digits, days since 1970)": (
        lambda field, text, ours, theirs: field == "day" and ours == BAD and theirs is not None
    ),
    "base64 has no other characters in it (Spark: are passed over)": lambda field, text, ours, theirs: (
        field == "raw" and ours == BAD and theirs is not None
    ),
}


def test_what_from_json_reads(spark: Any) -> None:
    from pyspark.sql import functions as F

    spelt = [each for each in NUMBERS + STRINGS + OTHERS if len(each) < 600]
    cases = [(name, text, f'{{"{name}":{text}}}') for name in PROPERTIES for text in spelt]
    cases += [("id", text, text) for text in WHOLE]
    types = ", ".join(f"{name} {of}" for name, (_, of) in PROPERTIES.items())
    frame = spark.createDataFrame([(row, case[2]) for row, case in enumerate(cases)], "row INT, text STRING")
    fields = [f"cast(v.{name} as string)" if name in ("at", "day") else f"v.{name}" for name in PROPERTIES]
    read = frame.select("row", F.from_json("text", types).alias("v")).selectExpr("row", *fields)
    theirs = {row[0]: row[1:] for row in read.collect()}
    made = decoder(source({"type": "object", "properties": {name: each for name, (each, _) in PROPERTIES.items()}}))
    decoded = made.decode(pa.array([case[2].encode() for case in cases], pa.binary()))
    columns = {name: decoded.columns.field(index) for index, name in enumerate(PROPERTIES)}
    used: set[str] = set()
    unexplained: list[Any] = []
    for row, (name, text, _) in enumerate(cases):
        field = list(PROPERTIES).index(name)
        ours, other = BAD if row in decoded.reasons else told(columns[name][row]), told(theirs[row][field])
        if ours == other or (ours == BAD and other is None):
            continue
        why = [reason for reason, holds in READ_OTHERWISE.items() if holds(name, text, ours, other)]
        used.update(why[:1])
        unexplained += [] if why else [(name, text, ours, other)]
    assert not unexplained
    assert used == set(READ_OTHERWISE), "the table says more than there is"


def told(value: Any) -> Any:
    """A value as Spark's and Arrow's Python agree to show it; times as text."""
    if isinstance(value, pa.TimestampScalar) and value.value is not None:
        if not -62_135_596_800_000_000 <= value.value < 253_402_300_800_000_000:
            return "outside of Python's years"
        shown = str(dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value.value))
        return shown.rstrip("0") if "." in shown else shown
    if isinstance(value, pa.Scalar):
        value = str(value) if isinstance(value, pa.Date32Scalar) and value.is_valid else value.as_py()
    return bytes(value) if isinstance(value, bytearray) else value


SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}, "a": {"type": "string"}, "x": {"type": "number"}}}
RECORDS = [
    b'{"id":0,"a":"x"}', b'{"id":1,"a":"\\ud800"}', b'{"id":2,"x":NaN}', b"{", None, b'{"id":5,"x":1e400}', b'{"id":6}',
]  # fmt: skip


def test_bad_json_in_every_mode_of_a_real_query(spark: Any, node: OttlaNode) -> None:
    topic = fresh("bad-json")
    with Blocking(node.bootstrap) as client:
        for record in RECORDS:
            client.post(topic, record)
        client.flush()

    def read(mode: str) -> Any:
        given = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "value.format": "json", "on.bad": mode}
        more = {"value.schema": json.dumps(SCHEMA)} | ({"dlq.topic": f"{topic}-dead"} if mode == "dlq" else {})
        columns = ["offset", "value.id", "_corrupt.reason" if mode == "corrupt" else "cast(null as string) as reason"]
        frame = spark.read.format("ottla").options(**given, **more).load()
        return frame.selectExpr(f"'{mode}' as mode", *columns)

    found = read("null").union(read("corrupt")).union(read("dlq")).collect()
    by_mode = {
        mode: sorted((row.offset, row.id) for row in found if row.mode == mode) for mode in ("null", "corrupt", "dlq")
    }
    good = [(0, 0), (4, None), (6, 6)]
    assert by_mode["dlq"] == good
    assert by_mode["null"] == by_mode["corrupt"] == sorted([*good, (1, None), (2, None), (3, None), (5, None)])
    reasons = {row.offset: row.reason for row in found if row.reason is not None}
    assert [reasons.pop(offset) for offset in (1, 2, 5)] == [
        "value: this is not JSON: a string holds half of a surrogate pair",
        "value: this is not JSON: NaN is no JSON",
        "value: x is too large",
    ]
    assert list(reasons) == [3]
    with Blocking(node.bootstrap) as client:
        assert sorted(dict(each.headers)["ottla.dlq.offset"] for each in client.read(f"{topic}-dead")) == [
            b"1", b"2", b"3", b"5",
        ]  # fmt: skip
    with pytest.raises(Exception, match=f"offset 1 of {topic}-0 does not decode: value: this is not JSON: a string"):
        read("fail").collect()
