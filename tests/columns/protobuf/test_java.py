"""Google's Protobuf for Java is the judge: it reads out of our payloads what is in the columns, whatever type of column
goes into whatever type of field; and columns hold what is in its payloads.

Values are random, besides some at the edges. `OTTLA_MATRIX_SEED` asks for other ones, `OTTLA_MATRIX_ROWS` for more.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from tests.columns.protobuf.fuzz import WRAPPER_NAMES, Unreadable, as_numbers, columns_shown, is_map, shown
from tests.columns.protobuf.matrix import COLUMNS, NAMES, NAMES2, descriptor, payloads
from tests.columns.protobuf.random_messages import random_trees
from tests.columns.random_rows import random_rows
from tests.support.java.protobuf import ProtobufOracle, Tree, message_of

from ottla.columns.protobuf.decoder import ProtobufDecoder
from ottla.columns.protobuf.encoder import ProtobufEncoder

SEED = os.environ.get("OTTLA_MATRIX_SEED", "1")
ROWS = int(os.environ.get("OTTLA_MATRIX_ROWS", "40"))
RECURSIVE = ("p.recursive", "p.struct")
MESSAGES = [name for name in [*NAMES, *NAMES2] if name not in RECURSIVE]
TYPES = {str(each.type): each.type for each in COLUMNS.values()}


@pytest.fixture(scope="module")
def java(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProtobufOracle]:
    made = ProtobufOracle(tmp_path_factory.mktemp("protobuf") / "java.log")
    yield made
    made.close()


def column_of(of: pa.DataType, seed: str) -> pa.Array:
    """Values of the matrix, and random ones."""
    edges = pa.array([each.value for each in COLUMNS.values() if each.type == of], of)
    return pa.concat_arrays([edges, random_rows(of, seed, ROWS)])


def encoded(encoder: ProtobufEncoder, rows: pa.Array) -> list[bytes | None]:
    """Payloads by row; None for a row that is refused."""
    made: list[bytes | None] = []
    for row in range(len(rows)):
        try:
            made += encoder.encode(rows[row : row + 1]).to_pylist()
        except ValueError:
            made.append(None)
    return made


def in_column(field: FieldDescriptor, value: Any) -> Any:
    """A value of a column in the form of `shown`."""
    if value is None:
        return None
    if is_map(field):
        inner = field.message_type.fields_by_number
        entries = [(in_column(inner[1], key), in_column(inner[2], each)) for key, each in value]
        return sorted(entries, key=repr)
    return [in_cell(field, each) for each in value] if field.is_repeated else in_cell(field, value)


def in_cell(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, dict):
        message = field.message_type
        given = {name: in_column(message.fields_by_name[name], each) for name, each in value.items()}
        return shown(message_of(message, {})) | {name: each for name, each in given.items() if each is not None}
    if isinstance(value, float):
        return struct.pack("<d", value).hex() if value == value else "nan"
    if field.message_type is not None and field.message_type.full_name in WRAPPER_NAMES:
        return in_cell(field.message_type.fields_by_name["value"], value)
    unsigned = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
    if field.type == FieldDescriptor.TYPE_ENUM:
        named = field.enum_type.values_by_number.get(int(value)) if str(value).lstrip("-").isdigit() else None
        return str(value) if named is None else named.name
    return Decimal(value) if field.type in unsigned else int(value) if isinstance(value, Decimal) else value


def test_java_reads_what_is_in_the_columns(java: ProtobufOracle) -> None:
    cells: list[tuple[str, pa.Array, list[bytes]]] = []
    for name in MESSAGES:
        encoder = ProtobufEncoder(descriptor(name))
        for kind, of in TYPES.items():
            rows = pa.StructArray.from_arrays([column_of(of, f"{SEED} {kind}")], ["f"])
            try:
                encoder.fits(rows.type)
            except ValueError:
                continue
            made = encoded(encoder, rows)
            kept = [row for row, each in enumerate(made) if each is not None]
            cells.append((name, rows.take(pa.array(kept, pa.int64())), [each for each in made if each is not None]))
    assert len(cells) > 100 and sum(len(given) for _, _, given in cells) > 20 * len(cells)
    answers = java.read([(descriptor(name), given) for name, _, given in cells])
    again = java.write(
        [(descriptor(name), trees) for (name, _, _), trees in zip(cells, answers, strict=True)]  # type: ignore[misc]
    )
    for (name, rows, given), trees, written in zip(cells, answers, again, strict=True):
        message = descriptor(name)
        found = columns_shown(ProtobufDecoder(message).decode(pa.array(given, pa.binary())).columns, message)
        values = as_numbers(rows).to_pylist()
        for value, payload, tree, theirs, ours in zip(values, given, trees, written, found, strict=True):
            assert tree is not None, (name, value, payload.hex())
            read = shown(message_of(message, tree))
            assert read == expected(message, value["f"]), (name, rows.type, value, payload.hex())
            assert ours == read, (name, payload.hex())
            if not is_map(message.fields_by_name["f"]):  # a message made at run time leaves defaults out of entries
                assert theirs == payload, (name, value)


def expected(message: Descriptor, value: Any) -> Any:
    """What a message shows if the column `f` has this value and there are no others."""
    field = message.fields_by_name["f"]
    of = shown(message_of(message, {}))
    return of | ({} if value is None or "f" not in of else {"f": in_column(field, value)})


def test_columns_hold_what_is_in_javas_payloads(java: ProtobufOracle) -> None:
    trees = {name: random_trees(descriptor(name), f"{SEED} {name}", ROWS) for name in MESSAGES}
    written = java.write([(descriptor(name), each) for name, each in trees.items()])
    rewritten: list[tuple[str, list[Any], list[bytes]]] = []
    for (name, values), given in zip(trees.items(), written, strict=True):
        message = descriptor(name)
        decoded = ProtobufDecoder(message).decode(pa.array(given, pa.binary()))
        wanted = [readable(message, tree) for tree in values]
        assert columns_shown(decoded.columns, message) == wanted, name
        assert sorted(decoded.reasons) == [row for row, each in enumerate(wanted) if each is None], name
        again = encoded(ProtobufEncoder(message), decoded.columns)
        there = [row for row, each in enumerate(wanted) if each is not None]
        rewritten.append((name, [wanted[row] for row in there], [again[row] or b"" for row in there]))
    answers = java.read([(descriptor(name), given) for name, _, given in rewritten])
    for (name, wanted, _), read in zip(rewritten, answers, strict=True):
        message = descriptor(name)
        assert [None if tree is None else shown(message_of(message, tree)) for tree in read] == wanted, name


def readable(message: Descriptor, tree: Tree) -> Any:
    try:
        return shown(message_of(message, tree))
    except Unreadable:
        return None


def test_odd_payloads_are_read_as_by_java(java: ProtobufOracle) -> None:
    given = {name: payloads(name) for name in MESSAGES}
    answers = java.read([(descriptor(name), list(each.values())) for name, each in given.items()])
    differ = set()
    for (name, each), trees in zip(given.items(), answers, strict=True):
        message = descriptor(name)
        found = columns_shown(
            ProtobufDecoder(message).decode(pa.array(list(each.values()), pa.binary())).columns, message
        )
        for what, ours, tree in zip(each, found, trees, strict=True):
            if ours != (None if tree is None else readable(message, tree)):
                differ.add((name, what))
    # A message that is made at run time is no map: it keeps entries that have more than a key and a value.
    assert differ == {(f"p.{name}", "more") for name in ("map", "map_of_messages", "map_of_uint64")}
