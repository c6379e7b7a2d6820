"""What a filter leaves to be read: never too little (that would be wrong), and as little as can be known."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.sql.bounds import TableBounds, bounds

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("value", pa.string()),
    ]
)
PARTITION, OFFSET, TIMESTAMP, VALUE = (pc.field(name) for name in SCHEMA.names)
MOMENT = pa.scalar(datetime(2026, 1, 1, 0, 0, 0, 123_456, tzinfo=UTC), pa.timestamp("us", tz="UTC"))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, TableBounds(5, 100, None)),
        (OFFSET >= 10, TableBounds(10, 100, None)),
        ((OFFSET >= 10) & (OFFSET < 20), TableBounds(10, 20, None)),
        (OFFSET == 17, TableBounds(17, 18, None)),
        (OFFSET.isin([17, 20]), TableBounds(17, 21, None)),
        ((OFFSET == 17) | (VALUE == "x"), TableBounds(5, 100, None)),
        ((OFFSET == 17) & (VALUE == "x"), TableBounds(17, 18, None)),
        (OFFSET >= 100, None),
        (OFFSET < 5, None),
        (PARTITION == 1, None),
        ((PARTITION == 0) & (OFFSET <= 7), TableBounds(5, 8, None)),
        (TIMESTAMP >= MOMENT, TableBounds(5, 100, 1_767_225_600_123)),
        ((TIMESTAMP >= MOMENT) | (PARTITION == 0), TableBounds(5, 100, None)),
    ],
)
def test_bounds(condition: Any, expected: TableBounds | None) -> None:
    assert bounds(SCHEMA, condition, 0, 5, 100) == expected


@given(
    st.lists(st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=="]), st.integers(-5, 40)), min_size=1, max_size=4),
    st.booleans(),
)
def test_nothing_that_fulfils_the_condition_is_left_out(terms: list[tuple[str, int]], both: bool) -> None:
    compare = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "==": int.__eq__}
    conditions = [getattr(OFFSET, f"__{name}__")(number) for name, number in _named(terms)]
    condition = conditions[0]
    for each in conditions[1:]:
        condition = condition & each if both else condition | each
    join = all if both else any
    wanted = {at for at in range(30) if join(compare[sign](at, number) for sign, number in terms)}
    found = bounds(SCHEMA, condition, 0, 0, 30)
    assert wanted <= (set() if found is None else set(range(found.start, found.end)))


def _named(terms: list[tuple[str, int]]) -> list[tuple[str, int]]:
    names = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq"}
    return [(names[sign], number) for sign, number in terms]
