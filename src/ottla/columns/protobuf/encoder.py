"""Columns → Protobuf payloads, message by message through the library.

Equal values give equal bytes: entries of maps are written in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import EncodeError
from google.protobuf.message_factory import GetMessageClass

from ottla.columns.codec import UnsupportedSchema
from ottla.columns.names import is_variant, sql_name
from ottla.columns.protobuf.fitting import Convert, refused, scalar
from ottla.columns.protobuf.types import DURATION, TIMESTAMP, WRAPPERS, is_map
from ottla.schemas.protobuf import parse_protobuf
from ottla.schemas.schema import SchemaSource

_MICROS = 1_000_000
Fill = Callable[[Any, Any], None]


class ProtobufEncoder:
    """Encodes columns as messages of one type. Null fields are left unset."""

    def __init__(self, message: Descriptor) -> None:
        self._message = message
        self._class = GetMessageClass(message)

    def fits(self, of: pa.DataType) -> None:
        """Raise ValueError if columns of a type cannot be written by this schema."""
        _number_type(of)
        _message_fill(self._message, of, "")

    def encode(self, columns: pa.Array, prefix: bytes = b"") -> pa.Array:
        """See `columns.codec`."""
        fill = _message_fill(self._message, columns.type, "")
        made: list[bytes | None] = []
        for row, value in enumerate(_rows(columns)):
            if value is None:
                made.append(None)
                continue
            message = self._class()
            try:
                fill(message, value)
                made.append(prefix + message.SerializeToString(deterministic=True))
            except (TypeError, ValueError, EncodeError) as error:
                raise ValueError(f"row {row}: {error}") from error
        return pa.array(made, pa.binary())


def _rows(columns: pa.Array) -> list[Any]:
    """Return the rows with times as microseconds and dates as days: exact, and cheaper than Python's own types. Raises
    ValueError.
    """
    if columns.offset:
        columns = pa.concat_arrays([columns])  # pyarrow 26 casts a slice of a struct with a null column wrongly
    plain = columns.cast(_number_type(columns.type))
    try:
        rows: list[Any] = plain.to_pylist()
    except UnicodeDecodeError:
        for row in range(len(plain)):
            try:
                plain[row].as_py()
            except UnicodeDecodeError:
                raise ValueError(f"row {row}: a text is not UTF-8") from None
        raise
    return rows


def _number_type(of: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(of) or pa.types.is_duration(of):
        if of.unit != "us":
            raise UnsupportedSchema(f"{of}: times are in microseconds")
        return pa.int64()
    if pa.types.is_date32(of):
        return pa.int32()
    if pa.types.is_struct(of):
        return pa.struct([field.with_type(_number_type(field.type)) for field in of])
    if pa.types.is_map(of):
        key = of.key_field.with_type(_number_type(of.key_type))
        return pa.map_(key, of.item_field.with_type(_number_type(of.item_type)))
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return pa.list_(of.value_field.with_type(_number_type(of.value_type)))
    return of


def _message_fill(message: Descriptor, of: pa.DataType, path: str) -> Fill:
    """Return the function that sets a message's fields from a dictionary of values. Raises ValueError."""
    if not pa.types.is_struct(of) or is_variant(of):
        there = f"the schema has the message {message.full_name} there"
        raise ValueError(f"{path or 'the value'} is {sql_name(of)}; {there}")
    fills = []
    given: set[str] = set()
    for field in of:
        inner = f"{path}.{field.name}" if path else field.name
        found = _named(message, field.name, inner)
        if found.name in given:
            raise ValueError(f"two columns are {found.full_name} of the schema")
        given.add(found.name)
        fills.append((field.name, _field_fill(found, field.type, inner)))
    for required in message.fields:
        if required.is_required and required.name not in given:
            raise ValueError(f"there is no column for {required.full_name}, which the schema requires")

    def fill(made: Any, value: Any) -> None:
        for name, each in fills:
            if value[name] is not None:
                each(made, value[name])

    return fill


def _named(message: Descriptor, name: str, path: str) -> FieldDescriptor:
    """Return the field of a name; as in Spark, regardless of case if that is unambiguous."""
    found = message.fields_by_name.get(name)
    if found is None:
        alike = [field for field in message.fields if field.name.lower() == name.lower()]
        if len(alike) > 1:
            raise ValueError(f"{path} may be any of {', '.join(field.name for field in alike)} of the schema")
        if not alike:
            raise ValueError(f"the schema has no field {path}")
        found = alike[0]
    return found


