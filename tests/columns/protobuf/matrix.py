"""Column types by Protobuf types: what Spark's own `to_protobuf` and `from_protobuf` answer, recorded.

The package spark-protobuf cannot be had for the Scala of our Spark where the tests' packages come from, so a test
cannot ask it (what stands below it, Google's library for Java, is asked by test_java.py). Its answers were recorded
where it could be had, and are kept beside this file:

    python -m tests.columns.protobuf.matrix JAR...      # spark-protobuf and what it needs; writes spark.json
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.message_factory import GetMessageClass

from ottla.schemas.protobuf import parse_protobuf
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.schema import SchemaSource, SchemaType

RECORDED = Path(__file__).parent / "spark.json"
LOCAL = "from values (1) as one(id)"  # answered on the driver, without a job
OPTIONS = {"emit.default.values": "true", "upcast.unsigned.ints": "true", "unwrap.primitive.wrapper.types": "true"}
SCALARS = (
    "int32", "sint32", "sfixed32", "uint32", "fixed32", "int64", "sint64", "sfixed64", "uint64", "fixed64",
    "bool", "float", "double", "string", "bytes",
)  # fmt: skip
WRAPPERS = ("Bool", "Int32", "UInt32", "Int64", "UInt64", "String", "Bytes", "Float", "Double")
FIELDS = {
    **{name: f"{name} f = 1;" for name in SCALARS},
    "enum": "E f = 1;",
    "optional": "optional int32 f = 1;",
    "oneof": "oneof o { int32 f = 1; string g = 2; }",
    "repeated_int32": "repeated int32 f = 1;",
    "repeated_uint32": "repeated uint32 f = 1;",
    "repeated_string": "repeated string f = 1;",
    "repeated_message": "repeated N f = 1;",
    "map": "map<string, int32> f = 1;",
    "map_of_messages": "map<int32, N> f = 1;",
    "map_of_uint64": "map<uint64, uint64> f = 1;",
    "message": "N f = 1;",
    "empty": "Empty f = 1; int32 g = 2;",
    "hollow": "Hollow f = 1; map<string, Empty> h = 3; int32 g = 2;",
    "timestamp": "google.protobuf.Timestamp f = 1;",
    "duration": "google.protobuf.Duration f = 1;",
    "repeated_timestamp": "repeated google.protobuf.Timestamp f = 1;",
    "any": "google.protobuf.Any f = 1;",
    "struct": "google.protobuf.Struct f = 1;",
    "recursive": "recursive f = 1; int32 g = 2;",
    **{f"{name}Value": f"google.protobuf.{name}Value f = 1;" for name in WRAPPERS},
}
IMPORTS = "".join(
    f'import "google/protobuf/{each}.proto"; ' for each in ("timestamp", "duration", "wrappers", "any", "struct")
)
COMMON = "enum E { ZERO = 0; ONE = 1; MINUS = -5; } message N { int32 a = 1; string b = 2; } message Empty {} "
TEXT = (
    f'syntax = "proto3"; package p; {IMPORTS}{COMMON}message Hollow {{ Empty e = 1; }} '
    + "".join(f"message {name} {{ {field} }} " for name, field in FIELDS.items())
)  # fmt: skip
TEXT2 = """syntax = "proto2"; package q; enum E { ONE = 1; TWO = 2; }
message required_int32 { required int32 f = 1; } message default_int32 { optional int32 f = 1 [default = 7]; }
message plain_int32 { optional int32 f = 1; } message closed { optional E f = 1; }
message group { optional group F = 1 { optional int32 a = 1; } }"""
NAMES = [f"p.{name}" for name in FIELDS]
NAMES2 = [f"q.{name}" for name in ("required_int32", "default_int32", "plain_int32", "closed", "group")]


class Column(NamedTuple):
    """A value of a column type: as SQL, as Arrow has it, and as Python."""

    sql: str
    type: pa.DataType
    value: Any


UTC = dt.UTC
N_TYPE = pa.struct([("a", pa.int32()), ("b", pa.string())])
COLUMNS = {
    "boolean": Column("true", pa.bool_(), True),
    "tinyint": Column("5Y", pa.int8(), 5),
    "smallint": Column("300S", pa.int16(), 300),
    "int": Column("70000", pa.int32(), 70_000),
    "int one": Column("1", pa.int32(), 1),
    "int -1": Column("-1", pa.int32(), -1),
    "bigint": Column("1700000000123L", pa.int64(), 1_700_000_000_123),
    "bigint -1": Column("-1L", pa.int64(), -1),
    "bigint small": Column("7L", pa.int64(), 7),
    "float": Column("float(0.5)", pa.float32(), 0.5),
    "double": Column("0.1D", pa.float64(), 0.1),
    "decimal(20,0)": Column("18446744073709551615BD", pa.decimal128(20, 0), Decimal(2**64 - 1)),
    "decimal(20,0) small": Column("cast(12 as decimal(20,0))", pa.decimal128(20, 0), Decimal(12)),
    "decimal(10,2)": Column("cast(12.34 as decimal(10,2))", pa.decimal128(10, 2), Decimal("12.34")),
    "string": Column("'ONE'", pa.string(), "ONE"),
    "string 77": Column("'77'", pa.string(), "77"),
    "binary": Column("X'6162'", pa.binary(), b"ab"),
    "date": Column("date'2024-02-29'", pa.date32(), dt.date(2024, 2, 29)),
    "timestamp": Column(
        "timestamp'2023-11-14 22:13:20.123456'", pa.timestamp("us", "UTC"),
        dt.datetime(2023, 11, 14, 22, 13, 20, 123_456, tzinfo=UTC),
    ),
    "timestamp millis": Column(
        "timestamp'2023-11-14 22:13:20.123'", pa.timestamp("us", "UTC"),
        dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
    ),
    "timestamp 1969": Column(
        "timestamp'1969-12-31 23:59:58.75'", pa.timestamp("us", "UTC"),
        dt.datetime(1969, 12, 31, 23, 59, 58, 750_000, tzinfo=UTC),
    ),
    "timestamp_ntz": Column("timestamp_ntz'2023-11-14'", pa.timestamp("us"), dt.datetime(2023, 11, 14)),
    "interval": Column("interval '03:04.5' minute to second", pa.duration("us"), dt.timedelta(seconds=184.5)),
    "interval days": Column("interval '2 01:00:00' day to second", pa.duration("us"), dt.timedelta(days=2, hours=1)),
    "interval < 0": Column("interval '-00:01.25' minute to second", pa.duration("us"), -dt.timedelta(seconds=1.25)),
    "array<int>": Column("array(1, -2)", pa.list_(pa.int32()), [1, -2]),
    "array<int> null": Column("array(1, null)", pa.list_(pa.int32()), [1, None]),
    "array<string>": Column("array('a', '')", pa.list_(pa.string()), ["a", ""]),
    "array<struct>": Column("array(named_struct('a', 1, 'b', 'x'))", pa.list_(N_TYPE), [{"a": 1, "b": "x"}]),
    "map<string,int>": Column("map('k', 3)", pa.map_(pa.string(), pa.int32()), [("k", 3)]),
    "map<string,int> null": Column("map('k', cast(null as int))", pa.map_(pa.string(), pa.int32()), [("k", None)]),
    "map<int,struct>": Column(
        "map(4, named_struct('a', 1, 'b', 'x'))", pa.map_(pa.int32(), N_TYPE), [(4, {"a": 1, "b": "x"})]
    ),
    "struct": Column("named_struct('a', 1, 'b', 'x')", N_TYPE, {"a": 1, "b": "x"}),
    "struct part": Column("named_struct('a', 1)", pa.struct([("a", pa.int32())]), {"a": 1}),
    "struct more": Column(
        "named_struct('a', 1, 'c', 2)", pa.struct([("a", pa.int32()), ("c", pa.int32())]), {"a": 1, "c": 2}
    ),
    "struct value": Column("named_struct('value', 1)", pa.struct([("value", pa.int32())]), {"value": 1}),
    "null": Column("null", pa.null(), None),
    "int null": Column("cast(null as int)", pa.int32(), None),
}  # fmt: skip


def schema_of(name: str) -> ProtobufSchema:
    return parse_protobuf(SchemaSource(TEXT if name.startswith("p.") else TEXT2, SchemaType.PROTOBUF))


_SCHEMAS = {"p": schema_of("p."), "q": schema_of("q.")}


def descriptor(name: str) -> Descriptor:
    return _SCHEMAS[name[0]].message_descriptor(name)


def payloads(name: str) -> dict[str, bytes]:
    """What is read of a message: nothing, and values that say which type they are taken for."""
    made = {"nothing": b""}
    message = descriptor(name)
    short = name[2:]
    numbers = {
        "0": b"\x08\x00",
        "1": b"\x08\x01",
        "-1": b"\x08" + b"\xff" * 9 + b"\x01",
        "2^31": b"\x08\x80\x80\x80\x80\x08",
    }
    if short in (
        "int32",
        "sint32",
        "uint32",
        "int64",
        "sint64",
        "uint64",
        "bool",
        "enum",
        "optional",
        "oneof",
        "closed",
    ):
        made |= numbers
    elif short in ("sfixed32", "fixed32", "float"):
        made |= {"-1": b"\x0d" + b"\xff" * 3 + b"\xbf", "varint": numbers["1"]}
    elif short in ("sfixed64", "fixed64", "double"):
        made |= {"-1": b"\x09" + b"\xff" * 7 + b"\xbf"}
    elif short in ("string", "bytes", "any"):
        made |= {"text": b"\x0a\x01a", "not utf-8": b"\x0a\x01\xff"}
    elif short.startswith("repeated_") and short != "repeated_message":
        made |= {"one by one": b"\x08\x01\x08\x02", "packed": b"\x0a\x02\x01\x02", "empty": b"\x0a\x00"}
    elif short in ("timestamp", "duration"):
        kind = GetMessageClass(message.fields_by_name["f"].message_type)
        for seconds, nanos in ((0, 0), (1, 999), (-1, 999), (-1, -1500), (0, -999), (10**13, 0), (5, 10**9 * 2)):
            inner = kind(seconds=seconds, nanos=nanos).SerializeToString()
            made[f"{seconds} s {nanos} ns"] = b"\x0a" + bytes([len(inner)]) + inner
    elif short.endswith("Value"):
        wire = {"S": b"\x0a\x01a", "B": b"\x08\x01", "F": b"\x0d\0\0\x80?", "D": b"\x09\0\0\0\0\0\0\xf0?"}
        inner = wire.get(short[0], b"\x08" + b"\xff" * 9 + b"\x01") if short != "BytesValue" else b"\x0a\x01a"
        made |= {"there": b"\x0a\x00", "value": b"\x0a" + bytes([len(inner)]) + inner}
    elif short in ("map", "map_of_messages", "map_of_uint64"):
        entry = {"map": b"\x0a\x01k\x10\x05", "map_of_messages": b"\x08\x04\x12\x02\x08\x01"}.get(
            short, b"\x08\x01\x10\x02"
        )
        one = b"\x0a" + bytes([len(entry)]) + entry
        more = b"\x0a" + bytes([len(entry) + 2]) + entry + b"\x18\x01"
        made |= {"entry": one, "twice": one + one, "empty": b"\x0a\x00", "more": more}
    elif short in ("message", "repeated_message", "empty", "hollow"):
        made |= {"there": b"\x0a\x00", "twice": b"\x0a\x02\x08\x01\x0a\x03\x12\x01x", "other": numbers["1"]}
    elif short == "group":
        made |= {"there": b"\x0b\x08\x05\x0c", "as a message": b"\x0a\x02\x08\x05"}
    return made


def plain(value: Any) -> Any:
    """A value as JSON has it; maps (pairs, in Arrow) as objects."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        value = dict(value)
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dt.datetime | dt.timedelta | dt.date | Decimal):
        return str(value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value)
    return value


