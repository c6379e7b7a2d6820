"""Conditions on JSON values by a path: `$.order.lines[0].price >= 5`, `$.tags[*] contains "new"`, `$.user`.

    path        $ then .name, ["name"], [0], [-1], [*] (each item), .* (each member)
    condition   nothing (there is such a value), or one of == != < <= > >= contains, and a JSON value

A condition holds if it holds for one of the values that the path leads to; how many of them are looked at is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from ottla.model import limits

_STEP = re.compile(r"""\.(?P<name>[\w-]+|\*)|\[(?:(?P<index>-?\d{1,9}|\*)|(?P<quoted>"(?:[^"\\]|\\.)*"))\]""")
_CONDITION = re.compile(r"\s*(?P<operator>==|!=|<=|>=|<|>|contains\b)\s*(?P<value>.+)\Z", re.DOTALL)
_EVERY = "*"
# By how a value compares: -1 if it is less, 0, or 1.
_ORDERS: dict[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


class WrongPath(ValueError):
    """The text is no path with a condition; the message says where it fails."""


@dataclass(frozen=True, slots=True)
class JsonCondition:
    """A path, and what is demanded of a value there."""

    steps: tuple[str | int | None, ...]  # None: each of them
    holds: Callable[[object], bool]

    def matches(self, value: object) -> bool:
        """Whether it holds for one of the values at the path."""
        return any(map(self.holds, islice(_at(value, self.steps), limits.CONSOLE_PATH_VALUES_MAX)))


def json_condition(text: str, contained: str = "") -> JsonCondition:
    """Read a path with its condition. Without a condition, `contained` must be in the value's text, if it is given.
    Raises WrongPath.
    """
    text = text.strip()
    if not text.startswith("$"):
        raise WrongPath("a path begins with $, such as $.user.name")
    at, steps = 1, []
    while (found := _STEP.match(text, at)) is not None:
        steps.append(_step(found))
        at = found.end()
        if len(steps) > limits.CONSOLE_DEPTH_MAX:
            raise WrongPath(f"a path has at most {limits.CONSOLE_DEPTH_MAX} steps")
    rest = text[at:]
    if not rest.strip():
        return JsonCondition(tuple(steps), _contains(contained) if contained else lambda _: True)
    condition = _CONDITION.match(rest)
    if condition is None:
        raise WrongPath(f"what follows {text[:at]!r} is no condition: {rest.strip()[:40]!r}")
    return JsonCondition(tuple(steps), _test(condition["operator"], condition["value"].strip()))


def _step(found: re.Match[str]) -> str | int | None:
    if found["quoted"] is not None:
        try:
            return str(json.loads(found["quoted"]))
        except ValueError:
            raise WrongPath(f"{found['quoted'][:40]} is no name in quotes") from None
    step = found["name"] if found["name"] is not None else found["index"]
    if step == _EVERY:
        return None
    return step if found["name"] is not None else int(step)


def _test(operator: str, text: str) -> Callable[[object], bool]:
    try:
        wanted = json.loads(text)
    except (ValueError, RecursionError):
        if text[:1] in ('"', "{", "["):
            raise WrongPath(f"{text[:40]} is no JSON value") from None
        wanted = text  # a word needs no quotes
    match operator:
        case "==":
            return lambda value: _same(value, wanted)
        case "!=":
            return lambda value: not _same(value, wanted)
        case "contains":
            return _contains(wanted if isinstance(wanted, str) else json.dumps(wanted))
    return _ordered(operator, wanted)


def _same(value: object, wanted: object) -> bool:
    # For Python, True is 1.
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _contains(text: str) -> Callable[[object], bool]:
    wanted = text.lower()

    def test(value: object) -> bool:
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return wanted in shown.lower()

    return test


def _ordered(operator: str, wanted: object) -> Callable[[object], bool]:
    """Numbers are compared with numbers and texts with texts; all else is in no order."""
    if isinstance(wanted, bool) or not isinstance(wanted, str | int | float):
        raise WrongPath(f"{operator} compares numbers or texts")
    holds = _ORDERS[operator]

    def test(value: object) -> bool:
        if isinstance(value, str) and isinstance(wanted, str):
            return holds((value > wanted) - (value < wanted))
        if isinstance(value, bool) or not isinstance(value, int | float) or isinstance(wanted, str):
            return False
        return holds((value > wanted) - (value < wanted))

    return test


def _at(value: object, steps: tuple[str | int | None, ...]) -> Iterator[object]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step is None:
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _at(each, rest)
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield from _at(value[step], rest)
    elif isinstance(value, dict) and step in value:
        yield from _at(value[step], rest)
