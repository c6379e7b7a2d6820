"""JavaPattern and JavaReplacement: what java.util.regex does with a pattern and its replacement."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ottla.model import limits
from ottla.security.java_regex.parse import parse_java
from ottla.security.java_regex.program import MatchingWork, MatchProgram, Spans
from ottla.security.java_regex.syntax import InvalidRule

_REFERENCE = re.compile(
    r"\\(?P<literal>.)|\$(?P<number>[0-9]+)|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}|(?P<bad>[\\$])", re.DOTALL
)


class JavaPattern:
    """Raises InvalidRule if the text is no expression that can be matched in bounded time, in a program of at most
    `steps_max` steps.
    """

    def __init__(self, text: str, steps_max: int = limits.REGEX_STEPS_MAX) -> None:
        parsed = parse_java(text)
        self.groups = parsed.groups
        self.names: Mapping[str, int] = parsed.names
        try:
            self._program = MatchProgram(parsed.expression, steps_max)
        except InvalidRule as error:
            raise InvalidRule(f"the regular expression {text!r} cannot be used: {error}") from None

    @property
    def steps(self) -> int:
        """The size of the program."""
        return len(self._program)

    def matches(self, text: str, work: MatchingWork) -> bool:
        """Return whether the whole text matches; raise TooMuchWork."""
        return self._program.matches(text, work)

    def replace(self, text: str, replacement: JavaReplacement, work: MatchingWork, *, once: bool = False) -> str:
        """Return the text with all matches replaced, or with the first; raise TooMuchWork."""
        parts: list[str] = []
        kept = begin = 0
        while (found := self._program.search(text, begin, work)) is not None:
            parts += [text[kept : found[0]], replacement.of(text, found)]
            kept = found[1]
            begin = kept + (found[0] == found[1])
            if once:
                break
        return "".join(parts) + text[kept:]


class JavaReplacement:
    """The replacement for matches of a pattern: `$1`, `${name}`, and `\\` before a character that stands for itself.

    `keep_unknown` leaves `$9` as it is if the pattern has groups, but not so many.
    """

    def __init__(self, text: str, pattern: JavaPattern, keep_unknown: bool = False) -> None:
        self._parts: list[str | int] = []
        end = 0
        for found in _REFERENCE.finditer(text):
            self._parts += [text[end : found.start()], *_reference(found, pattern, keep_unknown)]
            end = found.end()
        self._parts.append(text[end:])

    def of(self, text: str, spans: Spans) -> str:
        """Return what replaces a match; a group that took no part in it is empty."""
        return "".join(
            part if isinstance(part, str) else text[spans.get(2 * part, 0) : spans.get(2 * part + 1, 0)]
            for part in self._parts
        )


def case_change(letter: str | None) -> Callable[[str], str]:
    """Return what the end of a rule asks for: L for lower case, U for upper case, else no change."""
    if letter == "L":
        return str.lower
    return str.upper if letter == "U" else str


def _reference(found: re.Match[str], pattern: JavaPattern, keep_unknown: bool) -> list[str | int]:
    if found["bad"]:
        raise InvalidRule(f"the replacement {found.string!r} has a {found['bad']!r} that refers to nothing")
    if found["literal"]:
        return [found["literal"]]
    if found["name"]:
        if found["name"] not in pattern.names:
            raise InvalidRule(f"the replacement {found.string!r} names a group that does not exist: {found['name']}")
        return [pattern.names[found["name"]]]
    digits = found["number"]
    if int(digits[0]) > pattern.groups:
        if keep_unknown and pattern.groups:
            return [found[0]]
        raise InvalidRule(f"the replacement {found.string!r} names a group that does not exist: ${digits[0]}")
    number, used = int(digits[0]), 1  # further digits belong to the number as long as there are so many groups
    while used < len(digits) and number * 10 + int(digits[used]) <= pattern.groups:
        number, used = number * 10 + int(digits[used]), used + 1
    return [number, digits[used:]]
