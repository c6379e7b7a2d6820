"""Conditions by a path."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.operations.records.json_paths import WrongPath, json_condition

ORDER = {
    "user": {"name": "Ännchen", "age": 41, "vip": True},
    "lines": [{"sku": "a", "price": 5}, {"sku": "b", "price": 12.5}],
    "tags": ["new", "gift"],
    "odd name": {"]": 1},
    "none": None,
}


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("$", True),
        ("$.user", True),
        ("$.user.name", True),
        ("$.user.nobody", False),
        ("$.none", True),
        ('$.user.name == "Ännchen"', True),
        ("$.user.name == Ännchen", True),
        ('$.user.name != "Ännchen"', False),
        ("$.user.age == 41", True),
        ('$.user.age == "41"', False),
        ("$.user.vip == true", True),
        ("$.user.vip == 1", False),
        ("$.user.age >= 41", True),
        ("$.user.age > 41", False),
        ("$.user.vip > 0", False),
        ('$.user.name < "a"', False),
        ("$.lines[0].price == 5", True),
        ("$.lines[-1].price == 12.5", True),
        ("$.lines[2].price == 5", False),
        ("$.lines[*].price > 12", True),
        ("$.lines[*].price > 13", False),
        ('$.tags[*] == "gift"', True),
        ('$.tags contains "GIFT"', True),
        ("$.*.name contains chen", True),
        ('$["odd name"]["]"] == 1', True),
        ("$.none == null", True),
    ],
)
def test_a_condition(path: str, holds: bool) -> None:
    assert json_condition(path).matches(ORDER) is holds


@pytest.mark.parametrize(("text", "holds"), [("NNCHEN", True), ("ännchen", True), ("nobody", False)])
def test_a_path_and_a_text(text: str, holds: bool) -> None:
    assert json_condition("$.user", text).matches(ORDER) is holds


@pytest.mark.parametrize(
    "path", ["", "user", "$user", "$.", "$[x]", "$.a =", "$.a == ", '$.a == "x', "$.a < null", "$..a"]
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(WrongPath):
        json_condition(path)


def test_a_deep_path_is_refused() -> None:
    with pytest.raises(WrongPath, match="at most"):
        json_condition("$" + ".a" * 1_000)


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        condition = json_condition("$" + text)
    except WrongPath:
        return
    condition.matches(ORDER)
