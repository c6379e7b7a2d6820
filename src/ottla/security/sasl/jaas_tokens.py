"""The tokens of a JAAS configuration, as Java's StreamTokenizer finds them.

Words are letters, digits, `.`, `_`, `$`, `-` and everything beyond ASCII, and do not begin with a digit, `.` or a `-`
before one of them; such text is a number, which JAAS has no use for. Strings are in double or single quotes and end at
the end of their line at the latest; they have Java's escapes. Comments begin with `//` or `/`, or are between `/*`
and `*/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

# What a token can be, if it is not one character that stands for itself.
WORD: Final = "word"
STRING: Final = '"'
SINGLE_QUOTED: Final = "'"
NUMBER: Final = "number"
END: Final = "end"

_LETTERS = "a-zA-Z_$\\-\\u00a0-\\U0010ffff"
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)


_TOKEN = re.compile(
    r"(?P<space>[\x00-\x20]+)"
    r"|(?P<comment>/\*.*?(?:\*/|\Z)|/[^\r\n]*)"
    r"|(?P<number>-?[0-9.][0-9.]*)"
    r"|(?P<minus>-(?![0-9.]))"
    rf"|(?P<word>[{_LETTERS}][{_LETTERS}0-9.]*)"
    r"""|"(?P<string>(?:\\.|[^"\\\r\n])*)(?:"|(?=[\r\n])|\\?\Z)"""
    r"|'(?P<single>(?:\\.|[^'\\\r\n])*)(?:'|(?=[\r\n])|\\?\Z)"
    r"|(?P<other>.)",
    re.DOTALL,
)


class JaasToken(NamedTuple):
    """`kind` is one of the kinds above, or the character itself. `text` is None unless it is a word or a string."""

    kind: str
    text: str | None


def jaas_tokens(text: str) -> Iterator[JaasToken]:
    """Find the tokens of a text, and END after them again and again."""
    for found in _TOKEN.finditer(text):
        kind, content = found.lastgroup, found.group()
        if kind == "word":
            yield JaasToken(WORD, content)
        elif kind == "string":
            yield JaasToken(STRING, _unescaped(found["string"]))
        elif kind == "single":
            yield JaasToken(SINGLE_QUOTED, _unescaped(found["single"]))
        elif kind == "number":
            yield JaasToken(NUMBER, None)
        elif kind in ("minus", "other"):
            yield JaasToken(content, None)
    while True:
        yield JaasToken(END, None)


def _unescaped(content: str) -> str:
    return _ESCAPE.sub(lambda found: _escaped(found[1]), content)


def _escaped(code: str) -> str:
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)
