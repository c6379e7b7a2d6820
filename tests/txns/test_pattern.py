"""Patterns of transactional ids: RE2's words for things, and nothing that RE2 does not know."""

import pytest

from ottla.model.errors import ApiError, ErrorCode
from ottla.txns.pattern import pattern_of


@pytest.mark.parametrize(
    ("pattern", "id"),
    [
        ("shop-.*", "shop-1"),
        (r"\Qa.b*\E-[0-9]+", "a.b*-7"),
        (r"\Qto the end.", "to the end."),
        (r"a\z", "a"),
        ("(?<name>x)+", "xx"),
        ("(?P<name>x)+", "xx"),
        ("(?i)SHOP", "shop"),
        (r"\d{2}", "42"),
        ("[(?=]", "="),
    ],
)
def test_matches(pattern: str, id: str) -> None:
    assert pattern_of(pattern).fullmatch(id)
    assert not pattern_of(pattern).fullmatch(f"another {id}")


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "[",
        "*",
        "a{2,1}",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?<!a)b",
        "(?>a)",
        r"(a)\1",
        "(?P<n>a)(?P=n)",
        "a*+",
        "a++",
    ],
)
def test_refuses(pattern: str) -> None:
    with pytest.raises(ApiError) as refused:
        pattern_of(pattern)
    assert refused.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
