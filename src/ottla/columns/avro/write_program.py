"""From a schema and the type of columns to instructions that write them, and to how the columns are taken in.

Rules:
- Fields are found by name. One that the columns lack is written as its default, or as null where that is allowed.
- A column that the schema does not have is an error: it would be lost silently.
- The columns' values are cast to what the schema's type is read as, and never rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ottla.columns.avro import write_ops as ops
from ottla.columns.avro.defaults import default_bytes, zigzag
from ottla.columns.avro.nodes import Field, Node
from ottla.columns.avro.types import arrow_type, is_members, is_nullable, merged_kind, without_null
from ottla.columns.avro.write_ops import WriteCode, WriteProgram
from ottla.columns.intake import Intake
from ottla.columns.loops import frozen_bytes
from ottla.columns.shape import WIDTH_BYTES, kind_of

Take = Callable[[pa.Array, Intake], None]

_LEAVES = {
    "boolean": ops.BOOLEAN,
    "int": ops.INT,
    "long": ops.LONG,
    "float": ops.FLOAT,
    "double": ops.DOUBLE,
    "bytes": ops.BYTES,
    "string": ops.BYTES,
    "enum": ops.ENUM,
    "fixed": ops.FIXED,
}


class Mismatch(ValueError):
    """Columns and schema do not go together."""


def compile_write(node: Node, of: pa.DataType) -> tuple[WriteProgram, Take]:
    """The program that writes columns of a type by a schema, and what takes such columns in. Raises Mismatch."""
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

    def root(self, node: Node, of: pa.DataType) -> Take:
        return self._write(node, of, True, "", 0)

    def _emit(self, op: int, column: int, path: str, a: int = 0, b: int = 0) -> int:
        self._code.append([op, column, a, b])
        self._paths.append(path)
        return len(self._code) - 1

    def _constant(self, data: bytes, path: str) -> None:
        begin = len(self._constants)
        self._constants += data
        self._emit(ops.CONSTANT, -1, path, begin, len(self._constants))

    def _write(self, node: Node, of: pa.DataType, nullable: bool, path: str, depth: int) -> Take:
        """Instructions for one column. The number that it takes is the next one."""
        column = self._columns
        if is_members(node):
            return self._members(node, of, path, depth)
        if node.kind != "union":
            if nullable and node.kind != "null" and path:
                self._emit(ops.REQUIRED, column, path)
            return self._value(node, of, path, depth)
        members = without_null(node)
        if not members:
            self._constant(zigzag(0), path)
            return self._value(Node("null"), of, path, depth)
        merged = merged_kind(node)
        chosen = next(each for each in members if merged is None or each.kind == merged)
        branch = zigzag(node.branches.index(chosen))
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

    def _members(self, node: Node, of: pa.DataType, path: str, depth: int) -> Take:
        members = without_null(node)
        names = [f"member{index}" for index in range(len(members))]
        if not pa.types.is_struct(of) or [field.name for field in of] != names:
            raise Mismatch(
                f"{path or 'the value'} must be a struct of {', '.join(names)}: the schema has a union there"
            )
        column = self._columns
        self._columns += 1
        skip = -1
        if is_nullable(node):
            null = next(index for index, each in enumerate(node.branches) if each.kind == "null")
            skip = self._emit(ops.IF_NULL, column, path, null)
        else:
            self._emit(ops.REQUIRED, column, path)
        first = len(self._choices)
        self._emit(ops.MEMBERS, -1, path, first, len(members))
        self._choices += [[0, 0, 0] for _ in members]
        takes, gone = [], []
        for index, member in enumerate(members):
            self._choices[first + index] = [self._columns, node.branches.index(member), len(self._code)]
            takes.append(self._value(member, of[index].type, path, depth))
            gone.append(self._emit(ops.GO, -1, path))
        for each in gone:
            self._code[each][ops.A] = len(self._code)
        if skip >= 0:
            self._code[skip][ops.B] = len(self._code)
        return _struct_take([field.name for field in of], takes)

    def _value(self, node: Node, of: pa.DataType, path: str, depth: int) -> Take:
        column = self._columns
        self._columns += 1
        if node.kind == "record":
            return self._record(node, of, path, depth)
        if node.kind == "array":
            return self._array(node, of, column, path, depth)
        if node.kind == "map":
            return self._map(node, of, column, path, depth)
        if node.kind == "null":
            return lambda array, intake: intake.struct(array)
        return self._leaf(node, column, path)

    def _record(self, node: Node, of: pa.DataType, path: str, depth: int) -> Take:
        if not pa.types.is_struct(of):
            raise Mismatch(f"{path or 'the value'} is {of}; the schema has a record there")
        given = {field.name: field for field in of}
        unknown = sorted(set(given) - {field.name for field in node.fields})
        if unknown:
            raise Mismatch(f"the schema has no field {path + '.' if path else ''}{unknown[0]}")
        names, takes = [], []
        for field in node.fields:
            inner = f"{path}.{field.name}" if path else field.name
            if field.name in given:
                names.append(field.name)
                takes.append(self._write(field.node, given[field.name].type, given[field.name].nullable, inner, depth))
            else:
                self._absent(field, inner)
        return _struct_take(names, takes)

    def _absent(self, field: Field, path: str) -> None:
        if field.has_default:
            self._constant(default_bytes(field.node, field.default), path)
        elif is_nullable(field.node):
            self._constant(default_bytes(field.node, None), path)
        else:
            raise Mismatch(f"the schema needs {path}, which is not among the columns")

    def _array(self, node: Node, of: pa.DataType, column: int, path: str, depth: int) -> Take:
        if not (pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of)):
            raise Mismatch(f"{path or 'the value'} is {of}; the schema has an array there")
        self._depth = max(self._depth, depth + 1)
        at = self._emit(ops.LIST, column, path)
        item = self._write(node.item, of.value_type, of.value_field.nullable, f"{path}[]", depth + 1)
        self._emit(ops.NEXT, -1, path, at + 1)
        self._code[at][ops.A] = len(self._code)
        plain = pa.list_(of.value_field)

        def take(array: pa.Array, intake: Intake) -> None:
            array = array if array.type == plain else array.cast(plain)
            begin, count = intake.list(array)
            item(array.values.slice(begin, count), intake)

        return take

    def _map(self, node: Node, of: pa.DataType, column: int, path: str, depth: int) -> Take:
        if not pa.types.is_map(of):
            raise Mismatch(f"{path or 'the value'} is {of}; the schema has a map there")
        self._depth = max(self._depth, depth + 1)
        at = self._emit(ops.LIST, column, path)
        key = self._write(Node("string"), of.key_type, False, f"{path}[]", depth + 1)
        item = self._write(node.item, of.item_type, of.item_field.nullable, f"{path}[]", depth + 1)
        self._emit(ops.NEXT, -1, path, at + 1)
        self._code[at][ops.A] = len(self._code)

        def take(array: pa.Array, intake: Intake) -> None:
            begin, count = intake.list(array)
            key(array.keys.slice(begin, count), intake)
            item(array.items.slice(begin, count), intake)

        return take

    def _leaf(self, node: Node, column: int, path: str) -> Take:
        a, b = 1, 0
        op = _LEAVES[node.kind]
        if node.logical == "decimal":
            op, a = ops.DECIMAL, node.size if node.kind == "fixed" else -1
        elif node.logical.endswith("-millis"):
            a = 1000
        elif node.kind == "fixed":
            a = node.size
        elif node.kind == "enum":
            a, b = len(self._symbols), len(node.symbols)
            for symbol in node.symbols:
                self._symbols.append((len(self._constants), len(symbol.encode())))
                self._constants += symbol.encode()
        self._emit(op, column, path, a, b)
        target = arrow_type(node)
        width = WIDTH_BYTES[kind_of(target)]
        is_text = pa.types.is_string(target) or pa.types.is_binary(target)

        def take(array: pa.Array, intake: Intake) -> None:
            try:
                array = array if array.type == target else array.cast(target)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise Mismatch(f"{path or 'the value'}: {error}") from error
            intake.text(array) if is_text else intake.fixed(array, width)

        return take


def _struct_take(names: list[str], takes: list[Take]) -> Take:
    def take(array: pa.Array, intake: Intake) -> None:
        intake.struct(array)
        for name, each in zip(names, takes, strict=True):
            each(array.field(name), intake)

    return take
