"""Elements: what is put into them is escaped, and what could run or lead away is refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ottla.console
from ottla.console.html import UnsafeMarkup, markup_of, tag

SOURCE = Path(ottla.console.__file__).parent


def test_text_is_escaped() -> None:
    assert tag("a", "<b>", href="/x?a=1&b=2") == '<a href="/x?a=1&amp;b=2">&lt;b&gt;</a>'
    assert markup_of([tag("br"), "<br>", None, 1]) == "<br>&lt;br&gt;1"


@pytest.mark.parametrize(
    "address", ["//evil.example", "/\\evil.example", "javascript:alert(1)", "", "/\t/evil.example", "/a\n", "/\x7f"]
)
def test_an_address_stays_inside_the_console(address: str) -> None:
    for name in ("href", "src", "action", "formaction", "data_live", "data_stream"):
        with pytest.raises(UnsafeMarkup):
            tag("a", **{name: address})


def test_elements_run_no_script() -> None:
    for name in ("onclick", "style", "style_"):
        with pytest.raises(UnsafeMarkup):
            tag("a", **{name: "x"})
    with pytest.raises(UnsafeMarkup):
        tag("br", "x")


def test_only_one_module_makes_markup() -> None:
    """Text becomes HTML in `html.py` alone, so that nobody else decides what is escaped."""
    makes: dict[str, list[int]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if (isinstance(called, ast.Name) and called.id == "Markup") or (
                isinstance(called, ast.Attribute) and called.attr == "Markup"
            ):
                makes.setdefault(str(path.relative_to(SOURCE)), []).append(node.lineno)
    assert makes.keys() == {"html.py"}, makes
