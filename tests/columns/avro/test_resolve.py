"""Reading with another schema than the writer's: as fastavro does, and by the specification's table."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.avro.cases import TEXT, encoded, source

from ottla.columns.avro.decoder import decoder

slow_data = settings(deadline=None, suppress_health_check=list(HealthCheck))

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**40), 2**40),
    "float": st.integers(-1000, 1000).map(float),
    "double": st.floats(allow_nan=False),
    "string": TEXT,
    "bytes": TEXT.map(str.encode),
    "boolean": st.booleans(),
}
# Not bytes: fastavro leaves those as the text that JSON has.
DEFAULTS: dict[str, Any] = {"int": 7, "long": -8, "float": 0.5, "double": 1.25, "string": "dé", "boolean": True}


@st.composite
def pairs(draw: st.DrawFn, depth: int = 2) -> tuple[Any, Any, st.SearchStrategy[Any]]:
    """A writer's type, a reader's, and values of the writer's."""
    kind = draw(st.sampled_from([*VALUES, *VALUES] + (["array", "map", "record", "record", "maybe"] if depth else [])))
    if kind in VALUES:
        into = kind if draw(st.booleans()) else draw(st.sampled_from(list(VALUES)))
        return kind, into, VALUES[kind]
    if kind == "record":
        return draw(records(depth))
    writer, reader, values = draw(pairs(depth - 1))
    if kind == "array":
        return (
            {"type": "array", "items": writer},
            {"type": "array", "items": reader},
            st.lists(values, min_size=1, max_size=3),
        )
    if kind == "map":
        made = st.dictionaries(TEXT, values, min_size=1, max_size=3)
        return {"type": "map", "values": writer}, {"type": "map", "values": reader}, made
    wrapped = [each if isinstance(each, list) else ["null", each] for each in (writer, reader)]
    which = draw(st.sampled_from([(0, 0), (1, 0), (0, 1), (1, 1)]))
    return (
        wrapped[0] if which[0] else writer,
        wrapped[1] if which[1] else reader,
        (st.none() | values if which[0] else values),
    )


@st.composite
def records(draw: st.DrawFn, depth: int = 2) -> tuple[Any, Any, st.SearchStrategy[Any]]:
    written, wanted, values = [], [], {}
    for index in range(draw(st.integers(0, 4))):
        name = f"f{index}"
        writer, reader, made = draw(pairs(depth - 1))
        values[name] = made
        written.append({"name": name, "type": writer})
        fate = draw(st.sampled_from(["same", "same", "dropped", "renamed"]))
        if fate == "renamed":
            wanted.append({"name": f"new{index}", "aliases": [name], "type": reader})
        elif fate == "same":
            wanted.append({"name": name, "type": reader})
    for index in range(draw(st.integers(0, 2))):
        kind = draw(st.sampled_from(list(DEFAULTS)))
        choice = draw(st.integers(0, 3))
        field = {"name": f"added{index}", "type": kind, "default": DEFAULTS[kind]}
        if choice == 1:
            field = {"name": f"added{index}", "type": ["null", kind], "default": None}
        elif choice == 2:
            field = {"name": f"added{index}", "type": {"type": "array", "items": kind}, "default": [DEFAULTS[kind]] * 2}
        elif choice == 3:
            inner = {"type": "record", "name": f"D{draw(st.uuids()).hex}", "fields": [dict(field, name="x")]}
            field = {"name": f"added{index}", "type": inner, "default": {"x": DEFAULTS[kind]}}
        wanted.append(field)
    name = f"R{draw(st.uuids()).hex}"
    return (
        {"type": "record", "name": name, "fields": written},
        {"type": "record", "name": name, "fields": draw(st.permutations(wanted))},
        st.fixed_dictionaries(values),
    )


@slow_data
@given(st.data(), records())
def test_resolution_is_fastavros(data: st.DataObject, schemas: tuple[Any, Any, Any]) -> None:
    writer, reader, values = schemas
    rows = data.draw(st.lists(values, min_size=1, max_size=4))
    payloads = [encoded(writer, row) for row in rows]
    decoded = decoder(source(writer), source(reader)).decode(pa.array(payloads, pa.binary()))
    decoded.columns.validate(full=True)
    assert decoded.columns.type == decoder(source(reader)).type
    parsed = fastavro.parse_schema(writer), fastavro.parse_schema(reader)
    for row, payload in enumerate(payloads):
        try:
            resolved = fastavro.schemaless_reader(io.BytesIO(payload), *parsed)
        except (fastavro.read.SchemaResolutionError, UnicodeDecodeError):
            assert row in decoded.reasons
            continue
        assert row not in decoded.reasons
        again = decoder(source(reader)).decode(pa.array([encoded(reader, resolved)], pa.binary()))
        assert decoded.columns.slice(row, 1).to_pylist() == again.columns.to_pylist()


