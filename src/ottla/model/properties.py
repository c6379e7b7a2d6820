"""Java's `.properties` text: what Kafka's configuration files are written in.

The grammar is that of `java.util.Properties`: `#` and `!` comments, `=`, `:` or blanks between key and value, a
backslash at the end of a line joins the next one, `\\uXXXX` and the usual escapes. The last of several equal keys wins.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END = re.compile(r"\r\n|\r|\n")


class PropertyEntry(NamedTuple):
    """The content of one line, or of several joined lines."""

    line: int
    name: str
    separator: str  # `=`, `:`, or empty if only blanks separate name and value
    value: str


class PropertiesError(ValueError):
    """The text is not valid; the message names the line."""


def parse_entries(text: str) -> Iterator[PropertyEntry]:
    """Parse each entry in turn; raise `PropertiesError` on a malformed escape."""
    for number, line in _logical_lines(text):
        key, separator, value = _split(line)
        try:
            yield PropertyEntry(number, _unescape(key), separator, _unescape(value))
        except ValueError:
            raise PropertiesError(f"line {number}: malformed \\uXXXX escape") from None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join continued lines, drop comments and blank lines."""
    pending = ""
    start = 0
    for number, natural in enumerate(_LINE_END.split(text), 1):
        line = natural.lstrip(_BLANKS)
        if not pending:
            start = number
            if not line or line[0] in "#!":
                continue  # a comment cannot be continued, and a continuation line cannot be a comment
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending += line[:-1]
        else:
            yield start, pending + line
            pending = ""
    if pending:
        yield start, pending


def _split(line: str) -> tuple[str, str, str]:
    """Cut at the first separator that is not escaped: key, `=` or `:` if there is one, value."""
    position = 0
    while position < len(line) and line[position] not in "=:" + _BLANKS:
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(_BLANKS)
    if rest and rest[0] in "=:":
        return line[:position], rest[0], rest[1:].lstrip(_BLANKS)
    return line[:position], "", rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            char = text[position]
            position += 1
            if char == "u":
                digits = text[position : position + 4]
                if re.fullmatch(r"[0-9a-fA-F]{4}", digits) is None:
                    raise ValueError(digits)
                char = chr(int(digits, 16))
                position += 4
            else:
                char = _ESCAPES.get(char, char)
        elif char == "\\":
            break  # a lone backslash at the very end of the text is ignored
        out.append(char)
    # Java writes characters beyond 16 bits as two escapes; put such pairs together again.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
