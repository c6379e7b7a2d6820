"""From schemas to instructions that read payloads of a writer's schema into columns of a reader's (schema resolution).

Rules:
- The instructions follow the writer's schema, in the order of the bytes; each writes to the reader's column, or skips
  a value that the reader does not have. Then come the defaults of fields that the writer does not have.
- A type that cannot be resolved is an instruction (BAD) that fails when it is reached: a union branch that never
  occurs does no harm.
- The scales of decimals must agree, else numbers would change silently. So must units of time (`units`).
"""

from __future__ import annotations

import numpy as np

from ottla.columns.avro import ops
from ottla.columns.avro.defaults import default_bytes
from ottla.columns.avro.nodes import AvroNode, AvroNodeField
from ottla.columns.avro.ops import AvroProgramCode, Program
from ottla.columns.avro.resolution import PROMOTIONS, are_equal, branch_for, is_named_alike, targets_of
from ottla.columns.avro.types import is_members, is_nullable, merged_kind, without_null
from ottla.columns.avro.units import factor
from ottla.columns.loops import frozen_bytes
from ottla.columns.shape import OutputColumn
from ottla.model.limits import INT64_MAX

_NUMBERS = {"int": ops.INT, "long": ops.LONG, "float": ops.LONG_TO_FLOAT, "double": ops.LONG_TO_DOUBLE}
_SKIPPED = {"boolean": 1, "float": 4, "double": 8}


def compile_program(writer: AvroNode, reader: AvroNode, root: OutputColumn) -> Program:
    """Return the program that reads payloads of `writer` into the columns of `reader`."""
    return _Compiler().program(writer, reader, root)