def resolved(writer: Any, reader: Any, value: Any) -> Any:
    decoded = decoder(source(writer), source(reader)).decode(pa.array([encoded(writer, value)], pa.binary()))
    return decoded.columns.to_pylist()[0] if not decoded.reasons else decoded.reasons[0]


def enum(*symbols: str, **more: Any) -> Any:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def record(name: str, field: str, **more: Any) -> Any:
    return {"type": "record", "name": name, "fields": [{"name": field, "type": "int"}], **more}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        ("int", "double", 3, 3.0),
        ("float", "double", 0.5, 0.5),
        ("long", "float", 7, 7.0),
        ("string", "int", "x", "a string cannot be read as int"),
        ("long", "int", 1, "a long cannot be read as int"),
        (["int", "string"], "string", ("string", "x"), "x"),
        (["int", "string"], "string", ("int", 1), "a int cannot be read as string"),
        ("int", ["string", "long"], 5, {"member0": None, "member1": 5}),
        (["int", "string"], ["string", "int"], ("int", 5), {"member0": None, "member1": 5}),
        ("int", ["null", "string"], 5, "a int is none of the reader's union"),
        (enum("A", "B"), enum("B", "A"), "B", "B"),
        (enum("A", "B"), enum("A"), "B", "the enum has no such symbol"),
        (enum("A", "B"), enum("A", default="A"), "B", "A"),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3},
            b"ab",
            "2 bytes cannot be read as 3",
        ),
        (record("R", "x"), record("R", "y"), {"x": 1}, "y: the writer has no such field, and it has no default"),
        (
            [record("P", "x"), record("Q", "x")],
            [record("Q", "x"), record("P", "x")],
            ("Q", {"x": 4}),
            {"member0": {"x": 4}, "member1": None},
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
            b"\x01",
            "the writer's is no decimal of this scale",
        ),
    ],
)
def test_table_of_resolution(writer: Any, reader: Any, value: Any, expected: Any) -> None:
    assert resolved(writer, reader, value) == expected


def test_defaults_of_bytes_are_text_in_json() -> None:
    field = {"name": "b", "type": "bytes", "default": "\u00ff!"}
    reader = {"type": "record", "name": "R", "fields": [field, {"name": "x", "type": "int"}]}
    assert resolved(record("R", "x"), reader, {"x": 1}) == {"b": b"\xff!", "x": 1}


def test_what_is_passed_over_may_have_any_shape() -> None:
    inner = [
        {"name": "a", "type": {"type": "array", "items": {"type": "map", "values": ["null", "string", "double"]}}},
        {"name": "b", "type": {"type": "fixed", "name": "F", "size": 3}},
        {"name": "c", "type": ["null", {"type": "record", "name": "I", "fields": [{"name": "x", "type": "boolean"}]}]},
        {"name": "d", "type": enum("A")},
        {"name": "e", "type": "float"},
        {"name": "kept", "type": "string"},
    ]
    writer = {"type": "record", "name": "R", "fields": inner}
    reader = {"type": "record", "name": "R", "fields": [inner[-1]]}
    value = {
        "a": [{"k": "v", "n": None}, {}, {"d": 2.5}],
        "b": b"123",
        "c": {"x": True},
        "d": "A",
        "e": 0.5,
        "kept": "!",
    }
    assert resolved(writer, reader, value) == {"kept": "!"}


def test_blocks_with_sizes_are_passed_over_at_once() -> None:
    writer = {"type": "record", "name": "R", "fields": [
        {"name": "a", "type": {"type": "array", "items": "string"}}, {"name": "x", "type": "int"},
    ]}  # fmt: skip
    reader = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}
    payload = b"\x03\x0c\xff\xff\xff\xff\xff\xff\0\x0e"
    assert decoder(source(writer), source(reader)).decode(pa.array([payload])).columns.to_pylist() == [{"x": 7}]
