"""Who can read what: a table after the Avro specification's rules of resolution, and what other libraries say."""

from __future__ import annotations

import io
import json
import warnings
from typing import Any

import avro.compatibility
import avro.errors
import avro.schema
import fastavro
import fastavro.utils
import pytest
from hypothesis import assume, given, settings
from tests.schemas.avro.generated import Json, schemas

from ottla.model import limits
from ottla.schemas.avro import AvroSchema, parse_avro
from ottla.schemas.avro.compare import incompatibilities
from ottla.schemas.schema import InvalidSchema, SchemaSource

PROMOTIONS = {
    "int": ["int", "long", "float", "double"],
    "long": ["long", "float", "double"],
    "float": ["float", "double"],
    "double": ["double"],
    "string": ["string", "bytes"],
    "bytes": ["bytes", "string"],
    "boolean": ["boolean"],
    "null": ["null"],
}


def record(*fields: Json, name: str = "R", **more: Json) -> Json:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, schema: Json, **more: Json) -> Json:
    return {"name": name, "type": schema, **more}


def enum(*symbols: str, name: str = "E", **more: Json) -> Json:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Json) -> Json:
    return {"type": "fixed", "name": name, "size": size, **more}


def parsed(tree: Json) -> AvroSchema:
    return parse_avro(SchemaSource(json.dumps(tree)))


@pytest.mark.parametrize("writer", PROMOTIONS)
@pytest.mark.parametrize("reader", PROMOTIONS)
def test_primitives_are_read_as_themselves_or_promoted(reader: str, writer: str) -> None:
    found = incompatibilities(parsed(reader).schema, parsed(writer).schema)
    if reader in PROMOTIONS[writer]:
        assert not found
    else:
        sentence = f"reader type: {reader.upper()} not compatible with writer type: {writer.upper()}"
        assert found == (("TYPE_MISMATCH", "/", sentence),)


NODE = record(field("next", ["null", "Node"]), field("value", "int"), name="Node")
WIDE_NODE = record(field("value", "long"), field("next", ["null", "Node"]), name="Node")
TEXT_NODE = record(field("next", ["null", "Node"]), field("value", "boolean"), name="Node")

# reader, writer, what is wrong
CASES: list[tuple[Json, Json, list[tuple[str, str, str]]]] = [
    # arrays and maps
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, []),
    (
        {"type": "array", "items": "int"},
        {"type": "array", "items": "long"},
        [("TYPE_MISMATCH", "/items", "reader type: INT not compatible with writer type: LONG")],
    ),
    (
        {"type": "map", "values": {"type": "map", "values": "int"}},
        {"type": "map", "values": {"type": "map", "values": "null"}},
        [("TYPE_MISMATCH", "/values/values", "reader type: INT not compatible with writer type: NULL")],
    ),
    (
        {"type": "array", "items": "int"},
        {"type": "map", "values": "int"},
        [("TYPE_MISMATCH", "/", "reader type: ARRAY not compatible with writer type: MAP")],
    ),
    # names: the short one decides, or an alias of the reader's
    (record(name="a.R"), record(name="b.R"), []),
    (record(name="S"), record(name="R"), [("NAME_MISMATCH", "/name", "expected: R")]),
    (record(name="S", aliases=["R"]), record(name="R"), []),
    (record(name="n.S", aliases=["R"]), record(name="m.R"), [("NAME_MISMATCH", "/name", "expected: m.R")]),
    (record(name="n.S", aliases=["m.R"]), record(name="m.R"), []),
    # fixed
    (fixed(4), fixed(4), []),
    (fixed(4), fixed(8), [("FIXED_SIZE_MISMATCH", "/size", "expected: 8, found: 4")]),
    (
        fixed(4, name="G"),
        fixed(8),
        [("NAME_MISMATCH", "/name", "expected: F"), ("FIXED_SIZE_MISMATCH", "/size", "expected: 8, found: 4")],
    ),
    # enums
    (enum("A", "B", "C"), enum("B", "A"), []),
    (enum("A"), enum("C", "A", "B"), [("MISSING_ENUM_SYMBOLS", "/symbols", "[B, C]")]),
    (enum("A", default="A"), enum("A", "B"), []),
    # fields
    (record(field("a", "int")), record(field("a", "int"), field("b", "int")), []),
    (record(field("b", "int"), field("a", "int")), record(field("a", "int"), field("b", "int")), []),
    (record(field("a", "int", default=1)), record(), []),
    (record(field("a", ["null", "int"], default=None)), record(), []),
    (record(field("a", ["null", "int"])), record(), [("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0", "a")]),
    (record(field("a", "int", aliases=["z"])), record(field("z", "int")), []),
    (
        record(field("x", "int", default=0), field("a", "int", aliases=["z"])),
        record(field("z", "string")),
        [("TYPE_MISMATCH", "/fields/1/type", "reader type: INT not compatible with writer type: STRING")],
    ),
    (
        record(field("a", enum("A", default="A"))),
        record(),
        [("TYPE_MISMATCH", "/fields/0/type", "reader type: ENUM not compatible with writer type: RECORD")],
    ),
    # unions
    (["null", "string"], "string", []),
    (["null", "double"], "int", []),
    ("int", ["int"], []),
    ("long", ["int", "long"], []),
    (
        "int",
        ["int", "string"],
        [("TYPE_MISMATCH", "/1", "reader type: INT not compatible with writer type: STRING")],
    ),
    (["int"], "boolean", [("MISSING_UNION_BRANCH", "/", "reader union lacking writer type: BOOLEAN")]),
    (
        record(field("a", ["null", "int"])),
        record(field("a", ["boolean", "null", "string"])),
        [
            ("MISSING_UNION_BRANCH", "/fields/0/type/0", "reader union lacking writer type: BOOLEAN"),
            ("MISSING_UNION_BRANCH", "/fields/0/type/2", "reader union lacking writer type: STRING"),
        ],
    ),
    ([], "int", [("MISSING_UNION_BRANCH", "/", "reader union lacking writer type: INT")]),
    ("int", [], []),
    # types that contain themselves
    (NODE, NODE, []),
    (WIDE_NODE, NODE, []),
    (
        NODE,
        TEXT_NODE,
        [("TYPE_MISMATCH", "/fields/1/type", "reader type: INT not compatible with writer type: BOOLEAN")],
    ),
]


