"""From a message's descriptor to tables: the column of each field, and its value when it is absent."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from ottla.columns.loops import frozen_bytes
from ottla.columns.protobuf import ops
from ottla.columns.protobuf.ops import MessagePlan, Tables
from ottla.columns.protobuf.types import DURATION, TIMESTAMP, WRAPPERS, Outline, is_map
from ottla.columns.shape import OutputColumn
from ottla.wire.varint import uvarint_bytes, zigzag_bytes

KINDS = {
    FieldDescriptor.TYPE_DOUBLE: ops.DOUBLE,
    FieldDescriptor.TYPE_FLOAT: ops.FLOAT,
    FieldDescriptor.TYPE_INT64: ops.INT64,
    FieldDescriptor.TYPE_UINT64: ops.UINT64,
    FieldDescriptor.TYPE_INT32: ops.INT32,
    FieldDescriptor.TYPE_FIXED64: ops.FIXED64,
    FieldDescriptor.TYPE_FIXED32: ops.FIXED32,
    FieldDescriptor.TYPE_BOOL: ops.BOOL,
    FieldDescriptor.TYPE_STRING: ops.STRING,
    FieldDescriptor.TYPE_BYTES: ops.BYTES,
    FieldDescriptor.TYPE_UINT32: ops.UINT32,
    FieldDescriptor.TYPE_ENUM: ops.ENUM,
    FieldDescriptor.TYPE_SFIXED32: ops.SFIXED32,
    FieldDescriptor.TYPE_SFIXED64: ops.SFIXED64,
    FieldDescriptor.TYPE_SINT32: ops.SINT32,
    FieldDescriptor.TYPE_SINT64: ops.SINT64,
}


def kind_of(field: FieldDescriptor) -> tuple[int, FieldDescriptor]:
    """Return the kind of a field's values, and the field that holds them: for wrappers the one inside."""
    if field.message_type is None:
        return KINDS[field.type], field
    name = field.message_type.full_name
    if name == TIMESTAMP:
        return ops.MOMENT, field
    if name == DURATION:
        return ops.SPAN, field
    if name in WRAPPERS:
        inner = field.message_type.fields_by_number[1]
        return KINDS[inner.type], inner
    return ops.MESSAGE, field


def make_plan(message: Descriptor, root: OutputColumn, outline: Outline) -> MessagePlan:
    """Return the tables that read a message into columns."""
    planner = _Planner(outline)
    planner.message(message, root.below, 0)
    tables = Tables(
        np.array(planner.messages, np.int64).reshape(-1, ops.MESSAGE_COLUMNS),
        np.array([row for rows in planner.fields for row in rows], np.int64).reshape(-1, ops.FIELD_COLUMNS),
        np.array(planner.symbols, np.int64).reshape(-1, 3),
        frozen_bytes(bytes(planner.constants)),
    )
    width = max(row[ops.COUNT] for row in planner.messages)
    return MessagePlan(tables, width, planner.depth, bool(tables.fields[:, ops.MAP].any()))


