"""Charts as SVG, drawn on the server: lines over time, and bars. Each has a text for those who do not see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.console.html import Content, Markup, tag

_WIDTH, _HEIGHT = 640, 200
_LEFT, _BOTTOM, _TOP, _RIGHT = 64, 22, 10, 8
_GRID_LINES = 4
_COLOURS = 8
_STEPS = (1, 2, 2.5, 5, 10)


class Line(NamedTuple):
    """A series of values over time: (seconds, value); None is a gap."""

    name: str
    points: Sequence[tuple[float, float | None]]


class Bar(NamedTuple):
    """One bar; `to` is where it leads, `mood` its colour if it stands out."""

    name: str
    value: float
    to: str | None = None
    mood: str = ""


def line_chart(
    title: str,
    lines: Sequence[Line],
    text: Callable[[float], str],
    *,
    now_s: float | None = None,
    ends: tuple[str, str] | None = None,
) -> Markup:
    """Lines over time; `text` writes a value with its unit. The right end is `now_s`, or the last point. `ends` are the
    words at both ends if the lines are not over the time until now.
    """
    values = [value for line in lines for _, value in line.points if value is not None]
    times = [at for line in lines for at, _ in line.points]
    if len(set(times)) < 2 or not values:
        return tag("figure", tag("figcaption", title), tag("p", "measuring …", class_="empty"), class_="chart")
    end = max(times) if now_s is None else now_s
    begin = min(times)
    top = nice_top(max(values))
    parts = [*_grid(top, text), *_times(ends or (f"{_span(end - begin)} ago", "now"))]
    legend = []
    for index, line in enumerate(lines):
        colour = f"s{index % _COLOURS}"
        parts += [_polyline(run, begin, end, top, colour) for run in _runs(line.points)]
        last = next((value for _, value in reversed(line.points) if value is not None), None)
        told = [line.name, " ", tag("b", "unknown" if last is None else text(last))]
        legend.append(tag("span", tag("i", class_=colour), told))
    said = f"{title}: " + ", ".join(f"{line.name} at most {text(_most(line))}" for line in lines)
    picture = tag("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=said)
    return tag("figure", tag("figcaption", title), picture, tag("div", legend, class_="legend"), class_="chart")


def bars(title: str, drawn: Sequence[Bar], text: Callable[[float], str]) -> Markup:
    """Horizontal bars, one below the other, each with its name and value."""
    most = max((bar.value for bar in drawn), default=0) or 1
    rows = [tag("div", _name(bar), _bar(bar, most), tag("span", text(bar.value), class_="number")) for bar in drawn]
    content: Content = rows or tag("p", "nothing yet", class_="empty")
    return tag("figure", tag("figcaption", title), content, class_="bars")


def spark_line(values: Sequence[float | None]) -> Markup:
    """A small line without axes, for a cell of a table."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return tag("span", class_="spark")
    top = max(known) or 1
    step = 100 / (len(values) - 1)
    points = " ".join(
        f"{index * step:.1f},{20 - 18 * value / top:.1f}" for index, value in enumerate(values) if value is not None
    )
    line = tag("polyline", points=points, class_="s0")
    return tag("svg", line, viewBox="0 0 100 22", class_="spark", aria_hidden="true")


def nice_top(most: float) -> float:
    """The next round number that is not below the highest value."""
    if most <= 0:
        return 1.0
    power = 1.0
    while power * 10 <= most:
        power *= 10
    while power > most:
        power /= 10
    return next(step * power for step in _STEPS if step * power >= most)


def _most(line: Line) -> float:
    return max((value for _, value in line.points if value is not None), default=0)


def _x(at: float, begin: float, end: float) -> float:
    return _LEFT + (at - begin) / ((end - begin) or 1) * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _BOTTOM - _TOP)


def _grid(top: float, text: Callable[[float], str]) -> list[Markup]:
    drawn = []
    for index in range(_GRID_LINES + 1):
        value = top * index / _GRID_LINES
        y = f"{_y(value, top):.1f}"
        drawn.append(tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid"))
        drawn.append(tag("text", text(value), x=_LEFT - 6, y=y, dy="0.32em", text_anchor="end"))
    return drawn


def _times(ends: tuple[str, str]) -> list[Markup]:
    y = _HEIGHT - 6
    first, last = ends
    return [tag("text", first, x=_LEFT, y=y), tag("text", last, x=_WIDTH - _RIGHT, y=y, text_anchor="end")]


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _runs(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """The points without gaps in between."""
    runs: list[list[tuple[float, float]]] = [[]]
    for at, value in points:
        if value is None:
            runs.append([])
        else:
            runs[-1].append((at, value))
    return [run for run in runs if run]


def _polyline(run: Sequence[tuple[float, float]], begin: float, end: float, top: float, colour: str) -> Markup:
    points = " ".join(f"{_x(at, begin, end):.1f},{_y(min(value, top), top):.1f}" for at, value in run)
    return tag("polyline", points=points, class_=colour)


def _name(bar: Bar) -> Markup:
    return tag("span", bar.name) if bar.to is None else tag("a", bar.name, href=bar.to)


def _bar(bar: Bar, most: float) -> Markup:
    width = 100 * bar.value / most
    drawn = tag("rect", x=0, y=0, width=f"{width:.2f}", height=10, class_=bar.mood or None)
    return tag("svg", drawn, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")