@pytest.mark.parametrize(("reader", "writer", "wrong"), CASES)
def test_resolution(reader: Json, writer: Json, wrong: list[tuple[str, str, str]]) -> None:
    assert list(incompatibilities(parsed(reader).schema, parsed(writer).schema)) == wrong


def test_a_field_that_two_of_the_writer_s_could_be_is_no_answer_but_a_complaint() -> None:
    reader = record(field("a", "int", aliases=["b"]))
    (found,) = parsed(reader).incompatibilities(parsed(record(field("a", "int"), field("b", "int"))))
    assert (found.kind, found.path) == ("", "/")
    assert found.message.startswith(
        "Unexpected exception during compatibility check: Reader record field a type:INT pos:0 matches multiple fields"
    )


@pytest.mark.parametrize(
    ("reader", "writer", "text"),
    [
        (
            record(field("a", "int")),
            record(),
            "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'a' at path '/fields/0' in the %s"
            " schema has no default value and is missing in the %s schema', additionalInfo:'a'}",
        ),
        (
            record(field("a", "int")),
            record(field("a", "string")),
            "{errorType:'TYPE_MISMATCH', description:'The type (path '/fields/0/type') of a field in the %s schema does"
            " not match with the %s schema', additionalInfo:'reader type: INT not compatible with writer type: STRING'"
            "}",
        ),
        (
            fixed(1),
            fixed(2),
            "{errorType:'FIXED_SIZE_MISMATCH', description:'The size of FIXED type field at path '/size' in the %s"
            " schema does not match with the %s schema', additionalInfo:'expected: 2, found: 1'}",
        ),
        (
            enum("A"),
            enum("B"),
            "{errorType:'MISSING_ENUM_SYMBOLS', description:'The %s schema is missing enum symbols '[B]' at path"
            " '/symbols' in the %s schema', additionalInfo:'[B]'}",
        ),
        (
            ["null"],
            ["int"],
            "{errorType:'MISSING_UNION_BRANCH', description:'The %s schema is missing a type inside a union field at"
            " path '/0' in the %s schema', additionalInfo:'reader union lacking writer type: INT'}",
        ),
        (
            record(name="S"),
            record(),
            "{errorType:'NAME_MISMATCH', description:'The name of the schema has changed (path '/name')',"
            " additionalInfo:'expected: R'}",
        ),
    ],
)
def test_users_are_told_in_confluent_s_words(reader: Json, writer: Json, text: str) -> None:
    assert [found.message for found in parsed(reader).incompatibilities(parsed(writer))] == [text]


