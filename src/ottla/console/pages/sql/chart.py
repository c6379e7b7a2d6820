"""A chart of a result: one column beside another, as bars or as a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.sql.asking import CHARTS, SqlQuestion
from ottla.console.parts.charts import Bar, Line, bars, line_chart
from ottla.console.parts.forms import choice, hidden, query_form
from ottla.console.parts.words import notice, visible
from ottla.model import limits

_NAME_CHARS = 60
_WORDS = {"": "no chart", "bar": "bars", "line": "a line"}


def chart_form(question: SqlQuestion, columns: Sequence[tuple[str, str]]) -> Markup:
    """Choose what is drawn."""
    names = [name for name, _ in columns]
    entry = query_form(
        path_to("sql"),
        hidden("query", question.text),
        hidden("rows", question.rows),
        choice("chart", "Draw", [(each, _WORDS[each]) for each in CHARTS], question.chart),
        choice("x", "Along", names, question.x or names[0]),
        choice("y", "Value", names, question.y or names[-1]),
        submit="Draw",
        class_="form wide",
    )
    return tag("details", tag("summary", "Draw the result"), entry, open=bool(question.chart))


def chart_of(
    question: SqlQuestion, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str | None]]
) -> Content:
    """The chart that the question asks for; nothing if it asks for none."""
    if not question.chart:
        return None
    names = [name for name, _ in columns]
    missing = [each for each in (question.x, question.y) if each not in names]
    if missing:
        return notice(f"the result has no column {visible(missing[0])!r}", "fair")
    at_x, at_y = names.index(question.x), names.index(question.y)
    pairs = [(row[at_x], value) for row in rows if (value := _number(row[at_y])) is not None]
    if not pairs:
        return notice(f"there are no numbers in column {visible(question.y)!r}", "fair")
    if question.chart == "bar":
        drawn = [Bar(_name(x), max(value, 0.0)) for x, value in pairs[: limits.SQL_BARS_MAX]]
        shown = f"{visible(question.y)} by {visible(question.x)}"
        return bars(shown + (f" (the first {len(drawn)})" if len(pairs) > len(drawn) else ""), drawn, number_text)
    return _line(question, pairs[: limits.SQL_POINTS_MAX])


def _line(question: SqlQuestion, pairs: list[tuple[str | None, float]]) -> Content:
    """A line along numbers or times; along anything else, the rows are as far from each other."""
    places = [_place(x) for x, _ in pairs]
    if any(each is None for each in places):
        places = [float(index) for index in range(len(pairs))]
    points = sorted(
        ((place, value, x) for place, (x, value) in zip(places, pairs, strict=True) if place is not None),
        key=lambda each: each[0],
    )
    if any(value < 0 for _, value, _ in points):
        return notice("a line is drawn of values from 0 on, and there are negative ones", "fair")
    line = Line(visible(question.y), [(place, value) for place, value, _ in points])
    title = f"{visible(question.y)} along {visible(question.x)}"
    return line_chart(title, [line], number_text, ends=(_name(points[0][2]), _name(points[-1][2])))


def number_text(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def _number(text: str | None) -> float | None:
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _place(text: str | None) -> float | None:
    found = _number(text)
    if found is not None or text is None:
        return found
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _name(text: str | None) -> str:
    shown = "null" if text is None else visible(text)
    return shown if len(shown) <= _NAME_CHARS else shown[: _NAME_CHARS - 1] + "…"
