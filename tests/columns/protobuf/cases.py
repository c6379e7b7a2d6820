"""Random Protobuf messages with data: what the library writes, and what the columns are to hold."""

from __future__ import annotations

import base64
import datetime as dt
from decimal import Decimal
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, duration_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

from ottla.schemas.schema import SchemaSource, SchemaType

P = descriptor_pb2.FieldDescriptorProto
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
I32, I64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
VALUES: dict[int, st.SearchStrategy[Any]] = {
    P.TYPE_DOUBLE: st.floats(allow_nan=False),
    P.TYPE_FLOAT: st.floats(width=32, allow_nan=False),
    P.TYPE_INT64: I64,
    P.TYPE_UINT64: U64,
    P.TYPE_INT32: I32,
    P.TYPE_FIXED64: U64,
    P.TYPE_FIXED32: U32,
    P.TYPE_BOOL: st.booleans(),
    P.TYPE_STRING: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    P.TYPE_BYTES: st.binary(max_size=8),
    P.TYPE_UINT32: U32,
    P.TYPE_ENUM: st.sampled_from([0, 1, -5, 77, 2**31 - 1]),
    P.TYPE_SFIXED32: I32,
    P.TYPE_SFIXED64: I64,
    P.TYPE_SINT32: I32,
    P.TYPE_SINT64: I64,
}
KEYS = [P.TYPE_INT32, P.TYPE_STRING, P.TYPE_BOOL, P.TYPE_UINT64, P.TYPE_SINT64]
KNOWN = [
    "Timestamp", "Duration", "BoolValue", "Int32Value", "UInt64Value", "StringValue", "BytesValue", "DoubleValue",
]  # fmt: skip
WRAPPED = {"BoolValue": P.TYPE_BOOL, "Int32Value": P.TYPE_INT32, "UInt64Value": P.TYPE_UINT64,
           "StringValue": P.TYPE_STRING, "BytesValue": P.TYPE_BYTES, "DoubleValue": P.TYPE_DOUBLE}  # fmt: skip


class Case(NamedTuple):
    source: SchemaSource
    message: Descriptor


