"""Replace each `topic('orders')` in a query by the name of a view.

Strings, quoted names and comments are skipped. The rest of the SQL is not parsed here, but by DuckDB.
"""

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<skip>'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$\$.*?\$\$)
  | (?P<call>\btopic\s*\()
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_ARGUMENT = re.compile(
    r"""\s*(?:(?P<name>\w+)\s*(?::=|=>)\s*)?(?:'(?P<text>(?:[^']|'')*)'|(?P<number>\d+))\s*(?P<end>[,)])""", re.VERBOSE
)


class BadCall(ValueError):
    """A `topic(...)` with wrong arguments."""


class TopicCall(NamedTuple):
    """One `topic('name', option := value)`, and the view that replaces it."""

    view: str
    topic: str
    options: dict[str, str]


def rewrite(text: str) -> tuple[str, list[TopicCall]]:
    """The query with views in place of topics, and the calls that they replace."""
    calls: list[TopicCall] = []
    parts: list[str] = []
    at = 0
    while (found := _TOKEN.search(text, at)) is not None:
        parts.append(text[at : found.start()])
        if found["skip"] is not None:
            parts.append(found[0])
            at = found.end()
            continue
        call, at = _call(text, found.end(), f"topic_{len(calls)}")
        calls.append(call)
        parts.append(f'"{call.view}"')
        # Without an alias the view gets the name of the topic: `select orders.key from topic('orders')`.
        if not _has_alias(text, at) and re.fullmatch(r"[A-Za-z_]\w*", call.topic):
            parts.append(f' AS "{call.topic}"')
    parts.append(text[at:])
    return "".join(parts), calls


def _call(text: str, at: int, view: str) -> tuple[TopicCall, int]:
    given: list[tuple[str | None, str]] = []
    while True:
        found = _ARGUMENT.match(text, at)
        if found is None:
            raise BadCall("topic() takes a name in quotes, and options: topic('orders', since := '1h')")
        value = found["number"] if found["text"] is None else found["text"].replace("''", "'")
        given.append((found["name"], value))
        at = found.end()
        if found["end"] == ")":
            break
    (first, topic), *rest = given
    options = {name.lower(): value for name, value in rest if name is not None}
    if first is not None or len(options) != len(rest):
        raise BadCall("topic() takes the topic's name first, then each option once, by its name: since := '1h'")
    return TopicCall(view, topic, options), at


_WORDS_AFTER = (
    "where|group|order|having|limit|offset|join|inner|left|right|full|cross|natural|asof|semi|anti|positional|on|using|"
    "union|intersect|except|window|qualify|sample|tablesample|lateral|select|pivot|unpivot|fetch|for"
)


def _has_alias(text: str, at: int) -> bool:
    rest = text[at:]
    following = re.match(r'\s*(?:as\b|"|[A-Za-z_]\w*)', rest, re.IGNORECASE)
    return following is not None and re.match(rf"\s*(?:{_WORDS_AFTER})\b", rest, re.IGNORECASE) is None
