"""Which columns may be written to which Protobuf fields, and how values are converted.

Rules:
- Values do not change: nothing is rounded, scaled, or taken for another unit. A number that does not fit its field is
  an error of its row.
- All pairs that Spark's `to_protobuf` accepts are accepted, unless values would change; integers and floating-point
  numbers may also be written to wider fields (integers to any, if they fit).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor

from ottla.columns.names import sql_name
from ottla.columns.protobuf.types import DURATION, TIMESTAMP, WRAPPERS

Convert = Callable[[Any], Any]

_INTEGERS = {
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_SINT32: "sint32",
    FieldDescriptor.TYPE_SFIXED32: "sfixed32",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_FIXED32: "fixed32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_SINT64: "sint64",
    FieldDescriptor.TYPE_SFIXED64: "sfixed64",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_FIXED64: "fixed64",
}
_OTHERS = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_ENUM: "enum",
}


def refused(field: FieldDescriptor, of: pa.DataType, path: str) -> ValueError:
    """Return the error for a column that cannot be written to a field."""
    hint = ""
    if pa.types.is_timestamp(of) and of.tz is None:
        hint = "; cast it to TIMESTAMP, which says which moment is meant"
    elif pa.types.is_timestamp(of):
        hint = "; say what number is meant (unix_millis, unix_micros), or use google.protobuf.Timestamp in the schema"
    elif pa.types.is_integer(of) and _name(field) in (TIMESTAMP, DURATION):
        hint = "; say what time is meant (timestamp_millis, timestamp_micros)"
    elif pa.types.is_decimal(of) or pa.types.is_floating(of):
        hint = "; cast it to the type that you want to be written"
    return ValueError(f"{path} is {sql_name(of)}; the schema has {_name(field)} there{hint}")


def scalar(field: FieldDescriptor, of: pa.DataType, path: str) -> Convert | None:
    """Return the conversion of a column's values for a field that is no message; None: no conversion. Raises
    ValueError.
    """
    kinds, kind = pa.types, field.type
    if kinds.is_null(of):
        return None
    if kind == FieldDescriptor.TYPE_ENUM:
        if kinds.is_string(of) or kinds.is_large_string(of):
            return _enum_by_name(field)
        if kinds.is_int32(of):
            return _enum_by_number(field)
    elif kind in _INTEGERS:
        if kinds.is_integer(of) or (kinds.is_date32(of) and _INTEGERS[kind].endswith("32")):
            return None
        if (
            kinds.is_decimal(of)
            and of.scale == 0
            and kind in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
        ):
            return int
    elif kind == FieldDescriptor.TYPE_BOOL:
        if kinds.is_boolean(of):
            return None
    elif kind == FieldDescriptor.TYPE_FLOAT:
        if kinds.is_float32(of):
            return None
    elif kind == FieldDescriptor.TYPE_DOUBLE:
        if kinds.is_float32(of) or kinds.is_float64(of):
            return None
    elif kind == FieldDescriptor.TYPE_STRING:
        if kinds.is_string(of) or kinds.is_large_string(of):
            return None
    elif kinds.is_binary(of) or kinds.is_large_binary(of):
        return None
    raise refused(field, of, path)


def _name(field: FieldDescriptor) -> str:
    """Return the type of a field, as a schema names it."""
    if field.message_type is None:
        return _INTEGERS.get(field.type) or _OTHERS[field.type]
    name: str = field.message_type.full_name
    return name if name in (TIMESTAMP, DURATION, *WRAPPERS) else f"the message {name}"


def _enum_by_name(field: FieldDescriptor) -> Convert:
    numbers = {value.name: value.number for value in field.enum_type.values}

    def convert(value: str) -> int:
        number = numbers.get(value)
        if number is None:
            # A number without a name is read as its digits.
            if field.enum_type.is_closed or not value.removeprefix("-").isdecimal():
                raise ValueError(f"{field.full_name} has no value {value!r}")
            number = int(value)
        return number

    return convert


def _enum_by_number(field: FieldDescriptor) -> Convert:
    known = frozenset(value.number for value in field.enum_type.values)

    def convert(value: int) -> int:
        if value not in known:
            raise ValueError(f"{field.full_name} has no value {value}")
        return value

    return convert
