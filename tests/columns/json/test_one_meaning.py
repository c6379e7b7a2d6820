"""One meaning of JSON: what the compiled loop reads is what Python reads, whatever stands in the rows beside it.

`OTTLA_JSON_EXAMPLES` asks for more examples.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import os
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.json.texts import NUMBERS, OTHERS, PROPERTIES, SCHEMA, STRINGS, WHOLE, payloads, source

from ottla.columns.json.decoder import JsonDecoder
from ottla.schemas.json.fit import Unfit, check_of
from ottla.schemas.json.payload import NotJson, parse
from ottla.schemas.json.shapes import JsonShape, ShapeKind, shape_of

EXAMPLES = int(os.environ.get("OTTLA_JSON_EXAMPLES", "150"))
many = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=EXAMPLES)
SHAPE = shape_of(source(SCHEMA))
DECODER = JsonDecoder(source(SCHEMA))
CHECK = check_of(SHAPE)
BAD = object()


def expected(payload: bytes) -> Any:
    """What Python makes of a payload; BAD if it refuses."""
    try:
        value = parse(payload)
        CHECK(value)
    except (NotJson, Unfit):
        return BAD
    return as_column(SHAPE, value)


def as_column(shape: JsonShape, value: Any) -> Any:
    if value is None:
        return None
    if shape.kind is ShapeKind.STRUCT:
        return {name: as_column(each, value.get(name)) for name, each in shape.fields}
    if shape.kind is ShapeKind.LIST:
        return [as_column(shape.item, each) for each in value]
    if shape.kind is ShapeKind.MAP:
        return {name: as_column(shape.item, each) for name, each in value.items()}
    if shape.kind is ShapeKind.DOUBLE:
        return float(value)
    if shape.kind is ShapeKind.MOMENT:
        return micros(value)
    if shape.kind is ShapeKind.DAY:
        return dt.date.fromisoformat(value)
    return base64.b64decode(value) if shape.kind is ShapeKind.BYTES else value


def micros(text: str) -> int:
    """Of a time that is known to be one, whatever year it is in UTC."""
    at = dt.datetime.fromisoformat(text.upper().replace(" ", "T")[:26].rstrip("Z") if "." not in text else text.upper())
    offset = at.utcoffset() or dt.timedelta()
    return (at.replace(tzinfo=None) - dt.datetime(1970, 1, 1) - offset) // dt.timedelta(microseconds=1)


def same(shape: JsonShape, found: Any, wanted: Any) -> bool:
    if found is None or wanted is None:
        return found is wanted
    if shape.kind is ShapeKind.STRUCT:
        return all(same(each, found[name], wanted[name]) for name, each in shape.fields)
    if shape.kind is ShapeKind.LIST:
        return len(found) == len(wanted) and all(same(shape.item, *pair) for pair in zip(found, wanted, strict=True))
    if shape.kind is ShapeKind.MAP:
        keys = [key for key, _ in found]
        return sorted(keys) == sorted(wanted) and all(same(shape.item, each, wanted[key]) for key, each in found)
    if shape.kind is ShapeKind.ANY:
        return found == wanted if isinstance(wanted, str) else parse(found.encode()) == wanted or "inf" in repr(wanted)
    if shape.kind is ShapeKind.DOUBLE:
        return found == wanted and math.isfinite(found)
    return bool(found == wanted)


def decoded(rows: list[bytes | None]) -> list[Any]:
    made = DECODER.decode(pa.array(rows, pa.binary()))
    made.columns.validate(full=True)
    columns = made.columns.to_pylist() if not len(rows) else with_micros(made.columns)
    assert all(columns[row] is None and why for row, why in made.reasons.items())
    assert "this is not JSON of this schema" not in made.reasons.values(), "Python has no reason"
    return [BAD if row in made.reasons else each for row, each in enumerate(columns)]


def with_micros(columns: pa.Array) -> list[Any]:
    """As Python's values, but times, which may lie outside of Python's years, as numbers."""
    fields = list(columns.type)
    flat = [columns.field(index) for index in range(len(fields))]
    flat = [each.cast(pa.int64()) if pa.types.is_timestamp(each.type) else each for each in flat]
    rows = [each.to_pylist() for each in flat]
    valid = columns.is_valid().to_pylist()
    named = [dict(zip([field.name for field in fields], row, strict=True)) for row in zip(*rows, strict=True)]
    return [row if there else None for row, there in zip(named, valid, strict=True)]


def agree(found: Any, payload: bytes) -> bool:
    wanted = expected(payload)
    return found is wanted if wanted is BAD or found is BAD else same(SHAPE, found, wanted)


GOOD = b'{"id": 1, "s": "x", "tags": [1, 2], "inner": {"b": [{"c": 1.5}]}}'


def check(rows: list[bytes]) -> None:
    together = decoded([*rows])
    for payload, found in zip(rows, together, strict=True):
        assert agree(found, payload), (payload, found, expected(payload))
    beside_good = decoded([each for payload in rows for each in (GOOD, payload, None)])
    beside_bad = decoded([each for payload in rows for each in (b"{", payload, b'{"id":"x","tags":[7],"any":[1')])
    assert repr(beside_good[1::3]).replace(repr(BAD), "BAD") == repr(together).replace(repr(BAD), "BAD")
    assert repr(beside_bad[1::3]) == repr(together)
    assert all(agree(each, GOOD) for each in beside_good[::3]) and set(beside_good[2::3]) <= {None}
    assert all(each is BAD for each in beside_bad[::3])


def test_every_known_spelling_in_every_field() -> None:
    spelt = [*NUMBERS, *STRINGS, *OTHERS]
    texts = ["{" + json.dumps(name) + ":" + value + "}" for name in PROPERTIES for value in spelt]
    texts += ['{"tags":[1,' + value + '],"counts":{"k":1,"k":' + value + "}}" for value in spelt]
    rows = [*WHOLE, *(text.encode("utf-8", "surrogatepass") for text in texts)]
    check(rows)
    for payload in rows[::7]:
        (alone,) = decoded([payload])
        assert agree(alone, payload), (payload, alone)


@many
@given(st.lists(payloads, min_size=1, max_size=12))
def test_a_row_means_the_same_alone_and_beside_any_other(rows: list[bytes]) -> None:
    check(rows)
    (alone,) = decoded(rows[:1])
    assert agree(alone, rows[0])


def test_of_a_name_that_is_there_twice_the_last_counts() -> None:
    rows = [
        b'{"id":1,"id":2}', b'{"id":"x","id":2}', b'{"id":2,"id":"x"}', b'{"id":1,"i\\u0064":3}', b'{"id":1,"id":null}',
        b'{"s":"\\ud800","s":""}', b'{"tags":[1,2,3],"tags":[4]}', b'{"counts":{"a":"x","b":2,"a":1}}',
        b'{"inner":{"b":[{"c":1}]},"inner":{"a":"y"}}',
    ]  # fmt: skip
    check(rows)
    found = decoded([*rows])
    assert [each if each is BAD else each["id"] for each in found[:5]] == [2, 2, BAD, 3, None]
    assert found[7]["counts"] == [("b", 2), ("a", 1)]


def test_large_maps_and_lists_and_strings() -> None:
    counts = ",".join(f'"k{number % 3000}":{number}' for number in range(5000))
    tags = ",".join(map(str, range(5000)))
    check(
        [
            b'{"counts":{' + counts.encode() + b'},"tags":[' + tags.encode() + b"]}",
            b'{"s":"' + b"\\u00e9x" * 50_000 + b'"}',
            b'{"any":[' + b"1e99, " * 5000 + b"1]}",
            b'{"inner":{"b":[' + b'{"c":0.30000000000000004},{},' * 2000 + b"null]}}",
        ]
    )