def _field_fill(field: FieldDescriptor, of: pa.DataType, path: str) -> Fill:
    name = field.name
    if pa.types.is_null(of):
        return lambda made, value: None
    if is_map(field):
        if not pa.types.is_map(of):
            raise ValueError(f"{path} is {sql_name(of)}; the schema has a map there")
        return _map_fill(field, of, path)
    if field.is_repeated:
        if not (pa.types.is_list(of) or pa.types.is_large_list(of)):
            raise ValueError(f"{path} is {sql_name(of)}; the schema has a repeated field there")
        return _list_fill(field, of, path)
    if field.message_type is not None:
        inner = _inner_fill(field, of, path)

        def fill(made: Any, value: Any) -> None:
            below = getattr(made, name)
            below.SetInParent()
            inner(below, value)

        return fill
    convert = scalar(field, of, path)
    if convert is None:
        return lambda made, value: setattr(made, name, value)
    return lambda made, value: setattr(made, name, convert(value))


def _map_fill(field: FieldDescriptor, of: pa.DataType, path: str) -> Fill:
    key, value = (field.message_type.fields_by_number[number] for number in (1, 2))
    name, to_key = field.name, scalar(key, of.key_type, f"{path}.key") or _same
    if value.message_type is None:
        to_value = scalar(value, of.item_type, f"{path}.value") or _same

        def fill(made: Any, pairs: Any) -> None:
            entries = getattr(made, name)
            for each, held in pairs:
                if held is None:
                    raise ValueError(f"{path} has a null among its values; Protobuf has none there")
                entries[to_key(each)] = to_value(held)

        return fill
    inner = _inner_fill(value, of.item_type, f"{path}.value")

    def fill_messages(made: Any, pairs: Any) -> None:
        entries = getattr(made, name)
        for each, held in pairs:
            if held is None:
                raise ValueError(f"{path} has a null among its values; Protobuf has none there")
            entry = entries[to_key(each)]
            entry.Clear()  # of two entries with one key the last counts
            inner(entry, held)

    return fill_messages


def _list_fill(field: FieldDescriptor, of: pa.DataType, path: str) -> Fill:
    name = field.name
    one: Fill | None = None
    convert: Convert | None = None
    if field.message_type is None:
        convert = scalar(field, of.value_type, path)
    else:
        one = _inner_fill(field, of.value_type, path)

    def fill(made: Any, values: Any) -> None:
        if None in values:
            raise ValueError(f"{path} has a null among its items; Protobuf has none there")
        items = getattr(made, name)
        if one is None:
            items.extend(map(convert, values) if convert is not None else values)
            return
        for value in values:
            one(items.add(), value)

    return fill


def _inner_fill(field: FieldDescriptor, of: pa.DataType, path: str) -> Fill:
    """Return the function that sets a message that is a field, an item or an entry's value."""
    kind = field.message_type.full_name
    if kind == TIMESTAMP:
        if not pa.types.is_timestamp(of) or of.tz is None:
            raise refused(field, of, path)
        return _set_time
    if kind == DURATION:
        if not pa.types.is_duration(of):
            raise refused(field, of, path)
        return _set_span
    if kind in WRAPPERS:
        if pa.types.is_date32(of):
            raise refused(field, of, path)
        convert = scalar(field.message_type.fields_by_number[1], of, path) or _same
        return lambda made, value: setattr(made, "value", convert(value))
    return _message_fill(field.message_type, of, path)


def _same(value: Any) -> Any:
    return value


def _set_time(made: Any, micros: int) -> None:
    made.seconds, rest = divmod(micros, _MICROS)
    made.nanos = rest * 1000


def _set_span(made: Any, micros: int) -> None:
    seconds, rest = divmod(abs(micros), _MICROS)
    sign = -1 if micros < 0 else 1
    made.seconds, made.nanos = sign * seconds, sign * rest * 1000


def _descriptor(schema: SchemaSource, message: str) -> Descriptor:
    try:
        return parse_protobuf(schema).message_descriptor(message or None)
    except KeyError as error:
        raise UnsupportedSchema(str(error.args[0])) from error


def encoder(schema: SchemaSource, message: str = "") -> ProtobufEncoder:
    """Return an encoder of columns as a message of a schema (default: the first one). Raises InvalidSchema,
    UnsupportedSchema.
    """
    return ProtobufEncoder(_descriptor(schema, message))


def message_indexes(schema: SchemaSource, message: str) -> tuple[int, ...]:
    """Return the path to a message in its file."""
    parsed = parse_protobuf(schema)
    return parsed.message_indexes(_descriptor(schema, message).full_name)