def main(jars: list[str]) -> None:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from pyspark.sql.protobuf.functions import from_protobuf, to_protobuf
    from tests.support.spark import sessions as sparks

    session = sparks.start_session(**{"spark.jars": ",".join([sparks.jars(), *jars])})
    sets = {}
    for key, schema in _SCHEMAS.items():
        made = FileDescriptorSet()
        for linked in schema.library.files:
            made.file.add().CopyFrom(linked.descriptor)
        sets[key] = made.SerializeToString()

    def answer(ask: Any) -> Any:
        try:
            return ask()
        except Exception as error:
            text = str(error).split("JVM stacktrace")[0]
            return {"refused": (text.split("[")[1].split("]")[0] if "[" in text else type(error).__name__)}

    written: dict[str, dict[str, str]] = {}
    for name in [*NAMES, *NAMES2]:
        for column, each in COLUMNS.items():
            frame = session.sql(f"select named_struct('f', {each.sql}) as v {LOCAL}")

            def write(frame: Any = frame, name: str = name) -> str:
                (row,) = frame.select(to_protobuf("v", name, binaryDescriptorSet=sets[name[0]])).collect()
                return bytes(row[0]).hex()

            found = answer(write)
            if isinstance(found, str):  # else it was refused
                written.setdefault(name, {})[column] = found
        print(name, flush=True)
    read: dict[str, Any] = {}
    for name in [*NAMES, *NAMES2]:
        of: dict[str, Any] = {}
        for what, payload in payloads(name).items():
            frame = session.sql(f"select X'{payload.hex()}' as v {LOCAL}")

            def take(frame: Any = frame, name: str = name, of: Any = of) -> Any:
                made = frame.select(
                    from_protobuf("v", name, options=OPTIONS, binaryDescriptorSet=sets[name[0]]).alias("v")
                )
                of["type"] = made.schema["v"].dataType.simpleString()
                (row,) = made.collect()
                return plain(row["v"].asDict(recursive=True))

            of[what] = answer(take)
        read[name] = of
    RECORDED.write_text(
        json.dumps({"spark": session.version, "written": written, "read": read}, indent=1, sort_keys=True) + "\n"
    )
    sparks.stop_session(session)


if __name__ == "__main__":
    main(sys.argv[1:])
