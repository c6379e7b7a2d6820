"""A broker's contract (`full`) and the reader agree on what is readable JSON: what one lets in, the other reads.

The contract says more: it holds values to all keywords of the schema (null only where a type says so, limits,
patterns), which are for validators. And `jsonschema` alone says less: it knows nothing of what columns can hold.
"""

from __future__ import annotations

import json

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.columns.json.texts import NUMBERS, OTHERS, PROPERTIES, SCHEMA, STRINGS, WHOLE, payloads, source

from ottla.columns.json.decoder import JsonDecoder
from ottla.schemas.readable import reader_of

READER = JsonDecoder(source(SCHEMA))
CONTRACT = reader_of(source(SCHEMA))
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
# What columns cannot hold although the schema, taken literally, admits it.
ONLY_OURS = (
    "is not JSON: ", "does not fit 64 bits", "is too large", "is no time", "is no date", "is no base64",
    "is no whole number",  # 1.0000000000000000000000001, which json takes for 1.0
)  # fmt: skip


def check(rows: list[bytes]) -> tuple[int, int]:
    """Each payload by itself, to both; how many were let in, and how many refused."""
    bad = READER.decode(pa.array(rows, pa.binary())).reasons
    let_in = refused = 0
    for row, payload in enumerate(rows):
        why = CONTRACT(payload, None)
        if why is None:
            let_in += 1
            assert row not in bad, (payload, bad[row])
        else:
            refused += 1
            assert row in bad or "None is not of type" in why or "not of type 'object'" in why, (payload, why)
        try:
            is_valid = VALIDATOR.is_valid(json.loads(payload))
        except (ValueError, RecursionError):
            is_valid = False
        if is_valid and why is not None:
            assert any(each in why for each in ONLY_OURS), (payload, why)
        assert is_valid or why is not None or len(payload) > 4300, payload  # more digits than Python's int takes
    return let_in, refused


def test_every_known_spelling() -> None:
    texts = ["{" + json.dumps(name) + ":" + value + "}" for name in PROPERTIES for value in NUMBERS + STRINGS + OTHERS]
    let_in, refused = check([*WHOLE, *(text.encode("utf-8", "surrogatepass") for text in texts)])
    assert let_in > 250 and refused > 1000


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
@given(st.lists(payloads, min_size=1, max_size=8))
def test_any_text(rows: list[bytes]) -> None:
    check(rows)


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        ({"properties": {"n": {"type": "integer"}, "a": {"$ref": "#"}}}, b'{"a": {"n": 99999999999999999999999}}'),
        ({"type": ["string", "integer"]}, b"99999999999999999999999"),
        ({"type": "object"}, b'{"a": 99999999999999999999999}'),
    ],
)
def test_where_there_is_no_column_of_integers_they_may_be_larger(schema: object, payload: bytes) -> None:
    assert reader_of(source(schema))(payload, None) is None
