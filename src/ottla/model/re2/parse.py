"""Parses RE2's syntax into nodes. The error descriptions are those of RE2's own parsers."""

from __future__ import annotations

import re

from ottla.model import limits
from ottla.model.re2.chars import CharClass, Chars, Ranges, only
from ottla.model.re2.classes import BAD_RANGE, escaped, perl_class, posix_class, unicode_class
from ottla.model.re2.nodes import At, Choice, Node, One, PositionTest, RegexError, Repeat, Sequence
from ottla.model.re2.reader import PatternReader

_MISSING_PAREN = "missing closing )"
_UNMATCHED = "regexp/syntax: internal error"  # RE2's message for a closing parenthesis that closes nothing
_MISSING_BRACKET = "missing closing ]"
_NO_ARGUMENT = "missing argument to repetition operator"
_NESTED_REPEAT = "invalid nested repetition operator"
_BAD_REPEAT = "invalid repeat count"
_BAD_PERL = "invalid or unsupported Perl syntax"
_BAD_NAME = "invalid named capture"
_SAME_NAME = "duplicate capture group name"
_TOO_DEEP = "expression nests too deeply"

_REPEAT_MAX = 1000
_COUNTED = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_NAME = re.compile(r"\?P?<(\w+)>", re.ASCII)
_FLAGS = re.compile(r"\?([imsU]*)(-[imsU]+)?([:)])")
_PLACES = {
    "\\A": PositionTest.BEGIN,
    "\\z": PositionTest.END,
    "\\b": PositionTest.WORD_EDGE,
    "\\B": PositionTest.NO_WORD_EDGE,
}
_ANY = Chars((), negated=True)
_NO_NEWLINE = Chars((CharClass("\n".__eq__),), negated=True)


def parse(text: str) -> Node:
    """Parse an expression. Raises RegexError."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._reader = PatternReader(text)
        self._flags = frozenset[str]()  # i: ignore case; m: ^ and $ match at lines; s: . matches newlines
        self._names: set[str] = set()
        self._depth = 0

    def whole(self) -> Node:
        node = self._choice()
        if self._reader.more:
            raise RegexError(_UNMATCHED)
        return node

    def _choice(self) -> Node:
        items = [self._sequence()]
        while self._reader.accept("|"):
            items.append(self._sequence())
        return items[0] if len(items) == 1 else Choice(tuple(items))

    def _sequence(self) -> Node:
        items: list[Node] = []
        repeated = False  # whether the last item ends with a repetition operator
        while self._reader.more and self._reader.peek(1) not in "|)":
            repeat = self._repetition()
            if repeat is not None:
                if not items:
                    raise RegexError(_NO_ARGUMENT)
                if repeated:
                    raise RegexError(_NESTED_REPEAT)
                items[-1] = Repeat(items[-1], *repeat)
                repeated = True
                continue
            repeated = self._reader.starts("{")  # RE2 takes it literally here, but it cannot be repeated
            items += self._atoms()
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _repetition(self) -> tuple[int, int | None] | None:
        reader = self._reader
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(reader.peek(1))
        found: tuple[int, int | None] | None = simple
        if simple is not None:
            reader.skip(1)
        else:
            counted = _COUNTED.match(reader.text, reader.at)
            if counted is None:
                return None
            least, comma, most = counted.groups()
            found = (int(least), (int(most) if most else None) if comma else int(least))
            reader.at = counted.end()
            if found[0] > _REPEAT_MAX or (found[1] is not None and not found[0] <= found[1] <= _REPEAT_MAX):
                raise RegexError(_BAD_REPEAT)
        reader.accept("?")  # a non-greedy match accepts the same texts
        return found

    def _atoms(self) -> list[Node]:
        """Parse the next item, or several (a quoted text), or none (a change of flags)."""
        reader = self._reader
        char = reader.peek(1)
        if char == "(":
            return self._group()
        if char == "[":
            return [One(self._class())]
        if char == "\\":
            return self._escape()
        reader.skip(1)
        if char == ".":
            return [One(_ANY if "s" in self._flags else _NO_NEWLINE)]
        if char == "^":
            return [At(PositionTest.LINE_BEGIN if "m" in self._flags else PositionTest.BEGIN)]
        if char == "$":
            return [At(PositionTest.LINE_END if "m" in self._flags else PositionTest.END)]
        return [self._literal(char)]

    def _group(self) -> list[Node]:
        reader = self._reader
        reader.skip(1)
        before = self._flags
        if reader.starts("?"):
            named, flags = _NAME.match(reader.text, reader.at), _FLAGS.match(reader.text, reader.at)
            if named is not None:
                if named[1] in self._names:
                    raise RegexError(_SAME_NAME)
                self._names.add(named[1])
                reader.at = named.end()
            elif flags is None:
                raise RegexError(_BAD_NAME if reader.starts("?P<") or reader.starts("?<") else _BAD_PERL)
            else:
                reader.at = flags.end()
                self._flags = before.union(flags[1]).difference(flags[2] or "")
                if flags[3] == ")":
                    return []
        self._depth += 1
        if self._depth > limits.REGEX_DEPTH_MAX:
            raise RegexError(_TOO_DEEP)
        node = self._choice()
        self._depth -= 1
        if not reader.accept(")"):
            raise RegexError(_MISSING_PAREN)
        self._flags = before
        return [node]

    def _escape(self) -> list[Node]:
        reader = self._reader
        place = _PLACES.get(reader.peek(2))
        if place is not None:
            reader.skip(2)
            return [At(place)]
        if reader.accept("\\Q"):
            end = reader.text.find("\\E", reader.at)
            quoted = reader.text[reader.at : end if end >= 0 else None]
            reader.at = end + 2 if end >= 0 else len(reader.text)
            return [self._literal(each) for each in quoted]
        kind = unicode_class(reader) or perl_class(reader)
        return [One(Chars((kind,), self._fold)) if kind is not None else self._literal(escaped(reader))]

    def _class(self) -> Chars:
        reader = self._reader
        reader.skip(1)
        negated = reader.accept("^")
        named: dict[CharClass, None] = {}
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not reader.starts("]"):
            if not reader.more:
                raise RegexError(_MISSING_BRACKET)
            first = False
            is_named = reader.starts("[:") or reader.starts("\\")
            kind = (posix_class(reader) or unicode_class(reader) or perl_class(reader)) if is_named else None
            if kind is not None:
                named[kind] = None
            else:
                ranges.append(self._range())
        reader.skip(1)
        return Chars((CharClass(Ranges(ranges)), *named), self._fold, negated)

    def _range(self) -> tuple[int, int]:
        reader = self._reader
        low = self._class_char()
        high = low
        if reader.starts("-") and reader.peek(2) not in ("-", "-]"):
            reader.skip(1)
            high = self._class_char()
            if high < low:
                raise RegexError(BAD_RANGE)
        return ord(low), ord(high)

    def _class_char(self) -> str:
        if not self._reader.more:
            raise RegexError(_MISSING_BRACKET)
        return escaped(self._reader) if self._reader.starts("\\") else self._reader.take()

    def _literal(self, char: str) -> One:
        return One(only(char, self._fold))

    @property
    def _fold(self) -> bool:
        return "i" in self._flags
