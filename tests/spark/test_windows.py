"""Windows of all kinds, over the same few clicks."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ottla import spark as ottla

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

CLICKS = [("a", 0), ("a", 4), ("a", 9), ("a", 21), ("b", 8), ("b", 30)]


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        (
            lambda clicks: ottla.tumbling(clicks, "10 seconds", "who", time="at", grace="1 second"),
            {("a", 0, 10): 3, ("a", 20, 30): 1, ("b", 0, 10): 1, ("b", 30, 40): 1},
        ),
        (
            lambda clicks: ottla.hopping(clicks, "10 seconds", "5 seconds", "who", time="at", grace="1 second"),
            {
                ("a", -5, 5): 2,
                ("a", 0, 10): 3,
                ("a", 5, 15): 1,
                ("a", 15, 25): 1,
                ("a", 20, 30): 1,
                ("b", 0, 10): 1,
                ("b", 5, 15): 1,
                ("b", 25, 35): 1,
                ("b", 30, 40): 1,
            },
        ),
        (
            lambda clicks: ottla.sessions(clicks, "10 seconds", "who", time="at", grace="1 second"),
            {("a", 0, 19): 3, ("a", 21, 31): 1, ("b", 8, 18): 1, ("b", 30, 40): 1},
        ),
    ],
    ids=["tumbling", "hopping", "sessions"],
)
def test_windows(spark: Any, windows: Any, expected: dict[tuple[str, int, int], int]) -> None:
    at = [(who, datetime.fromtimestamp(1_000_000 + second, UTC)) for who, second in CLICKS]
    counted = windows(spark.createDataFrame(at, "who string, at timestamp")).count()
    (window,) = set(counted.columns) - {"who", "count"}
    rows = counted.selectExpr(
        "who", f"unix_seconds({window}.start) - 1000000", f"unix_seconds({window}.end) - 1000000", "count"
    ).collect()
    assert {(who, start, end): count for who, start, end, count in rows} == expected
