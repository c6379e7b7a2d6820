"""Classes of characters by name, and single escaped characters, as RE2 reads them."""

from __future__ import annotations

import string
import unicodedata

from ottla.groups.consumer.regex.nodes import ALL, ALPHABET, WORD, RegexError
from ottla.groups.consumer.regex.reader import Reader

BAD_RANGE = "invalid character class range"
BAD_ESCAPE = "invalid escape sequence"
TRAILING_BACKSLASH = "trailing backslash at end of expression"

_PERL = {
    "d": frozenset(each for each in ALPHABET if each.isdigit()),
    "s": frozenset[str](),
    "w": WORD,
}
_LETTERS = frozenset(each for each in ALPHABET if each.isalpha())
_POSIX = {
    "alnum": _LETTERS | _PERL["d"],
    "alpha": _LETTERS,
    "ascii": ALL,
    "blank": frozenset[str](),
    "cntrl": frozenset[str](),
    "digit": _PERL["d"],
    "graph": ALL,
    "lower": frozenset(each for each in ALPHABET if each.islower()),
    "print": ALL,
    "punct": frozenset("._-"),
    "space": frozenset[str](),
    "upper": frozenset(each for each in ALPHABET if each.isupper()),
    "word": WORD,
    "xdigit": frozenset("0123456789abcdefABCDEF"),
}
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_SCRIPTS_OF_NAMES = {"Latin": _LETTERS, "Common": ALL - _LETTERS}
_OCTAL = tuple("01234567")
_MAX_RUNE = 0x10FFFF


def folded(chars: frozenset[str]) -> frozenset[str]:
    """With the same letters of the other case."""
    return chars | {each.lower() for each in chars} | {each.upper() for each in chars}


def _signed(chars: frozenset[str], negated: bool, fold: bool) -> frozenset[str]:
    """A class is what it says without regard to case, or all but that."""
    chars = folded(chars) if fold else chars
    return ALL - chars if negated else chars & ALL


def perl_class(reader: Reader, fold: bool) -> frozenset[str] | None:
    r"""`\d` and its like at the reader, or None."""
    text = reader.peek(2)
    if len(text) < 2 or text[0] != "\\" or text[1].lower() not in _PERL:
        return None
    reader.skip(2)
    return _signed(_PERL[text[1].lower()], text[1].isupper(), fold)


def posix_class(reader: Reader, fold: bool) -> frozenset[str] | None:
    """`[:alpha:]` or `[:^alpha:]` at the reader (inside a class), or None."""
    end = reader.text.find(":]", reader.at + 2)
    if not reader.starts("[:") or end < 0:
        return None
    name = reader.text[reader.at + 2 : end]
    found = _POSIX.get(name.removeprefix("^"))
    if found is None:
        raise RegexError(BAD_RANGE)
    reader.at = end + 2
    return _signed(found, name.startswith("^"), fold)


def unicode_class(reader: Reader, fold: bool) -> frozenset[str] | None:
    r"""`\pL`, `\p{Greek}`, `\P{^Lu}` at the reader, or None."""
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
    return _signed(_unicode(name.removeprefix("^")), negated, fold)


def _unicode(name: str) -> frozenset[str]:
    if name == "Any":
        return ALL
    if name in _SCRIPTS_OF_NAMES:
        return _SCRIPTS_OF_NAMES[name]
    if name in _CATEGORIES or name in {each[0] for each in _CATEGORIES}:
        return frozenset(each for each in ALPHABET if unicodedata.category(each).startswith(name))
    if name in _OTHER_SCRIPTS:
        return frozenset()
    raise RegexError(BAD_RANGE)


_CATEGORIES = frozenset(
    "Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So Zl Zp Zs".split()  # noqa: SIM905
)
# The scripts of living languages; none of them has a letter that a topic's name may contain.
_OTHER_SCRIPTS = frozenset(
    """Arabic Armenian Bengali Bopomofo Braille Cherokee Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi
    Han Hangul Hebrew Hiragana Inherited Kannada Katakana Khmer Lao Malayalam Mongolian Myanmar Oriya Sinhala Syriac
    Tamil Telugu Thaana Thai Tibetan Yi""".split()  # noqa: SIM905
)


def escaped(reader: Reader) -> str:
    """The character that an escape at the reader stands for."""
    reader.skip(1)
    if not reader.more:
        raise RegexError(TRAILING_BACKSLASH)
    char = reader.take()
    if char in "1234567" and reader.peek(1) not in _OCTAL:
        raise RegexError(BAD_ESCAPE)  # a reference to a group
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


def _hexadecimal(reader: Reader) -> str:
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
