"""From a schema and the type of columns to instructions that write them, and to a function that takes the columns in.

Rules:
- Fields are found by name, as Spark finds them: regardless of case where that is not ambiguous.
- A field without a column is written as its default, or as null where that is allowed.
- A column that the schema does not have is an error: it would be lost silently.
- `write_types` defines which types may be written as which; this is checked here, before any row is read.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ottla.columns.avro import write_ops as ops
from ottla.columns.avro.defaults import default_bytes
from ottla.columns.avro.nodes import AvroNode, AvroNodeField
from ottla.columns.avro.types import is_members, is_nullable, merged_kind, without_null
from ottla.columns.avro.write_ops import WriteCode, WriteProgram
from ottla.columns.avro.write_types import AvroMismatch, refused, way
from ottla.columns.input_columns import InputColumns
from ottla.columns.loops import frozen_bytes
from ottla.columns.names import is_variant
from ottla.columns.shape import WIDTH_BYTES, kind_of
from ottla.wire.varint import zigzag_bytes

Take = Callable[[pa.Array, InputColumns], None]


def compile_write(node: AvroNode, of: pa.DataType) -> tuple[WriteProgram, Take]:
    """Return the program that writes columns of a type by a schema, and the function that takes such columns in.
    Raises AvroMismatch.
    """
    compiler = _Compiler()
    take = compiler.root(node, of)
    return compiler.program(), take


class _Compiler:
    def __init__(self) -> None:
        self._code: list[list[int]] = []
        self._paths: list[str] = []
        self._choices: list[list[int]] = []
        self._symbols: list[tuple[int, int]] = []
        self._constants = bytearray()
        self._depth = 0
        self._columns = 0

    def program(self) -> WriteProgram:
        self._emit(ops.DONE, -1, "")
        code = WriteCode(
            np.array(self._code, np.int64),
            np.array(self._choices, np.int64).reshape(-1, 3),
            np.array(self._symbols, np.int64).reshape(-1, 2),
            frozen_bytes(bytes(self._constants)),
        )
        return WriteProgram(code, self._depth, tuple(self._paths))

    def root(self, node: AvroNode, of: pa.DataType) -> Take:
        return self._write(node, of, True, "", 0)

    def _emit(self, op: int, column: int, path: str, a: int = 0, b: int = 0) -> int:
        self._code.append([op, column, a, b])
        self._paths.append(path)
        return len(self._code) - 1

    def _constant(self, data: bytes, path: str) -> None:
        begin = len(self._constants)
        self._constants += data
        self._emit(ops.CONSTANT, -1, path, begin, len(self._constants))

    def _write(self, node: AvroNode, of: pa.DataType, nullable: bool, path: str, depth: int) -> Take:
        """Add the instructions for one column, which gets the next number."""
        column = self._columns
        if pa.types.is_null(of) and not is_nullable(node):
            raise refused(of, node, path)
        if is_members(node):
            return self._members(node, of, path, depth)
        if node.kind != "union":
            if nullable and node.kind != "null" and path:
                self._emit(ops.REQUIRED, column, path)
            return self._value(node, of, path, depth)
        members = without_null(node)
        if not members:
            self._constant(zigzag_bytes(0), path)
            return self._value(AvroNode("null"), of, path, depth)
        merged = merged_kind(node)
        if merged and pa.types.is_temporal(of):
            raise refused(of, AvroNode(merged), path)
        chosen = next(each for each in members if merged is None or each.kind == merged)
        branch = zigzag_bytes(node.branches.index(chosen))
        if not is_nullable(node):
            self._emit(ops.REQUIRED, column, path)
            self._constant(branch, path)
            return self._value(chosen, of, path, depth)
        null = next(index for index, each in enumerate(node.branches) if each.kind == "null")
        two = len(node.branches) == 2
        at = self._emit(ops.OPTIONAL if two else ops.IF_NULL, column, path, null)
        if not two:
            self._constant(branch, path)
        take = self._value(chosen, of, path, depth)
        self._code[at][ops.B] = len(self._code)
        return take

    def _members(self, node: AvroNode, of: pa.DataType, path: str, depth: int) -> Take:
        members = without_null(node)
        names = [f"member{index}" for index in range(len(members))]
        if not pa.types.is_struct(of) or [field.name for field in of] != names:
            raise AvroMismatch(
                f"{path or 'the value'} must be a struct of {', '.join(names)}: the schema has a union there"
            )
        column = self._columns
        self._columns += 1
        null = -1
        if is_nullable(node):
            null = next(index for index, each in enumerate(node.branches) if each.kind == "null")
        begin = self._emit(ops.IF_NULL if null >= 0 else ops.REQUIRED, column, path, null)
        first = len(self._choices)
        self._emit(ops.MEMBERS, -1, path, first, len(members))
        # The last row is for structs of which no member is set: those are null, too.
        self._choices += [[0, null, 0] for _ in range(len(members) + 1)]
        takes, gone = [], []
        for index, member in enumerate(members):
            self._choices[first + index] = [self._columns, node.branches.index(member), len(self._code)]
            takes.append(self._value(member, of[index].type, f"{path}.{names[index]}" if path else names[index], depth))
            gone.append(self._emit(ops.GO, -1, path))
        for each in gone:
            self._code[each][ops.A] = len(self._code)
        self._choices[first + len(members)][2] = self._code[begin][ops.B] = len(self._code)
        return _struct_take([field.name for field in of], takes)

    def _value(self, node: AvroNode, of: pa.DataType, path: str, depth: int) -> Take:
        column = self._columns
        self._columns += 1
        if node.kind == "record":
            return self._record(node, of, path, depth)
        if node.kind == "array":
            return self._array(node, of, column, path, depth)
        if node.kind == "map":
            return self._map(node, of, column, path, depth)
        if node.kind == "null":
            if not pa.types.is_null(of):
                raise refused(of, node, path)
            return lambda array, inputs: inputs.struct(array)
        return self._leaf(node, of, column, path)

    def _record(self, node: AvroNode, of: pa.DataType, path: str, depth: int) -> Take:
        if not pa.types.is_struct(of) or is_variant(of):
            raise refused(of, node, path)
        given = _matched(node, of, path)
        names, takes = [], []
        for field in node.fields:
            inner = f"{path}.{field.name}" if path else field.name
            if field.name in given:
                column = given[field.name]
                names.append(column.name)
                takes.append(self._write(field.node, column.type, column.nullable, inner, depth))
            else:
                self._absent(field, inner)
        return _struct_take(names, takes)

    def _absent(self, field: AvroNodeField, path: str) -> None:
        if field.has_default:
            self._constant(default_bytes(field.node, field.default), path)
        elif is_nullable(field.node):
            self._constant(default_bytes(field.node, None), path)
        else:
            raise AvroMismatch(f"the schema needs {path}, which is not among the columns")

    def _array(self, node: AvroNode, of: pa.DataType, column: int, path: str, depth: int) -> Take:
        if not (pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of)):
            raise refused(of, node, path)
        self._depth = max(self._depth, depth + 1)
        at = self._emit(ops.LIST, column, path)
        item = self._write(node.item, of.value_type, of.value_field.nullable, f"{path}[]", depth + 1)
        self._emit(ops.NEXT, -1, path, at + 1)
        self._code[at][ops.A] = len(self._code)
        plain = pa.list_(of.value_field)

        def take(array: pa.Array, inputs: InputColumns) -> None:
            array = array if array.type == plain else array.cast(plain)
            begin, count = inputs.list(array)
            item(array.values.slice(begin, count), inputs)

        return take

    def _map(self, node: AvroNode, of: pa.DataType, column: int, path: str, depth: int) -> Take:
        if not pa.types.is_map(of) or not pa.types.is_string(of.key_type):
            raise refused(of, node, path)
        self._depth = max(self._depth, depth + 1)
        at = self._emit(ops.LIST, column, path)
        key = self._write(AvroNode("string"), of.key_type, False, f"{path}[]", depth + 1)
        item = self._write(node.item, of.item_type, of.item_field.nullable, f"{path}[]", depth + 1)
        self._emit(ops.NEXT, -1, path, at + 1)
        self._code[at][ops.A] = len(self._code)

        def take(array: pa.Array, inputs: InputColumns) -> None:
            begin, count = inputs.list(array)
            key(array.keys.slice(begin, count), inputs)
            item(array.items.slice(begin, count), inputs)

        return take

    def _leaf(self, node: AvroNode, of: pa.DataType, column: int, path: str) -> Take:
        target, op, a = way(of, node, path)
        b = 0
        if op == ops.ENUM:
            a, b = len(self._symbols), len(node.symbols)
            for symbol in node.symbols:
                self._symbols.append((len(self._constants), len(symbol.encode())))
                self._constants += symbol.encode()
        self._emit(op, column, path, a, b)
        width = WIDTH_BYTES[kind_of(target)]
        is_text = pa.types.is_string(target) or pa.types.is_binary(target)

        def take(array: pa.Array, inputs: InputColumns) -> None:
            try:
                array = array if array.type == target else array.cast(target)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise AvroMismatch(f"{path or 'the value'}: {error}") from error
            inputs.text(array) if is_text else inputs.fixed(array, width)

        return take


def _matched(node: AvroNode, of: pa.DataType, path: str) -> dict[str, pa.Field]:
    """Return the columns by the names of the fields that they are written to. Raises AvroMismatch."""
    before = f"{path}." if path else ""
    found: dict[str, pa.Field] = {}
    for column in of:
        names = [field.name for field in node.fields if field.name == column.name] or [
            field.name for field in node.fields if field.name.lower() == column.name.lower()
        ]
        if not names:
            raise AvroMismatch(f"the schema has no field {before}{column.name}")
        if len(names) > 1 or names[0] in found:
            raise AvroMismatch(
                f"{before}{column.name} could be written to several fields: use the schema's own spelling"
            )
        found[names[0]] = column
    return found


def _struct_take(names: list[str], takes: list[Take]) -> Take:
    def take(array: pa.Array, inputs: InputColumns) -> None:
        inputs.struct(array)
        for name, each in zip(names, takes, strict=True):
            each(array.field(name), inputs)

    return take
