"""JAAS configurations, and errors that do not repeat secrets."""

from __future__ import annotations

import pytest

from ottla.model import limits
from ottla.security.sasl.jaas import (
    PLAIN_MODULE,
    InvalidJaas,
    LoginModule,
    parse_jaas_line,
    plain_users,
)


def options(text: str) -> dict[str, str]:
    return dict(parse_jaas_line(f"a.Module required {text};").options)


def test_a_line_as_in_kafkas_documentation() -> None:
    module = parse_jaas_line(f'{PLAIN_MODULE} required username="admin" password="x" user_admin="x" user_bob="y";')
    assert (module.name, module.flag) == (PLAIN_MODULE, "required")
    assert module.options == {"username": "admin", "password": "x", "user_admin": "x", "user_bob": "y"}
    assert plain_users([module]) == {"admin": "x", "bob": "y"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ('a="b"c="d"', {"a": "b", "c": "d"}),
        ("a=b\nc\t=\r\nd", {"a": "b", "c": "d"}),
        ("a=b.c-d_e$f9", {"a": "b.c-d_e$f9"}),
        ("a='b \"c'", {"a": 'b "c'}),
        ('"a b"="c"', {"a b": "c"}),
        ('a="b" a="c"', {"a": "c"}),
        (r'a="\"\\\n\t\a\b\f\r\v\q"', {"a": '"\\\n\t\a\b\f\r\vq'}),
        (r'a="\1\12\123\1234\400\8"', {"a": "\1\n" + "S" + "S4" + " 0" + "8"}),
        ('a="b;c"', {"a": "b;c"}),
        ('a="" b=""', {"a": "", "b": ""}),
        ("a=b // c=d\n e=f", {"a": "b", "e": "f"}),
        ("a=b / c=d\n e=f", {"a": "b", "e": "f"}),
        ("a=/* c=d */b", {"a": "b"}),
        ("a=/*/ */b", {"a": "b"}),
        ('a="//" b="/*"', {"a": "//", "b": "/*"}),
        ("ключ=значение", {"ключ": "значение"}),
        ('a="😀,é"', {"a": "😀,é"}),
        ('a="b\nc="d"', {"a": "b", "c": "d"}),
        ('a="b\\\nc"', {"a": "b\nc"}),
    ],
)
def test_options_of_a_line(text: str, expected: dict[str, str]) -> None:
    assert options(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "// nothing",
        "secret",
        "secret;",
        "secret secret;",
        "secret 'secret' a=b;",
        "a.Module required",
        'a.Module required a="secret"',
        'a.Module required a="secret;',
        "a.Module required a=",
        "a.Module required a;",
        "a.Module required a=;",
        "a.Module required a==secret;",
        "a.Module required password=1secret;",
        "a.Module required password=-secret;",
        "a.Module required password=.secret;",
        "a.Module required password=top@secret;",
        'a.Module required password=top"secret";',
        "a.Module required password=top secret;",
        "a.Module required password=top;secret",
        "a.Module required password=top;secret;",
        'a.Module required password="top"secret";',
        "a.Module required /* password=secret;",
        'a.Module required 1="secret";',
        "a.Module required; secret.Module required; third.Module required;",
        'a.Module required password="secret\\',
        "1 required password=secret;",
        "a.Module required secret=" + "x" * limits.JAAS_CHARACTERS_MAX + ";",
    ],
)
def test_a_line_that_is_wrong(text: str) -> None:
    with pytest.raises(InvalidJaas) as refused:
        parse_jaas_line(text)
    assert "secret" not in str(refused.value)
    assert "top" not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_options_are_not_printed() -> None:
    assert "secret" not in repr(parse_jaas_line("a.Module required password=secret;"))


def test_the_first_module_that_has_a_user_wins() -> None:
    modules = [LoginModule(PLAIN_MODULE, "required", {"user_a": password}) for password in ("1", "2")]
    modules.insert(0, LoginModule("other.Module", "required", {"user_a": "0"}))
    assert plain_users(modules) == {"a": "1"}
