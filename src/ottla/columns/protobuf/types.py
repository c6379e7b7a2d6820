"""Arrow types for Protobuf types: the mapping of Spark's `from_protobuf` with its options `upcast.unsigned.ints`,
`unwrap.primitive.wrapper.types` and `emit.default.values`: unsigned numbers widened, wrappers unwrapped, defaults set.

Rules:
- A field is null if its presence is tracked and it is absent: messages, members of oneofs, `optional` fields, wrappers.
  Other absent fields have their default.
- A message in which there is no value (it has no fields, or only such messages) has no column, and neither has a map
  of such messages.
- Recursive messages have no columns: `outline_of` refuses them.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from ottla.columns.codec import UnsupportedSchema
from ottla.model.limits import COLUMNS_MAX, PROTOBUF_PAYLOAD_DEPTH_MAX

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


class Outline(NamedTuple):
    """Facts about the messages nested in a message that are needed before it gets columns, by their full names.

    `valueless`: there is no value in them, so they have no column. `requiring`: they have required fields, or messages
    that do.
    """

    valueless: frozenset[str]
    requiring: frozenset[str]

    def is_valueless(self, field: FieldDescriptor) -> bool:
        """Return whether a field is a message, or a map of messages, in which there is no value."""
        return field.message_type is not None and field.message_type.full_name in self.valueless


def outline_of(message: Descriptor) -> Outline:
    """Return the outline of a message. Raises UnsupportedSchema if it is recursive or too deeply nested."""
    depths: dict[str, int] = {}
    valueless: set[str] = set()
    requiring: set[str] = set()

    def depth_of(inner: Descriptor, around: tuple[str, ...]) -> int:
        name = inner.full_name
        if name in around:
            path = " > ".join((*around[around.index(name) :], name))
            raise UnsupportedSchema(f"{name} is inside itself ({path}): recursive messages have no columns")
        if name not in depths and len(around) <= PROTOBUF_PAYLOAD_DEPTH_MAX:
            below = [each.message_type for each in inner.fields if each.message_type is not None]
            depths[name] = max((1 + depth_of(each, (*around, name)) for each in below), default=0)
            valued = [inner.fields_by_number[2]] if inner.GetOptions().map_entry else inner.fields
            if all(each.message_type is not None and each.message_type.full_name in valueless for each in valued):
                valueless.add(name)
            if any(each.is_required for each in inner.fields) or any(each.full_name in requiring for each in below):
                requiring.add(name)
        if len(around) + depths.get(name, 0) > PROTOBUF_PAYLOAD_DEPTH_MAX:
            raise UnsupportedSchema(f"there are more than {PROTOBUF_PAYLOAD_DEPTH_MAX} messages in each other")
        return depths[name]

    depth_of(message, ())
    return Outline(frozenset(valueless), frozenset(requiring))


def message_type(message: Descriptor, outline: Outline) -> pa.DataType:
    """Return the struct type of a message. Raises UnsupportedSchema."""
    return _Types(outline).struct(message)


class _Types:
    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._count = 0

    def struct(self, message: Descriptor) -> pa.DataType:
        return pa.struct([self._field(field) for field in message.fields if not self._outline.is_valueless(field)])

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
