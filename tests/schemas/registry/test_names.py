"""Names of subjects and contexts."""

from __future__ import annotations

import pytest

from ottla.schemas.registry.names import beside, is_valid, normal, normal_context, split


@pytest.mark.parametrize(
    ("written", "context", "subject", "normalized"),
    [
        ("orders", ".", "orders", "orders"),
        (":.:orders", ".", "orders", "orders"),
        (":.west:orders", ".west", "orders", ":.west:orders"),
        (":.west:", ".west", "", ":.west:"),
        (":.west", ".west", "", ":.west:"),
        (":.a.b:x:y", ".a.b", "x:y", ":.a.b:x:y"),
        (":*:orders", "*", "orders", ":*:orders"),
        (":orders:", ".", ":orders:", ":orders:"),
        ("", ".", "", ""),
    ],
)
def test_a_name_is_taken_apart(written: str, context: str, subject: str, normalized: str) -> None:
    assert split(written) == (context, subject)
    assert normal(written) == normalized


@pytest.mark.parametrize(
    ("parent", "subject", "meant"),
    [
        ("a", "b", "b"),
        (":.west:a", "b", ":.west:b"),
        (":.west:a", ":.east:b", ":.east:b"),
        ("a", ":.east:b", ":.east:b"),
    ],
)
def test_a_subject_beside_another(parent: str, subject: str, meant: str) -> None:
    assert beside(parent, subject) == meant


@pytest.mark.parametrize(
    ("given", "prefix"),
    [("west", ":.west:"), (".west", ":.west:"), (":.west:", ":.west:"), (".", ""), (":.:", ""), ("a:b", None)],
)
def test_contexts_as_paths_give_them(given: str, prefix: str | None) -> None:
    assert normal_context(given) == prefix


def test_names_that_may_be() -> None:
    assert all(is_valid(name) for name in ("a", "", "a b", "ü", ":.west:a", "a/b"))
    assert not any(
        is_valid(name) for name in ("a\x00", "\x7f", "__EMPTY", ":.west:__GLOBAL", ":.__GLOBAL:a", "a" * 2_000)
    )
    assert is_valid(":.__GLOBAL:", for_settings=True)