def drawn(reader: Json, writer: Json) -> tuple[AvroSchema, AvroSchema]:
    try:
        return parsed(reader), parsed(writer)
    except InvalidSchema:
        assume(False)
        raise


@settings(max_examples=200, deadline=None)
@given(schemas(), schemas())
def test_the_avro_library_agrees(reader: Json, writer: Json) -> None:
    mine, other = drawn(reader, writer)
    found = mine.incompatibilities(other)
    assume(all(each.kind for each in found))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # properties it does not know
        try:
            theirs = avro.schema.parse(mine.canonical), avro.schema.parse(other.canonical)
        except avro.errors.SchemaParseException:
            assume(False)
    verdict = avro.compatibility.ReaderWriterCompatibilityChecker().get_compatibility(*theirs)
    assert (verdict.compatibility is avro.compatibility.SchemaCompatibilityType.compatible) == (not found)


def as_ascii(value: Any) -> Any:
    """Bytes may be read as a string, but not all of them are one: these are."""
    if isinstance(value, bytes):
        return b"a" * len(value)
    if isinstance(value, dict):
        return {key: as_ascii(child) for key, child in value.items()}
    return [as_ascii(child) for child in value] if isinstance(value, list) else value


def readable(reader: Json, writer: Json) -> int:
    """How many values of the writer's were read by the reader's schema; -1 if that is said to be impossible."""
    mine, other = drawn(reader, writer)
    if mine.incompatibilities(other):
        return -1
    try:
        to, out_of = (fastavro.parse_schema(json.loads(each.canonical)) for each in (mine, other))
    except fastavro.schema.UnknownType:  # it finds no type without a namespace from inside of one
        return 0
    try:
        values: list[Any] = list(fastavro.utils.generate_many(out_of, 3))
    except RecursionError:  # a record that holds itself without a way out has no values
        return 0
    for value in values:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, out_of, as_ascii(value))
        size = stream.tell()
        stream.seek(0)
        fastavro.schemaless_reader(stream, out_of, to)
        assert stream.tell() == size
    return len(values)


@settings(max_examples=200, deadline=None)
@given(schemas(), schemas())
def test_what_is_said_to_be_readable_is_read(reader: Json, writer: Json) -> None:
    readable(reader, writer)


# A union of nothing has no values.
READABLE = [(reader, writer) for reader, writer, wrong in CASES if not wrong and writer != []]


@pytest.mark.parametrize(("reader", "writer"), READABLE)
def test_what_the_table_says_is_readable_is_read(reader: Json, writer: Json) -> None:
    assert readable(reader, writer) >= 0


def chain(length: int, innermost: str, uses: int) -> AvroSchema:
    """The last of as many records, each of which uses the one before it `uses` times."""
    types = {}
    for level in range(length):
        inner = f"R{level - 1}" if level else innermost
        types[f"R{level}"] = json.dumps(record(*(field(f"f{use}", inner) for use in range(uses)), name=f"R{level}"))
    return parse_avro(SchemaSource(f'"R{length - 1}"', resolved=types))


def test_what_is_found_does_not_double_with_each_level() -> None:
    assert not chain(60, "int", 2).incompatibilities(chain(60, "int", 2))
    found = chain(60, "int", 2).incompatibilities(chain(60, "null", 2))
    assert len(found) == limits.SCHEMA_DIFFERENCES_MAX
    assert {each.kind for each in found} == {"TYPE_MISMATCH"}


def test_a_long_chain_of_types_is_no_deep_recursion() -> None:
    assert not chain(1_500, "int", 1).incompatibilities(chain(1_500, "int", 1))
    (found,) = chain(1_500, "int", 1).incompatibilities(chain(1_500, "null", 1))
    assert found.path == "/" + "/".join(["fields/0/type"] * 1_500)


def test_many_types_that_use_each_other_are_compared_in_no_time() -> None:
    names = [f"T{number}" for number in range(20)]

    def grammar(leaf: str) -> AvroSchema:
        uses = [field("a", names), field("b", {"type": "array", "items": names}), field("leaf", leaf)]
        return parsed([record(*uses, name=name) for name in names])

    assert not grammar("int").incompatibilities(grammar("int"))
    assert grammar("int").incompatibilities(grammar("null"))


def test_unions_that_are_too_large_are_not_compared_and_not_let_through() -> None:
    reader = parsed([fixed(size, name=f"F{size}") for size in range(1_000)])
    (found,) = reader.incompatibilities(parsed([fixed(size, name=f"G{size}") for size in range(1_000)]))
    assert "too large" in found.message
