"""Random Protobuf schemas and payloads that no serializer would write, and what the library makes of them.

A payload is made of fields as the schema has them, and of all that may come instead: other wire types, fields that are
there twice, unknown fields and groups, numbers spelt with too many bytes, texts that are not UTF-8, enums' values
that have no name, entries of maps without key or value; then some bytes are changed. Everything follows from a seed.
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf import descriptor_pb2, duration_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

P = descriptor_pb2.FieldDescriptorProto
KNOWN_FILES = (timestamp_pb2, duration_pb2, wrappers_pb2)
WRAPPERS = ("Bool", "Int32", "UInt32", "Int64", "UInt64", "String", "Bytes", "Float", "Double")
KNOWN = ("Timestamp", "Duration", *(f"{name}Value" for name in WRAPPERS))
WRAPPER_NAMES = {f"google.protobuf.{name}Value" for name in WRAPPERS}
VARINTS = (
    P.TYPE_INT64, P.TYPE_UINT64, P.TYPE_INT32, P.TYPE_BOOL, P.TYPE_UINT32, P.TYPE_ENUM, P.TYPE_SINT32, P.TYPE_SINT64,
)  # fmt: skip
EIGHTS = (P.TYPE_DOUBLE, P.TYPE_FIXED64, P.TYPE_SFIXED64)
FOURS = (P.TYPE_FLOAT, P.TYPE_FIXED32, P.TYPE_SFIXED32)
SCALARS = (*VARINTS, *EIGHTS, *FOURS, P.TYPE_STRING, P.TYPE_BYTES)
NOT_KEYS = (P.TYPE_ENUM, P.TYPE_DOUBLE, P.TYPE_FLOAT, P.TYPE_BYTES)
NUMBERS = (1, 2, 3, 4, 5, 15, 16, 17, 2047, 2048, 70_000, 2**29 - 1)
ENUM = {"ZERO": 0, "ONE": 1, "MINUS": -5, "LARGE": 2**31 - 1, "SMALL": -(2**31)}
VARINT, EIGHT, SIZED, GROUP, GROUP_END, FOUR = range(6)
INTERESTING = (0, 1, 2, 3, 127, 128, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 5)
SECONDS_MAX = 9_223_372_036_854  # in microseconds they fit 64 bits
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Case(NamedTuple):
    file: Any
    message: Descriptor
    payloads: list[bytes]


def case(seed: int, payloads: int = 40) -> Case:
    """The schema and payloads of a seed."""
    rng = Random(seed)
    file = _file(rng)
    pool = DescriptorPool()
    for module in KNOWN_FILES:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    message = pool.FindMessageTypeByName("p.M")
    return Case(file, message, [_payload(rng, message) for _ in range(payloads)])


# --- schemas ---


def _file(rng: Random) -> Any:
    syntax = rng.choice(["proto2", "proto3"])
    file = descriptor_pb2.FileDescriptorProto(name="f", package="p", syntax=syntax)
    file.dependency.extend(module.DESCRIPTOR.name for module in KNOWN_FILES)
    enum = file.enum_type.add(name="E")
    for name, number in ENUM.items():
        enum.value.add(name=name, number=number)
    file.message_type.add(name="Empty")
    hollow = file.message_type.add(name="Hollow")  # all of its fields are messages without fields
    hollow.field.add(name="e", number=1, label=P.LABEL_OPTIONAL, type=P.TYPE_MESSAGE, type_name=".p.Empty")
    _fill(rng, file.message_type.add(name="M"), ".p.M", 3, syntax)
    return file


def _fill(rng: Random, message: Any, path: str, depth: int, syntax: str) -> None:
    optional = []
    for number in rng.sample(NUMBERS, rng.randrange(1, 6)):
        field = message.field.add(name=f"f{number}", number=number, label=P.LABEL_OPTIONAL)
        kinds = ["scalar"] * 5 + ["known", "map", "map", "hollow"] + (["message"] * 3 if depth else [])
        kind = rng.choice([*kinds, "group"] if depth and syntax == "proto2" else kinds)
        if kind == "map":
            _map(rng, message, field, path, depth, syntax)
            continue
        _kind(rng, message, field, kind, path, depth, syntax)
        how = rng.choice(["plain", "plain", "repeated", "repeated", "optional", "oneof", "oneof", "required"])
        if how == "repeated":
            field.label = P.LABEL_REPEATED
            if field.type in (*VARINTS, *EIGHTS, *FOURS):
                field.options.packed = rng.random() < 0.5
        elif how == "oneof":
            if not message.oneof_decl:
                message.oneof_decl.add(name="choice")
            field.oneof_index = 0
        elif how == "optional" and syntax == "proto3":
            optional.append(field)
        elif how == "required" and syntax == "proto2" and rng.random() < 0.2:
            field.label = P.LABEL_REQUIRED
        elif syntax == "proto2" and field.type in (P.TYPE_SINT32, P.TYPE_INT64, P.TYPE_UINT64) and rng.random() < 0.5:
            field.default_value = str(rng.choice([5, 2**31 - 1]))
    for field in optional:
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")


def _kind(rng: Random, message: Any, field: Any, kind: str, path: str, depth: int, syntax: str) -> None:
    field.type = P.TYPE_MESSAGE
    if kind in ("message", "group"):
        inner = message.nested_type.add(name=f"N{field.number}" if kind == "message" else f"F{field.number}")
        _fill(rng, inner, f"{path}.{inner.name}", depth - 1, syntax)
        field.type_name = f"{path}.{inner.name}"
        if kind == "group":
            field.type = P.TYPE_GROUP
    elif kind == "known":
        field.type_name = f".google.protobuf.{rng.choice(KNOWN)}"
    elif kind == "hollow":
        field.type_name = rng.choice([".p.Empty", ".p.Hollow"])
    else:
        field.type = rng.choice(SCALARS)
        if field.type == P.TYPE_ENUM:
            field.type_name = ".p.E"


def _map(rng: Random, message: Any, field: Any, path: str, depth: int, syntax: str) -> None:
    entry = message.nested_type.add(name=f"F{field.number}Entry")
    entry.options.map_entry = True
    key_type = rng.choice([each for each in SCALARS if each not in NOT_KEYS])
    entry.field.add(name="key", number=1, label=P.LABEL_OPTIONAL, type=key_type)
    value = entry.field.add(name="value", number=2, label=P.LABEL_OPTIONAL)
    inside = ["scalar", "scalar", "known", "hollow"] + (["message"] if depth else [])
    kind = rng.choice(inside)
    if kind == "message":
        inner = message.nested_type.add(name=f"V{field.number}")
        _fill(rng, inner, f"{path}.{inner.name}", depth - 1, syntax)
        value.type, value.type_name = P.TYPE_MESSAGE, f"{path}.{inner.name}"
    else:
        _kind(rng, message, value, kind, path, depth, syntax)
    field.label, field.type, field.type_name = P.LABEL_REPEATED, P.TYPE_MESSAGE, f"{path}.{entry.name}"


# --- payloads ---


def _payload(rng: Random, message: Descriptor) -> bytes:
    made = bytearray(_message(rng, message, rng.choice([0.0, 0.05, 0.3]), 4))
    if rng.random() < 0.3:
        for _ in range(rng.randrange(1, 4)):
            _mutate(rng, made)
    return bytes(made)


def _mutate(rng: Random, made: bytearray) -> None:
    at = rng.randrange(len(made) + 1)
    kind = rng.randrange(4)
    if kind == 0:
        made[at:at] = rng.randbytes(rng.randrange(1, 3))
    elif kind == 1:
        del made[at : at + rng.randrange(1, 3)]
    elif kind == 2:
        del made[at:]
    elif at < len(made):
        made[at] = rng.choice([0, 1, 8, 0x7F, 0x80, 0xFF, made[at] ^ 1, made[at] ^ 4, rng.randrange(256)])


def _message(rng: Random, message: Descriptor, odd: float, depth: int) -> bytes:
    """Fields of a message in any order. `odd`: how likely each is something that the schema does not say."""
    fields = list(message.fields)
    parts = []
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8])):
        if not fields or rng.random() < odd:
            parts.append(_unknown(rng, rng.choice([*NUMBERS, 9, 19_000]), depth))
            continue
        field = rng.choice(fields)
        if rng.random() < odd:
            parts.append(_unknown(rng, field.number, depth))  # of any wire type
        else:
            parts.append(_field(rng, field, odd, depth))
    if rng.random() < 0.5:
        parts += [_field(rng, field, odd, depth) for field in fields if field.is_required]
    return b"".join(parts)


def varint(rng: Random, value: int, odd: bool = True) -> bytes:
    made = bytearray()
    value &= 2**64 - 1
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    if odd and rng.random() < 0.02:
        made[-1] |= 128
        made += b"\x80" * rng.randrange(9) + bytes([rng.choice([0, 0, 1, 2, 127])])
    return bytes(made)


def _tag(rng: Random, number: int, wire: int) -> bytes:
    return varint(rng, number << 3 | wire, rng.random() < 0.2)


def _sized(rng: Random, data: bytes) -> bytes:
    size = len(data) if rng.random() < 0.99 else rng.choice([len(data) + 1, len(data) - 1, 2**31, 2**63, 2**64 - 1])
    return varint(rng, max(size, 0), rng.random() < 0.2) + data


def _number(rng: Random) -> int:
    return rng.choice([rng.choice(INTERESTING), rng.getrandbits(64), rng.randrange(300), *ENUM.values(), -1, -2, 77])


def _unknown(rng: Random, number: int, depth: int) -> bytes:
    wire = rng.choice([VARINT, EIGHT, SIZED, GROUP, FOUR, VARINT, SIZED, FOUR])
    if rng.random() < 0.03:
        wire = rng.choice([GROUP_END, 6, 7])
    if rng.random() < 0.02:
        number = rng.choice([0, 2**29, 2**29 + 5, 2**32])
    tag = _tag(rng, number, wire)
    if wire == GROUP:
        inner = b"".join(_unknown(rng, rng.choice(NUMBERS), depth - 1) for _ in range(rng.randrange(3) if depth else 0))
        ending = number if rng.random() < 0.95 else rng.choice(NUMBERS)
        return tag + inner + (_tag(rng, ending, GROUP_END) if rng.random() < 0.98 else b"")
    return tag + _raw(rng, wire)


def _raw(rng: Random, wire: int) -> bytes:
    if wire == VARINT:
        return varint(rng, _number(rng))
    if wire in (EIGHT, FOUR):
        return rng.randbytes(8 if wire == EIGHT else 4)
    return _sized(rng, _text(rng)) if wire == SIZED else b""


def _text(rng: Random) -> bytes:
    kind = rng.random()
    if kind < 0.6:
        return rng.choice([b"", b"a", b"key", "ä€😀".encode(), b"0" * 200])
    return rng.randbytes(rng.randrange(9)) if kind < 0.7 else bytes(rng.choices(b"abc", k=rng.randrange(4)))


def _field(rng: Random, field: FieldDescriptor, odd: float, depth: int) -> bytes:
    number = field.number
    if field.type == P.TYPE_GROUP:
        inner = _message(rng, field.message_type, odd, depth - 1)
        ending = number if rng.random() < 0.98 else rng.choice(NUMBERS)
        return _tag(rng, number, GROUP) + inner + _tag(rng, ending, GROUP_END)
    if field.message_type is not None:
        if field.message_type.full_name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            return _tag(rng, number, SIZED) + _sized(rng, _time(rng, odd))
        inner = _message(rng, field.message_type, odd, depth - 1)
        return _tag(rng, number, SIZED) + _sized(rng, inner)
    wire = VARINT if field.type in VARINTS else EIGHT if field.type in EIGHTS else FOUR
    if field.type in (P.TYPE_STRING, P.TYPE_BYTES):
        return _tag(rng, number, SIZED) + _raw(rng, SIZED)
    if field.is_repeated and rng.random() < 0.6:
        packed = b"".join(_raw(rng, wire) for _ in range(rng.randrange(4)))
        if rng.random() < odd:
            packed += rng.randbytes(1)
        return _tag(rng, number, SIZED) + _sized(rng, packed)
    return _tag(rng, number, wire) + _raw(rng, wire)


def _time(rng: Random, odd: float) -> bytes:
    seconds = rng.choice([rng.randrange(-(10**10), 10**10), SECONDS_MAX, -SECONDS_MAX, SECONDS_MAX + 1, _number(rng)])
    nanos = rng.choice([0, 1, -1, 999_999_999, -999_999_999, 775_807_000, 775_808_000, -775_809_000, _number(rng)])
    parts = [b"\x08" + varint(rng, seconds), b"\x10" + varint(rng, nanos)]
    if rng.random() < odd:
        parts.append(_unknown(rng, rng.choice([1, 2, 3]), 1))
    rng.shuffle(parts)
    return b"".join(parts[: rng.randrange(4)])


# --- what the library reads ---


class Unreadable(Exception):
    """The library does not read it, or columns cannot hold it: why."""


def read(message: Descriptor, payload: bytes) -> Any:
    """What the library reads, as columns would show it. Raises Unreadable."""
    made = GetMessageClass(message)()
    try:
        made.ParseFromString(payload)
    except DecodeError as error:
        raise Unreadable(str(error)) from error
    if not made.IsInitialized():
        raise Unreadable("required fields are missing")
    return shown(made)


def shown(message: Message) -> dict[str, Any]:
    """A message as columns show it: those without fields are not there, maps are sorted."""
    made = {}
    for field in message.DESCRIPTOR.fields:
        if is_hollow(field):
            continue
        value = getattr(message, field.name)
        if is_map(field):
            inner = field.message_type.fields_by_number
            entries = [(_one(inner[1], key), _one(inner[2], value[key])) for key in value]
            made[field.name] = sorted(entries, key=repr)
        elif field.is_repeated:
            made[field.name] = [_one(field, each) for each in value]
        elif field.has_presence and not message.HasField(field.name) and not field.has_default_value:
            made[field.name] = None
        else:
            made[field.name] = _one(field, value)
    return made


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def is_hollow(field: FieldDescriptor) -> bool:
    """Whether a field is a message in which there is no value at all."""
    if field.message_type is None:
        return False
    if is_map(field):
        return is_hollow(field.message_type.fields_by_number[2])
    return all(is_hollow(each) for each in field.message_type.fields)


def _one(field: FieldDescriptor, value: Any) -> Any:
    if field.type == P.TYPE_ENUM:
        named = field.enum_type.values_by_number.get(value)
        return str(value) if named is None else named.name
    if field.type == P.TYPE_STRING and isinstance(value, bytes):
        raise Unreadable("a string is not UTF-8")
    if field.type in (P.TYPE_FLOAT, P.TYPE_DOUBLE):
        return struct.pack("<d", value).hex() if value == value else "nan"
    if field.message_type is None:
        return Decimal(value) if field.type in (P.TYPE_UINT64, P.TYPE_FIXED64) else value
    name = field.message_type.full_name
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        nanos = abs(value.nanos) // 1000 * (1 if value.nanos >= 0 else -1)
        micros = value.seconds * 1_000_000 + nanos
        if abs(value.seconds) > SECONDS_MAX or not -(2**63) <= micros < 2**63:
            raise Unreadable("the time does not fit its type")
        return micros
    if name in WRAPPER_NAMES:
        return _one(field.message_type.fields_by_number[1], value.value)
    return shown(value)


def columns_shown(columns: pa.Array, message: Descriptor) -> list[Any]:
    """Rows of columns in the same form."""
    return [None if row is None else _row(message, row) for row in as_numbers(columns).to_pylist()]


def as_numbers(columns: pa.Array) -> pa.Array:
    return columns.cast(_plain(columns.type))


def _plain(of: pa.DataType) -> pa.DataType:
    """Times as numbers: Python has none for most of them."""
    if pa.types.is_timestamp(of) or pa.types.is_duration(of):
        return pa.int64()
    if pa.types.is_date32(of):
        return pa.int32()
    if pa.types.is_struct(of):
        return pa.struct([field.with_type(_plain(field.type)) for field in of])
    if pa.types.is_map(of):
        return pa.map_(of.key_field, of.item_field.with_type(_plain(of.item_type)))
    return pa.list_(of.value_field.with_type(_plain(of.value_type))) if pa.types.is_list(of) else of


def _row(message: Descriptor, row: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for name, value in row.items():
        field = message.fields_by_name[name]
        if value is None:
            made[name] = None
        elif is_map(field):
            inner = field.message_type.fields_by_number
            made[name] = sorted([(_cell(inner[1], key), _cell(inner[2], each)) for key, each in value], key=repr)
        elif field.is_repeated:
            made[name] = [_cell(field, each) for each in value]
        else:
            made[name] = _cell(field, value)
    return made


def _cell(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, float):
        return struct.pack("<d", value).hex() if value == value else "nan"
    return _row(field.message_type, value) if isinstance(value, dict) else value