class _Planner:
    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self.messages: list[list[int]] = []
        self.fields: list[list[list[int]]] = []
        self.symbols: list[tuple[int, int, int]] = []
        self.constants = bytearray(bytes(16))  # zero, of every kind
        self.depth = 0
        self._rows = 0

    def message(self, message: Descriptor, columns: tuple[OutputColumn, ...], depth: int) -> int:
        self.depth = max(self.depth, depth + 1)
        number = len(self.messages)
        left = iter(columns)
        paired = [(field, None if self._outline.is_valueless(field) else next(left)) for field in message.fields]
        paired += [(field, None) for field in message.file.pool.FindAllExtensions(message) if _can_be_bad(field)]
        self.messages.append([self._rows, len(paired), int(message.GetOptions().map_entry)])
        self._rows += len(paired)
        self.fields.append([])
        for field, column in sorted(paired, key=lambda pair: pair[0].number):
            row = self._valueless(field) if column is None else self._field(field, column, depth, message)
            row[ops.NEEDS_CHECK] = int(row[ops.CLOSED] == 1 or row[ops.KIND] == ops.VALUELESS or row[ops.ONEOF] >= 0)
            self.fields[number].append(row)
        return number

    def _valueless(self, field: FieldDescriptor) -> list[int]:
        """Add a field without a column: its value is only checked."""
        row = self._row(field, ops.VALUELESS)
        row[ops.COLUMN], row[ops.LIST] = -1, -1
        row[ops.A] = int(field.is_extension or field.message_type.full_name in self._outline.requiring)
        row[ops.ABSENT] = ops.REQUIRED if field.is_required else ops.NULL
        return row

    def _field(self, field: FieldDescriptor, column: OutputColumn, depth: int, owner: Descriptor) -> list[int]:
        kind, holder = kind_of(field)
        into = column.below[0] if field.is_repeated else column
        row = self._row(field, kind)
        row[ops.COLUMN] = into.number
        row[ops.LIST] = column.number if field.is_repeated else -1
        row[ops.WRAPPED] = int(holder is not field)
        if row[ops.WRAPPED]:
            row[ops.WIRE] = ops.SIZED
        row[ops.ABSENT] = self._absent(field, kind, owner)
        row[ops.MAP] = int(is_map(field))
        row[ops.PACKS] = int(field.is_repeated and kind < ops.STRING and not row[ops.WRAPPED])
        if kind == ops.MESSAGE:
            row[ops.BELOW] = self.message(field.message_type, into.below, depth + 1)
        elif kind == ops.ENUM:
            row[ops.A], row[ops.B] = self._symbols(holder)
            row[ops.CLOSED] = int(holder.enum_type.is_closed)
        return row

    def _row(self, field: FieldDescriptor, kind: int) -> list[int]:
        row = [0] * ops.FIELD_COLUMNS
        row[ops.NUMBER], row[ops.KIND] = field.number, kind
        row[ops.WIRE] = ops.GROUP if field.type == FieldDescriptor.TYPE_GROUP else ops.wire_of(kind)
        row[ops.ONEOF] = field.containing_oneof.index if field.containing_oneof is not None else -1
        return row

    def _absent(self, field: FieldDescriptor, kind: int, owner: Descriptor) -> int:
        if field.is_required:
            return ops.REQUIRED
        if field.is_repeated:
            return ops.NULL
        if owner.GetOptions().map_entry:
            return 0  # an absent key or value has its default, an absent message the defaults of its fields
        if field.has_default_value:
            begin = len(self.constants)
            self.constants += wire_bytes(kind, field.default_value)
            return begin
        if not field.has_presence:
            return self._first_symbol(field) if kind == ops.ENUM else 0
        return ops.NULL

    def _first_symbol(self, field: FieldDescriptor) -> int:
        begin = len(self.constants)
        self.constants += wire_bytes(ops.ENUM, field.enum_type.values[0].number)
        return begin

    def _symbols(self, field: FieldDescriptor) -> tuple[int, int]:
        first = len(self.symbols)
        known: dict[int, str] = {}
        for value in field.enum_type.values:
            known.setdefault(value.number, value.name)
        for number, name in sorted(known.items()):
            self.symbols.append((number, len(self.constants), len(name.encode())))
            self.constants += name.encode()
        return first, len(known)


def _can_be_bad(extension: FieldDescriptor) -> bool:
    """Return whether the library checks the contents of an extension: extensions have no columns, but may be bad."""
    is_text = extension.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
    return extension.message_type is not None or (extension.is_repeated and not is_text)


def varint(value: int) -> bytes:
    """Return a number as a Protobuf varint: 64 bits, two's complement."""
    return uvarint_bytes(value & (2**64 - 1))


def wire_bytes(kind: int, value: Any) -> bytes:
    """Return a value as it is encoded after its tag."""
    if kind in (ops.SINT32, ops.SINT64):
        return zigzag_bytes(value)
    if kind <= ops.ENUM:
        return varint(int(value))
    if kind in (ops.STRING, ops.BYTES):
        data = value.encode() if isinstance(value, str) else bytes(value)
        return varint(len(data)) + data
    codes = {ops.DOUBLE: "<d", ops.FIXED64: "<Q", ops.SFIXED64: "<q", ops.FLOAT: "<f", ops.FIXED32: "<I"}
    return struct.pack(codes.get(kind, "<i"), value)