@st.composite
def files(draw: st.DrawFn) -> Case:
    file = descriptor_pb2.FileDescriptorProto(name="default", package="p", syntax="proto3")
    for module in (timestamp_pb2, duration_pb2, wrappers_pb2):
        file.dependency.append(module.DESCRIPTOR.name)
    enum = file.enum_type.add(name="E")
    for name, number in (("ZERO", 0), ("ONE", 1), ("MINUS", -5)):
        enum.value.add(name=name, number=number)
    fill(draw, file.message_type.add(name="M"), ".p.M", 2)
    pool = DescriptorPool()
    for module in (timestamp_pb2, duration_pb2, wrappers_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    text = base64.b64encode(file.SerializeToString()).decode()
    return Case(SchemaSource(text, SchemaType.PROTOBUF), pool.FindMessageTypeByName("p.M"))


def fill(draw: st.DrawFn, message: Any, path: str, depth: int) -> None:
    numbers = draw(st.lists(st.sampled_from([1, 2, 3, 15, 16, 300, 70_000]), max_size=5, unique=True))
    optional = []
    for number in numbers:
        field = message.field.add(name=f"f{number}", number=number, label=P.LABEL_OPTIONAL)
        kind = draw(st.sampled_from(["scalar"] * 4 + ["known", "map"] + (["message"] * 2 if depth else [])))
        if kind == "map":
            add_map(draw, message, field, path)
            continue
        if kind == "message":
            inner = message.nested_type.add(name=f"N{number}")
            inner.field.add(name="always", number=9, label=P.LABEL_OPTIONAL, type=P.TYPE_INT32)
            fill(draw, inner, f"{path}.N{number}", depth - 1)
            field.type, field.type_name = P.TYPE_MESSAGE, f"{path}.N{number}"
        elif kind == "known":
            field.type, field.type_name = P.TYPE_MESSAGE, f".google.protobuf.{draw(st.sampled_from(KNOWN))}"
        else:
            set_scalar(field, draw(st.sampled_from(list(VALUES))))
        how = draw(st.sampled_from(["plain", "plain", "repeated", "optional", "oneof"]))
        if how == "repeated":
            field.label = P.LABEL_REPEATED
            if kind == "scalar" and field.type not in (P.TYPE_STRING, P.TYPE_BYTES):
                field.options.packed = draw(st.booleans())
        elif how == "oneof":
            if not message.oneof_decl:
                message.oneof_decl.add(name="choice")
            field.oneof_index = 0
        elif how == "optional":
            optional.append(field)
    for field in optional:
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")


def set_scalar(field: Any, kind: int) -> None:
    field.type = kind
    if kind == P.TYPE_ENUM:
        field.type_name = ".p.E"


def add_map(draw: st.DrawFn, message: Any, field: Any, path: str) -> None:
    entry = message.nested_type.add(name=f"F{field.number}Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=P.LABEL_OPTIONAL, type=draw(st.sampled_from(KEYS)))
    value = entry.field.add(name="value", number=2, label=P.LABEL_OPTIONAL)
    if draw(st.booleans()):
        set_scalar(value, draw(st.sampled_from(list(VALUES))))
    else:
        value.type, value.type_name = P.TYPE_MESSAGE, f".google.protobuf.{draw(st.sampled_from(KNOWN[:2]))}"
    field.label, field.type, field.type_name = P.LABEL_REPEATED, P.TYPE_MESSAGE, f"{path}.{entry.name}"


def messages(draw: Any, descriptor: Descriptor) -> Message:
    made = GetMessageClass(descriptor)()
    for field in descriptor.fields:
        if draw(st.integers(0, 3)) == 0:
            continue
        if is_map(field):
            for _ in range(draw(st.integers(0, 2))):
                key = draw(VALUES[field.message_type.fields_by_name["key"].type])
                value = field.message_type.fields_by_name["value"]
                if value.message_type is None:
                    getattr(made, field.name)[key] = draw(VALUES[value.type])
                else:
                    getattr(made, field.name)[key].CopyFrom(one(draw, value))
        elif field.is_repeated:
            for _ in range(draw(st.integers(0, 3))):
                getattr(made, field.name).append(one(draw, field))
        elif field.message_type is not None:
            getattr(made, field.name).CopyFrom(one(draw, field))
        else:
            setattr(made, field.name, one(draw, field))
    return made


def one(draw: Any, field: FieldDescriptor) -> Any:
    if field.message_type is None:
        return draw(VALUES[field.type])
    if field.message_type.name in ("Timestamp", "Duration"):
        made = GetMessageClass(field.message_type)()
        made.seconds, made.nanos = draw(st.integers(-(10**9), 10**10)), draw(st.integers(0, 999_999)) * 1000
        if field.message_type.name == "Duration" and made.seconds < 0:
            made.nanos = -made.nanos  # both have the same sign
        return made
    return messages(draw, field.message_type)


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def shown(message: Message) -> dict[str, Any]:
    made = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if is_map(field):
            inner = field.message_type.fields_by_number
            made[field.name] = [(show(inner[1], key), show(inner[2], value[key])) for key in value]
        elif field.is_repeated:
            made[field.name] = [show(field, each) for each in value]
        elif field.has_presence and not message.HasField(field.name):
            made[field.name] = None
        else:
            made[field.name] = show(field, value)
    return made


def show(field: FieldDescriptor, value: Any) -> Any:
    if field.type == P.TYPE_ENUM:
        return {0: "ZERO", 1: "ONE", -5: "MINUS"}.get(value, str(value))
    if field.message_type is None:
        return Decimal(value) if field.type in (P.TYPE_UINT64, P.TYPE_FIXED64) else value
    name = field.message_type.name
    if name == "Timestamp":
        return EPOCH + dt.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if name == "Duration":
        return dt.timedelta(seconds=value.seconds, microseconds=value.nanos / 1000)
    if name in WRAPPED:
        return show(field.message_type.fields_by_number[1], value.value)
    return shown(value)
