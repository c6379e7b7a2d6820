"""The text of a .proto file as tokens, and a cursor over them.

Rules: every token has its position; every error is an `InvalidSchema` that names line and column.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from enum import Enum
from typing import NamedTuple, NoReturn

from ottla.model.limits import SCHEMA_NAME_CHARS_MAX, SCHEMA_NAME_PARTS_MAX
from ottla.schemas.protobuf.elements import TextPosition
from ottla.schemas.schema import InvalidSchema


class TokenKind(Enum):
    WORD = "word"
    NUMBER = "number"
    STRING = "string"
    SYMBOL = "symbol"
    END = "end of the file"


class ProtoToken(NamedTuple):
    kind: TokenKind
    text: str
    at: int


_NEWLINE = re.compile(r"\n")
_SKIPPED = re.compile(r"(?:[ \t\r\n\f\v\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<word>[A-Za-z_][A-Za-z_0-9]*)
      |(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)
      |(?P<string>"(?:[^"\\\n\0]|\\[^\n])*"|'(?:[^'\\\n\0]|\\[^\n])*')
      |(?P<symbol>[^\s\w"'])
    """,
    re.VERBOSE | re.ASCII,
)
_KINDS = {kind.value: kind for kind in TokenKind}
_ESCAPE = re.compile(
    rb"\\(?:[xX](?P<hex>[0-9a-fA-F]{1,2})|(?P<octal>[0-7]{1,3})|u(?P<u>[0-9a-fA-F]{4})"
    rb"|U(?P<U>[0-9a-fA-F]{8})|(?P<char>.))",
    re.DOTALL,
)
_ESCAPED = {
    **{b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"},
    **{b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?"},
}


def fail_at(text: str, at: int, message: str) -> NoReturn:
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    raise InvalidSchema(f"line {line}, column {column}: {message}")


def tokenize(text: str) -> list[ProtoToken]:
    tokens = []
    at = 0
    while True:
        skipped = _SKIPPED.match(text, at)
        at = skipped.end() if skipped else at
        if at == len(text):
            tokens.append(ProtoToken(TokenKind.END, "", at))
            return tokens
        if text.startswith("/*", at):
            fail_at(text, at, "a comment begins here that never ends")
        found = _TOKEN.match(text, at)
        if found is None:
            if text[at] in "\"'":
                fail_at(text, at, "a string begins here that does not end on its line")
            fail_at(text, at, f"unexpected character {text[at]!r}")
        kind = _KINDS[found.lastgroup or ""]
        end = found.end()
        if kind is TokenKind.NUMBER and end < len(text) and (text[end].isalnum() or text[end] in "_."):
            fail_at(text, at, f"{found.group() + text[end]!r} is no number")
        tokens.append(ProtoToken(kind, found.group(), at))
        at = end


class TokenCursor:
    """The position of a parser in the tokens of a text."""

    __slots__ = ("_index", "_lines", "_text", "_tokens")

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(found.end() for found in _NEWLINE.finditer(text))]
        self._tokens = tokenize(text)
        self._index = 0

    @property
    def token(self) -> ProtoToken:
        return self._tokens[self._index]

    @property
    def position(self) -> TextPosition:
        at = self.token.at
        line = bisect_right(self._lines, at)
        return TextPosition(line, at - self._lines[line - 1] + 1)

    @property
    def at_end(self) -> bool:
        return self.token.kind is TokenKind.END

    def following(self, count: int = 1) -> ProtoToken:
        return self._tokens[min(self._index + count, len(self._tokens) - 1)]

    def fail(self, message: str) -> NoReturn:
        fail_at(self._text, self.token.at, message)

    def expected(self, what: str) -> NoReturn:
        token = self.token
        found = repr(token.text) if token.text else "the end of the file"
        self.fail(f"expected {what}, found {found}")

    def next(self) -> ProtoToken:
        token = self.token
        if token.kind is not TokenKind.END:
            self._index += 1
        return token

    def sees(self, text: str) -> bool:
        """Return whether this symbol or word is next."""
        token = self.token
        return token.text == text and token.kind in (TokenKind.SYMBOL, TokenKind.WORD)

    def accept(self, text: str) -> bool:
        found = self.sees(text)
        if found:
            self._index += 1
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.expected(repr(text))

    def word(self, what: str) -> str:
        if self.token.kind is not TokenKind.WORD:
            self.expected(what)
        self._check_length(self.token.text)
        return self.next().text

    def _check_length(self, name: str) -> None:
        """Check the length of a name: descriptors store each element with all names around it, so
        these must be short.
        """
        if len(name) > SCHEMA_NAME_CHARS_MAX or name.count(".") > SCHEMA_NAME_PARTS_MAX:
            self.fail(f"a name has more than {SCHEMA_NAME_CHARS_MAX} characters or {SCHEMA_NAME_PARTS_MAX} parts")

    def dotted(self, what: str) -> str:
        """Read a name that may be qualified: `a.b.c` or `.a.b.c`."""
        parts = [""] if self.accept(".") else []
        parts.append(self.word(what))
        while self.accept("."):
            parts.append(self.word(what))
        name = ".".join(parts)
        self._check_length(name)
        return name

    def integer(self, what: str, low: int, high: int) -> int:
        begin = self.token
        negative = self.accept("-")
        token = self.token
        number = whole_number(token.text) if token.kind is TokenKind.NUMBER else None
        if number is None:
            self.expected(what)
        number = -number if negative else number
        if not low <= number <= high:
            fail_at(self._text, begin.at, f"{number} is out of range: {what} is from {low} to {high}")
        self.next()
        return number

    def string(self, what: str) -> bytes:
        """Read a string, or several adjacent ones that are concatenated."""
        if self.token.kind is not TokenKind.STRING:
            self.expected(what)
        parts = []
        while (token := self.token).kind is TokenKind.STRING:
            parts.append(self._unescape(token.text[1:-1].encode()))
            self.next()
        return b"".join(parts)

    def string_text(self, what: str) -> str:
        token = self.token
        try:
            return self.string(what).decode()
        except UnicodeDecodeError:
            fail_at(self._text, token.at, f"{what} is not UTF-8")

    def _unescape(self, raw: bytes) -> bytes:
        def undo(found: re.Match[bytes]) -> bytes:
            if (digits := found["hex"]) is not None:
                return bytes((int(digits, 16),))
            if (digits := found["octal"]) is not None:
                return bytes((int(digits, 8) & 0xFF,))
            if (digits := found["u"] or found["U"]) is not None:
                code = int(digits, 16)
                if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                    self.fail(f"\\u{code:x} is no character")
                return chr(code).encode()
            plain = _ESCAPED.get(found["char"])
            if plain is None:
                self.fail(f"a string has the unknown escape {found.group().decode(errors='replace')}")
            return plain

        return _ESCAPE.sub(undo, raw) if b"\\" in raw else raw


_WHOLE = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*")
# Longer than any number of 64 bits in any base: longer tokens are not converted.
_DIGITS_MAX = 25


def whole_number(text: str) -> int | None:
    """Return the number of a token in decimal, hexadecimal or octal; None if it is not a whole number."""
    if _WHOLE.fullmatch(text) is None:
        return None
    if len(text) > _DIGITS_MAX:
        return 1 << 4 * _DIGITS_MAX
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    return int(text, base=8 if text[0] == "0" else 10)