class _Compiler:
    def __init__(self) -> None:
        self._code: list[list[int]] = []
        self._paths: list[str] = []
        self._jumps: list[int] = []
        self._symbols: list[tuple[int, int]] = []
        self._limits: list[tuple[int, int, int, int]] = []
        self._constants = bytearray()
        self._depth = 0

    def program(self, writer: AvroNode, reader: AvroNode, root: OutputColumn) -> Program:
        self._read(writer, reader, root, "", 0)
        self._emit(ops.DONE, -1, "")
        code = AvroProgramCode(
            np.array(self._code, np.int64),
            np.array(self._jumps, np.int64),
            np.array(self._symbols, np.int64).reshape(-1, 2),
            np.array(self._limits, np.int64).reshape(-1, 4),
            frozen_bytes(bytes(self._constants)),
        )
        return Program(code, self._depth, tuple(self._paths))

    def _emit(self, op: int, column: int, path: str, a: int = 0, b: int = 0) -> int:
        self._code.append([op, column, a, b])
        self._paths.append(path)
        return len(self._code) - 1

    @property
    def _here(self) -> int:
        return len(self._code)

    def _bad(self, path: str, why: str) -> None:
        self._emit(ops.BAD, -1, f"{path}: {why}" if path else why)

    # --- reading ---

    def _read(self, writer: AvroNode, reader: AvroNode, column: OutputColumn, path: str, depth: int) -> None:
        if writer.kind == "union":
            self._read_union(writer, reader, column, path, depth)
        elif writer.kind == "null" and is_nullable(reader):
            self._emit(ops.NULLS, column.number, path, column.after)
        elif reader.kind == "union":
            self._read_as_branch(writer, reader, column, path, depth)
        elif writer.kind != reader.kind and reader.kind not in PROMOTIONS.get(writer.kind, ()):
            self._bad(path, f"a {writer.kind} cannot be read as {reader.kind}")
        elif writer.kind == "record":
            self._read_record(writer, reader, column, path, depth)
        elif writer.kind in ("array", "map"):
            self._read_list(writer, reader, column, path, depth)
        else:
            self._read_leaf(writer, reader, column.number, path)

    def _read_union(self, writer: AvroNode, reader: AvroNode, column: OutputColumn, path: str, depth: int) -> None:
        kinds = [branch.kind for branch in writer.branches]
        if len(kinds) == 2 and "null" in kinds and is_nullable(reader):
            null = kinds.index("null")
            at = self._emit(ops.NULLABLE, column.number, path, null)
            self._read_branch(writer, 1 - null, reader, column, path, depth)
            self._code[at][ops.B] = self._here
            return
        at = self._emit(ops.BRANCH, -1, path, len(self._jumps), len(kinds))
        first = self._code[at][ops.A]
        self._jumps.extend([0] * len(kinds))
        gone = []
        for index in range(len(kinds)):
            self._jumps[first + index] = self._here
            self._read_branch(writer, index, reader, column, path, depth)
            gone.append(self._emit(ops.GO, -1, path))
        for each in gone:
            self._code[each][ops.A] = self._here

    def _read_branch(
        self, writer: AvroNode, index: int, reader: AvroNode, column: OutputColumn, path: str, depth: int
    ) -> None:
        """Read one branch of a writer's union; if both unions are equal, into the same branch of the reader's."""
        branch = writer.branches[index]
        if branch.kind != "null" and are_equal(writer, reader):
            before = sum(each.kind != "null" for each in reader.branches[:index])
            self._read_as_branch(branch, reader, column, path, depth, before)
        else:
            self._read(branch, reader, column, path, depth)

    def _read_as_branch(
        self, writer: AvroNode, reader: AvroNode, column: OutputColumn, path: str, depth: int, given: int | None = None
    ) -> None:
        members = without_null(reader)
        chosen = branch_for(writer, members) if given is None else given
        if chosen is None:
            self._bad(path, f"a {writer.name or writer.kind} is none of the reader's union")
        elif merged := merged_kind(reader):
            self._read(writer, AvroNode(merged), column, path, depth)
        elif not is_members(reader):
            self._read(writer, members[chosen], column, path, depth)
        else:
            self._emit(ops.STRUCT_BEGIN, column.number, path)
            for index, below in enumerate(column.below):
                if index != chosen:
                    self._emit(ops.NULLS, below.number, path, below.after)
            self._read(writer, members[chosen], column.below[chosen], path, depth)

    def _read_record(self, writer: AvroNode, reader: AvroNode, column: OutputColumn, path: str, depth: int) -> None:
        self._emit(ops.STRUCT_BEGIN, column.number, path)
        targets = targets_of(writer, reader)
        for field in writer.fields:
            inner = f"{path}.{field.name}" if path else field.name
            found = targets.get(field.name)
            if found is None:
                self._skip(field.node, inner, depth)
            else:
                self._read(field.node, reader.fields[found].node, column.below[found], inner, depth)
        for index, field in enumerate(reader.fields):
            if index not in targets.values():
                self._default(field, column.below[index], f"{path}.{field.name}" if path else field.name, depth)

    def _default(self, field: AvroNodeField, column: OutputColumn, path: str, depth: int) -> None:
        if not field.has_default:
            self._bad(path, "the writer has no such field, and it has no default")
            return
        if field.default is None and is_nullable(field.node):
            self._emit(ops.NULLS, column.number, path, column.after)
            return
        begin = len(self._constants)
        self._constants += default_bytes(field.node, field.default)
        self._emit(ops.CONSTANT, -1, path, begin, len(self._constants))
        self._read(field.node, field.node, column, path, depth)
        self._emit(ops.CONSTANT_END, -1, path)

    def _read_list(self, writer: AvroNode, reader: AvroNode, column: OutputColumn, path: str, depth: int) -> None:
        block = self._list_begin(writer, column.number, path, depth)
        items = column.below[0]
        if writer.kind == "map":
            self._emit(ops.STRUCT_BEGIN, items.number, path)
            self._emit(ops.STRING, items.below[0].number, path)
            items = items.below[1]
        self._read(writer.item, reader.item, items, f"{path}[]", depth + 1)
        self._list_end(block, path)

    def _list_begin(self, writer: AvroNode, column: int, path: str, depth: int) -> int:
        self._depth = max(self._depth, depth + 1)
        self._emit(ops.LIST_BEGIN, column, path)
        least = least_bytes(writer.item) + (1 if writer.kind == "map" else 0)
        return self._emit(ops.BLOCK, column, path, 0, least)

    def _list_end(self, block: int, path: str) -> None:
        self._emit(ops.GO, -1, path, block)
        self._code[block][ops.A] = self._here

    def _read_leaf(self, writer: AvroNode, reader: AvroNode, column: int, path: str) -> None:
        kind, into = writer.kind, reader.kind
        if reader.logical == "decimal":
            self._decimal(writer, reader, column, path)
        elif kind in ("int", "long"):
            self._number(writer, reader, column, path)
        elif kind in ("bytes", "string"):
            self._emit(ops.STRING if into == "string" else ops.BYTES, column, path)
        elif kind in ("fixed", "enum") and not is_named_alike(writer, reader):
            self._bad(path, f"a {writer.name} cannot be read as a {reader.name}")
        elif kind == "fixed":
            if writer.size != reader.size:
                self._bad(path, f"{writer.size} bytes cannot be read as {reader.size}")
            self._emit(ops.FIXED, column, path, writer.size)
        elif kind == "enum":
            self._enum(writer, reader, column, path)
        elif kind == "float":
            self._emit(ops.FLOAT if into == "float" else ops.FLOAT_TO_DOUBLE, column, path)
        else:
            self._emit(ops.DOUBLE if kind == "double" else ops.BOOLEAN, column, path)

    def _number(self, writer: AvroNode, reader: AvroNode, column: int, path: str) -> None:
        by = factor(writer, reader)
        if by is None:
            self._bad(path, f"a number written as {writer.logical} cannot be read as {reader.logical}")
        op = ops.TIME if reader.logical == "time-micros" else _NUMBERS[reader.kind]
        by = by or 1
        self._emit(op, column, path, -by if writer.kind == "int" else by, INT64_MAX // by)

    def _enum(self, writer: AvroNode, reader: AvroNode, column: int, path: str) -> None:
        first = len(self._symbols)
        for symbol in writer.symbols:
            known = symbol if symbol in reader.symbols else reader.default
            if known is None:
                self._symbols.append((0, -1))
            else:
                data = known.encode()
                self._symbols.append((len(self._constants), len(data)))
                self._constants += data
        self._emit(ops.ENUM, column, path, first, len(writer.symbols))

    def _decimal(self, writer: AvroNode, reader: AvroNode, column: int, path: str) -> None:
        if writer.kind == reader.kind == "fixed" and not is_named_alike(writer, reader):
            self._bad(path, f"a {writer.name} cannot be read as a {reader.name}")
        is_plain = writer.kind == reader.kind and not writer.logical
        if not is_plain and (writer.logical != "decimal" or writer.scale != reader.scale):
            self._bad(path, "the writer's is no decimal of this scale")
        if writer.size != reader.size:
            self._bad(path, f"{writer.size} bytes cannot be read as {reader.size}")
        most = 10**reader.precision - 1
        self._limits.append((*_halves(most), *_halves(-most)))
        size = writer.size if writer.kind == "fixed" else -1
        self._emit(ops.DECIMAL, column, path, len(self._limits) - 1, size)

    # --- skipping ---

    def _skip(self, writer: AvroNode, path: str, depth: int) -> None:
        if writer.kind in ("int", "long", "enum"):
            self._emit(ops.SKIP_LONG, -1, path, ops.LONG_BYTES if writer.kind == "long" else ops.INT_BYTES)
        elif writer.kind in ("bytes", "string"):
            self._emit(ops.SKIP_BYTES, -1, path)
        elif writer.kind == "fixed" or writer.kind in _SKIPPED:
            self._emit(ops.SKIP_FIXED, -1, path, _SKIPPED.get(writer.kind, writer.size))
        elif writer.kind == "record":
            for field in writer.fields:
                self._skip(field.node, path, depth)
        elif writer.kind in ("array", "map"):
            block = self._list_begin(writer, -1, path, depth)
            if writer.kind == "map":
                self._emit(ops.SKIP_BYTES, -1, path)
            self._skip(writer.item, path, depth + 1)
            self._list_end(block, path)
        elif writer.kind == "union":
            self._skip_union(writer, path, depth)

    def _skip_union(self, writer: AvroNode, path: str, depth: int) -> None:
        first = len(self._jumps)
        self._emit(ops.BRANCH, -1, path, first, len(writer.branches))
        self._jumps.extend([0] * len(writer.branches))
        gone = []
        for index, branch in enumerate(writer.branches):
            self._jumps[first + index] = self._here
            self._skip(branch, path, depth)
            gone.append(self._emit(ops.GO, -1, path))
        for each in gone:
            self._code[each][ops.A] = self._here


def least_bytes(node: AvroNode) -> int:
    """Return the least number of bytes that a value takes."""
    if node.kind == "null":
        return 0
    if node.kind == "record":
        return sum(least_bytes(field.node) for field in node.fields)
    return node.size if node.kind == "fixed" else {"float": 4, "double": 8}.get(node.kind, 1)


def _halves(value: int) -> tuple[int, int]:
    low = value & (2**64 - 1)
    return value >> 64, low - 2**64 if low >= 2**63 else low
