"""Random Avro schemas with data: what fastavro writes, and what the columns are to hold."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any, NamedTuple

import fastavro
from hypothesis import strategies as st

from ottla.schemas.schema import SchemaSource

NAMES = [f"f{index}" for index in range(4)]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Case(NamedTuple):
    """A type: its schema, values as fastavro takes them, and how such a value looks in a column."""

    schema: Any
    values: st.SearchStrategy[Any]
    shown: Any  # value → what the column holds


def same(value: Any) -> Any:
    return value


INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
MICROS = st.integers(-(10**14), 4 * 10**14)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def moment(micros: int) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=micros)


def decimal_of(schema: Any, precision: int, scale: int) -> Case:
    limit = 10**precision - 1
    return Case(
        {**schema, "logicalType": "decimal", "precision": precision, "scale": scale},
        st.integers(-limit, limit).map(lambda number: Decimal(f"{number}E-{scale}")),  # scaleb would round
        same,
    )


SIMPLE = [
    Case("null", st.none(), same),
    Case("boolean", st.booleans(), same),
    Case("int", INT, same),
    Case("long", LONG, same),
    Case("float", st.floats(width=32, allow_nan=False), same),
    Case("double", st.floats(allow_nan=False), same),
    Case("bytes", st.binary(max_size=12), same),
    Case("string", TEXT, same),
    Case({"type": "int", "logicalType": "date"}, st.dates(dt.date(1900, 1, 1)), same),
    Case({"type": "long", "logicalType": "timestamp-micros"}, MICROS.map(moment), same),
    Case(
        {"type": "long", "logicalType": "timestamp-millis"}, MICROS.map(lambda each: moment(each // 1000 * 1000)), same
    ),
    Case(
        {"type": "long", "logicalType": "local-timestamp-micros"},
        MICROS.map(lambda each: moment(each).replace(tzinfo=None)),
        same,
    ),
    Case({"type": "string", "logicalType": "uuid"}, st.uuids(), str),
    Case({"type": "int", "logicalType": "time-millis"}, st.integers(0, 86_399_999), same),
    decimal_of({"type": "bytes"}, 38, 9),
    decimal_of({"type": "bytes"}, 4, 2),
]


@st.composite
def cases(draw: st.DrawFn, depth: int = 3, in_union: bool = False, names: list[str] | None = None) -> Case:
    names = names if names is not None else []
    kinds = ["simple"] * 3 + ["fixed", "enum", "decimal"]
    if depth:
        kinds += ["record", "record", "array", "map"]
        if not in_union:
            kinds += ["optional", "union"]
    kind = draw(st.sampled_from(kinds))
    if kind == "simple":
        return draw(st.sampled_from(SIMPLE))
    if kind in ("array", "map"):
        inner = draw(cases(depth - 1, False, names))
        if kind == "array":
            return Case(
                {"type": "array", "items": inner.schema},
                st.lists(inner.values, max_size=4),
                lambda values: [inner.shown(value) for value in values],
            )
        return Case(
            {"type": "map", "values": inner.schema},
            st.dictionaries(TEXT, inner.values, max_size=3),
            lambda values: [(key, inner.shown(value)) for key, value in values.items()],
        )
    if kind in ("optional", "union"):
        return draw(union_cases(depth, kind == "optional", names))
    name = f"N{len(names)}"
    names.append(name)
    if kind == "fixed":
        size = draw(st.integers(0, 5))
        return Case({"type": "fixed", "name": name, "size": size}, st.binary(min_size=size, max_size=size), same)
    if kind == "decimal":
        return decimal_of({"type": "fixed", "name": name, "size": draw(st.integers(5, 20))}, 10, 3)
    if kind == "enum":
        symbols = [f"S{index}" for index in range(draw(st.integers(1, 4)))]
        return Case({"type": "enum", "name": name, "symbols": symbols}, st.sampled_from(symbols), same)
    return draw(record_cases(depth, name, names))


@st.composite
def record_cases(draw: st.DrawFn, depth: int, name: str, names: list[str]) -> Case:
    fields = {each: draw(cases(depth - 1, False, names)) for each in NAMES[: draw(st.integers(0, 4))]}
    return Case(
        {
            "type": "record",
            "name": name,
            "fields": [{"name": key, "type": case.schema} for key, case in fields.items()],
        },
        st.fixed_dictionaries({key: case.values for key, case in fields.items()}),
        lambda value: {key: case.shown(value[key]) for key, case in fields.items()},
    )


def branch_name(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    return schema.get("name", schema["type"])


@st.composite
def union_cases(draw: st.DrawFn, depth: int, optional: bool, names: list[str]) -> Case:
    branches: list[Case] = []
    for _ in range(1 if optional else draw(st.integers(1, 4))):
        case = draw(cases(depth - 1, True, names))
        if branch_name(case.schema) not in [branch_name(each.schema) for each in branches]:
            branches.append(case)
    if optional and branches[0].schema != "null":
        branches.insert(draw(st.integers(0, 1)), SIMPLE[0])
    members = [index for index, case in enumerate(branches) if case.schema != "null"]
    kinds = {branch_name(branches[index].schema) for index in members}
    merged = len(members) == 2 and kinds in ({"int", "long"}, {"float", "double"})

    def shown(pair: tuple[str, Any]) -> Any:
        index = [branch_name(case.schema) for case in branches].index(pair[0])
        if index not in members:
            return None
        if merged:
            value = pair[1]
            raw = {dt.date: lambda: (value - EPOCH.date()).days}.get(type(value))
            if isinstance(value, dt.datetime):
                return to_raw(branches[index].schema, value)
            return raw() if raw else value
        value = branches[index].shown(pair[1])
        if len(members) == 1:
            return value
        return {f"member{place}": value if each == index else None for place, each in enumerate(members)}

    values = st.one_of(
        [case.values.map(lambda value, case=case: (branch_name(case.schema), value)) for case in branches]
    )
    return Case([case.schema for case in branches], values, shown)


def to_raw(schema: Any, value: dt.datetime) -> int:
    micros = (value.replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1)
    return micros // 1000 if schema["logicalType"].endswith("millis") else micros


def source(schema: Any) -> SchemaSource:
    return SchemaSource(json.dumps(schema))


def encoded(schema: Any, value: Any, prefix: bytes = b"") -> bytes:
    made = io.BytesIO()
    made.write(prefix)
    fastavro.schemaless_writer(made, fastavro.parse_schema(schema), value)
    return made.getvalue()
