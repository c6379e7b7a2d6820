"""Arrow types of Protobuf's: the mapping of Spark's `from_protobuf` with unsigned numbers widened, wrappers unwrapped
and default values given (its options `upcast.unsigned.ints`, `unwrap.primitive.wrapper.types`, `emit.default.values`).

Rules:
- A field is null where the message does not say: unset messages, members of oneofs, `optional` fields, wrappers. Other
  fields have their default.
- Messages without fields have no column; messages inside themselves, and groups, have none that would do.
"""

from __future__ import annotations

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from ottla.columns.codec import UnsupportedSchema
from ottla.model.limits import COLUMNS_MAX

TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Int32", "UInt32", "Int64", "UInt64", "String", "Bytes", "Float", "Double")
)

_SCALARS = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_FIXED64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_ENUM: pa.string(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
}


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map."""
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def is_plain_message(field: FieldDescriptor) -> bool:
    """Whether a field is a message that is a struct, not one of the well-known ones that are values."""
    return field.message_type is not None and field.message_type.full_name not in (TIMESTAMP, DURATION, *WRAPPERS)


def fields_of(message: Descriptor) -> list[FieldDescriptor]:
    """The fields that have columns, in the order of their declaration."""
    if message.GetOptions().map_entry:
        return list(message.fields)
    return [field for field in message.fields if not _is_empty(field)]


def _is_empty(field: FieldDescriptor) -> bool:
    return is_plain_message(field) and not is_map(field) and not field.message_type.fields


def message_type(message: Descriptor) -> pa.DataType:
    """The struct of a message. Raises UnsupportedSchema."""
    return _Types().struct(message)


class _Types:
    def __init__(self) -> None:
        self._open: list[str] = []
        self._count = 0

    def struct(self, message: Descriptor) -> pa.DataType:
        name = message.full_name
        if name in self._open:
            raise UnsupportedSchema(f"{name} is inside itself: recursive types have no columns")
        self._open.append(name)
        made = pa.struct([self._field(field) for field in fields_of(message)])
        self._open.pop()
        return made

    def _field(self, field: FieldDescriptor) -> pa.Field:
        self._count += 1
        if self._count > COLUMNS_MAX:
            raise UnsupportedSchema(f"the schema has more than {COLUMNS_MAX} columns")
        if is_map(field):
            key, value = (field.message_type.fields_by_number[number] for number in (1, 2))
            values = pa.field("value", self._one(value), nullable=False)
            return pa.field(field.name, pa.map_(pa.field("key", self._one(key), nullable=False), values))
        one = self._one(field)
        if field.is_repeated:
            return pa.field(field.name, pa.list_(pa.field("element", one, nullable=False)))
        return pa.field(field.name, one, nullable=not field.is_required)

    def _one(self, field: FieldDescriptor) -> pa.DataType:
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise UnsupportedSchema(f"{field.full_name} is a group: those have no columns")
        if field.message_type is None:
            return _SCALARS[field.type]
        name = field.message_type.full_name
        if name == TIMESTAMP:
            return pa.timestamp("us", tz="UTC")
        if name == DURATION:
            return pa.duration("us")
        if name in WRAPPERS:
            return _SCALARS[field.message_type.fields_by_number[1].type]
        return self.struct(field.message_type)
