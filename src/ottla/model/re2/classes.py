"""Named character classes and escaped characters, in RE2's syntax."""

from __future__ import annotations

import string
import unicodedata
from functools import lru_cache

from ottla.model import limits
from ottla.model.re2.chars import CharClass, Ranges, Test
from ottla.model.re2.nodes import RegexError
from ottla.model.re2.reader import PatternReader
from ottla.model.re2.scripts import script_ranges

BAD_RANGE = "invalid character class range"
BAD_ESCAPE = "invalid escape sequence"
TRAILING_BACKSLASH = "trailing backslash at end of expression"

_PERL = {
    "d": frozenset(string.digits),
    "s": frozenset("\t\n\f\r "),
    "w": frozenset(string.ascii_letters + string.digits + "_"),
}
_POSIX = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": frozenset(map(chr, range(128))),
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, (*range(32), 127))),
    "digit": frozenset(string.digits),
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(string.punctuation),
    "space": frozenset(string.whitespace),
    "upper": frozenset(string.ascii_uppercase),
    "word": _PERL["w"],
    "xdigit": frozenset(string.hexdigits),
}
_CATEGORIES = frozenset(
    "Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split()  # noqa: SIM905
)
_UNASSIGNED = "Cn"  # RE2 puts unassigned characters into no category
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_OCTAL = tuple("01234567")
_MAX_RUNE = 0x10FFFF


def is_word(char: str) -> bool:
    return char in _PERL["w"]


def perl_class(reader: PatternReader) -> CharClass | None:
    r"""Read a class like `\d` at the reader's position, or return None."""
    text = reader.peek(2)
    if len(text) < 2 or text[0] != "\\" or text[1].lower() not in _PERL:
        return None
    reader.skip(2)
    return CharClass(_PERL[text[1].lower()].__contains__, text[1].isupper())


def posix_class(reader: PatternReader) -> CharClass | None:
    """Read `[:alpha:]` or `[:^alpha:]` at the reader's position (inside a class), or return None."""
    end = reader.text.find(":]", reader.at + 2) if reader.starts("[:") else -1
    if end < 0:
        return None
    name = reader.text[reader.at + 2 : end]
    found = _POSIX.get(name.removeprefix("^"))
    if found is None:
        raise RegexError(BAD_RANGE)
    reader.at = end + 2
    return CharClass(found.__contains__, name.startswith("^"))


def unicode_class(reader: PatternReader) -> CharClass | None:
    r"""Read `\pL`, `\p{Greek}` or `\P{^Lu}` at the reader's position, or return None."""
    if not (reader.starts("\\p") or reader.starts("\\P")):
        return None
    negated = reader.text[reader.at + 1] == "P"
    reader.skip(2)
    if not reader.more:
        raise RegexError(BAD_RANGE)
    name = reader.take()
    if name == "{":
        end = reader.text.find("}", reader.at)
        if end < 0:
            raise RegexError(BAD_RANGE)
        name = reader.text[reader.at : end]
        reader.at = end + 1
    negated ^= name.startswith("^")
    return CharClass(_unicode(name.removeprefix("^")), negated)


@lru_cache(limits.REGEX_PATTERNS_MAX)
def _unicode(name: str) -> Test:
    """Return the test of a Unicode class; always the same object, so that a class that repeats a name tests it once."""
    if name == "Any":
        return Ranges([(0, _MAX_RUNE)])
    if name in _CATEGORIES or name in {each[0] for each in _CATEGORIES}:
        return lambda char: (found := unicodedata.category(char)).startswith(name) and found != _UNASSIGNED
    if name in script_ranges():
        within = Ranges(script_ranges()[name])
        return lambda char: within(char) and unicodedata.category(char) != _UNASSIGNED
    raise RegexError(BAD_RANGE)


def escaped(reader: PatternReader) -> str:
    """Read an escape at the reader's position and return the character it stands for."""
    reader.skip(1)
    if not reader.more:
        raise RegexError(TRAILING_BACKSLASH)
    char = reader.take()
    if char in "1234567" and reader.peek(1) not in _OCTAL:
        raise RegexError(BAD_ESCAPE)  # a backreference
    if char in _OCTAL:
        digits = char
        while len(digits) < 3 and reader.peek(1) in _OCTAL:
            digits += reader.take()
        return chr(int(digits, 8))
    if char == "x":
        return _hexadecimal(reader)
    if char in _CONTROL:
        return chr(_CONTROL[char])
    if not char.isascii() or not char.isalnum():
        return char
    raise RegexError(BAD_ESCAPE)


def _hexadecimal(reader: PatternReader) -> str:
    if reader.starts("{"):
        end = reader.text.find("}", reader.at)
        digits = reader.text[reader.at + 1 : end] if end > 0 else ""
        reader.at = end + 1
    else:
        digits = reader.peek(2)
        reader.skip(2)
        if len(digits) < 2:
            raise RegexError(BAD_ESCAPE)
    if not digits or not all(each in string.hexdigits for each in digits) or int(digits, 16) > _MAX_RUNE:
        raise RegexError(BAD_ESCAPE)
    return chr(int(digits, 16))
