"""Parses Java's syntax. The error for a construct that Ottla does not support names it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.model import limits
from ottla.model.re2.chars import Ranges
from ottla.model.re2.reader import PatternReader
from ottla.security.java_regex import characters
from ottla.security.java_regex.syntax import (
    Alternatives,
    Capture,
    Character,
    Concatenation,
    Expression,
    Holds,
    InvalidRule,
    Place,
    Repetition,
    may_be_empty,
)

_REPEAT_MAX: Final = 1_000
_COUNTED: Final = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}")
_NAME: Final = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_FLAGS: Final = re.compile(r"\?([is]*)(?:-([is]+))?([:)])")
_CODE: Final = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|x\{([0-9A-Fa-f]{1,6})\})")
_SIMPLE: Final[dict[str, tuple[int, int | None]]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_CONTROL: Final = {"a": "\x07", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PLACES: Final = {
    "A": characters.at_begin,
    "z": characters.at_end,
    "Z": characters.at_last_line_end,
    "b": characters.at_word_edge,
    "B": characters.at_no_word_edge,
}
_UNBOUNDED: Final = "it has {}, which cannot be matched in bounded time"
_GROUPS: Final = {
    "?=": _UNBOUNDED.format("look-ahead"),
    "?!": _UNBOUNDED.format("look-ahead"),
    "?<=": _UNBOUNDED.format("look-behind"),
    "?<!": _UNBOUNDED.format("look-behind"),
    "?>": _UNBOUNDED.format("an atomic group"),
}


class ParsedPattern(NamedTuple):
    expression: Expression
    groups: int
    names: dict[str, int]


def parse_java(text: str) -> ParsedPattern:
    """Parse a regular expression; raise InvalidRule."""
    try:
        parser = _Parser(text)
        return ParsedPattern(parser.whole(), parser.groups, parser.names)
    except InvalidRule as error:
        raise InvalidRule(f"the regular expression {text!r} cannot be used: {error}") from None


class _Parser:
    def __init__(self, text: str) -> None:
        self.groups = 0
        self.names: dict[str, int] = {}
        self._reader = PatternReader(text)
        self._flags = frozenset[str]()  # i: ignore case; s: . matches ends of lines
        self._depth = 0

    def whole(self) -> Expression:
        parsed = self._alternatives()
        if self._reader.more:
            raise InvalidRule("a ) closes nothing")
        return parsed

    def _alternatives(self) -> Expression:
        before = self._flags
        items = [self._concatenation()]
        while self._reader.accept("|"):
            items.append(self._concatenation())
        self._flags = before
        return items[0] if len(items) == 1 else Alternatives(tuple(items))

    def _concatenation(self) -> Expression:
        items: list[Expression] = []
        while self._reader.more and self._reader.peek(1) not in "|)":
            parsed = self._atoms()
            if parsed:
                parsed[-1] = self._repeated(parsed[-1])
            items += parsed
        return items[0] if len(items) == 1 else Concatenation(tuple(items))

    def _repeated(self, item: Expression) -> Expression:
        reader = self._reader
        counts = _SIMPLE.get(reader.peek(1))
        if counts is not None:
            reader.skip(1)
        elif reader.starts("{"):
            counts = self._counted()
        else:
            return item
        if reader.starts("+"):
            raise InvalidRule(_UNBOUNDED.format("a possessive quantifier"))
        greedy = not reader.accept("?")
        if reader.more and reader.peek(1) in "*+?{":
            raise InvalidRule(f"{reader.peek(1)!r} follows another quantifier")
        if counts[1] not in (0, 1) and may_be_empty(item):
            raise InvalidRule("it repeats a part that may be empty")
        return Repetition(item, *counts, greedy)

    def _counted(self) -> tuple[int, int | None]:
        found = _COUNTED.match(self._reader.text, self._reader.at)
        if found is None:
            raise InvalidRule("a { begins no quantifier")
        self._reader.at = found.end()
        least = int(found[1])
        most = int(found[3]) if found[3] else None if found[2] else least
        if max(least, most or 0) > _REPEAT_MAX or (most is not None and most < least):
            raise InvalidRule(f"the quantifier {found[0]} is not possible; at most {_REPEAT_MAX} repetitions are")
        return least, most

    def _atoms(self) -> list[Expression]:
        """Parse the next item, or several (a quoted text), or none (a change of flags)."""
        reader = self._reader
        char = reader.peek(1)
        if char == "\\":
            return self._escape()
        reader.skip(1)
        if char == "(":
            return self._group()
        if char == "[":
            return [Character(self._class())]
        if char == ".":
            return [Character(characters.any_character if "s" in self._flags else characters.in_line)]
        if char in "^$":
            return [Place(characters.at_begin if char == "^" else characters.at_last_line_end)]
        if char in "*+?{":
            raise InvalidRule(f"{char!r} repeats nothing")
        return [self._literal(char)]

    def _group(self) -> list[Expression]:
        reader = self._reader
        number, before = None, self._flags
        named = _NAME.match(reader.text, reader.at)
        if named is not None:
            if named[1] in self.names:
                raise InvalidRule(f"two groups are named {named[1]}")
            reader.at = named.end()
            self.names[named[1]] = self.groups + 1
        if named is not None or not reader.starts("?"):
            number = self.groups = self.groups + 1
        elif self._change_flags():
            return []
        self._depth += 1
        if self._depth > limits.REGEX_DEPTH_MAX:
            raise InvalidRule("it nests too deeply")
        item = self._alternatives()
        self._depth -= 1
        self._flags = before
        if not reader.accept(")"):
            raise InvalidRule("a ( is not closed")
        return [item if number is None else Capture(item, number)]

    def _change_flags(self) -> bool:
        """Read what follows the ( of a group without a number; return whether it ends there."""
        reader = self._reader
        found = _FLAGS.match(reader.text, reader.at)
        if found is None:
            kinds = (why for start, why in _GROUPS.items() if reader.starts(start))
            raise InvalidRule(next(kinds, f"{'(' + reader.peek(3)!r} begins no group that Ottla knows"))
        reader.at = found.end()
        self._flags = self._flags.union(found[1]).difference(found[2] or "")
        return found[3] == ")"

    def _escape(self) -> list[Expression]:
        reader = self._reader
        if reader.accept("\\Q"):
            end = reader.text.find("\\E", reader.at)
            quoted = reader.text[reader.at : end if end >= 0 else None]
            reader.at = end + 2 if end >= 0 else len(reader.text)
            return [self._literal(each) for each in quoted]
        letter = reader.peek(2)[1:]
        if letter in _PLACES:
            reader.skip(2)
            return [Place(_PLACES[letter])]
        if letter in characters.NAMED:
            reader.skip(2)
            return [Character(characters.NAMED[letter])]
        if letter in tuple("123456789k"):
            raise InvalidRule(_UNBOUNDED.format("a back-reference"))
        return [self._literal(self._escaped())]

    def _escaped(self) -> str:
        """Read a backslash and what follows it; return the character that it stands for."""
        reader = self._reader
        code = _CODE.match(reader.text, reader.at)
        if code is not None and int(code[code.lastindex or 1], 16) <= 0x10FFFF:
            reader.at = code.end()
            return chr(int(code[code.lastindex or 1], 16))
        reader.skip(1)
        char = reader.take() if reader.more else ""
        if char in _CONTROL:
            return _CONTROL[char]
        if not char or (char.isascii() and char.isalnum()):
            raise InvalidRule(f"Ottla does not know {chr(92) + char}")
        return char

    def _class(self) -> Holds:
        reader = self._reader
        negated = reader.accept("^")
        tests: list[Holds] = []
        while not tests or not reader.starts("]"):
            if not reader.more:
                raise InvalidRule("a [ is not closed")
            if reader.starts("[") or reader.starts("&&"):
                raise InvalidRule(f"a class has {reader.peek(2)!r}, a union or an intersection")
            named = characters.NAMED.get(reader.peek(2)[1:]) if reader.starts("\\") else None
            if named is not None:
                reader.skip(2)
            tests.append(named or Ranges([self._range()]))
        reader.skip(1)
        return characters.any_of(tests, "i" in self._flags, negated)

    def _range(self) -> tuple[int, int]:
        low = high = self._class_character()
        if self._reader.starts("-") and self._reader.peek(2) not in ("-", "-]", "-["):
            self._reader.skip(1)
            high = self._class_character()
            if high < low:
                raise InvalidRule(f"a class has the range {low}-{high}")
        return ord(low), ord(high)

    def _class_character(self) -> str:
        if not self._reader.more:
            raise InvalidRule("a [ is not closed")
        return self._escaped() if self._reader.starts("\\") else self._reader.take()

    def _literal(self, char: str) -> Character:
        return Character(characters.one_character(char, "i" in self._flags))
