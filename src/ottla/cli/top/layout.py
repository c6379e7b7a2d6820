"""What of a view's rows is shown, and how: sorted, filtered, in as many columns and lines as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from ottla.cli.terminal.visible import visible
from ottla.operations.formats import size_text
from ottla.operations.sampling.rates import Cell, Row
from ottla.operations.sampling.sample import TopView

# The columns of each view, the most important first: where there is not room for all, the last are left out.
COLUMNS: dict[TopView, tuple[str, ...]] = {
    TopView.BROKERS: (
        *("broker", "state", "leaders", "out of sync", "in/s", "out/s", "req/s", "err/s", "idle", "conns"),
        *("replicas", "address"),
    ),
    TopView.TOPICS: ("topic", "records/s", "bytes/s", "under", "offline", "partitions", "records", "bytes"),
    TopView.GROUPS: ("group", "lag", "seconds", "read/s", "lag/s", "state", "kind"),
    TopView.REQUESTS: ("request", "req/s", "p99 ms", "err/s", "local p99"),
}
DEFAULT_SORT = {
    TopView.BROKERS: "broker",
    TopView.TOPICS: "records/s",
    TopView.GROUPS: "lag",
    TopView.REQUESTS: "req/s",
}
_TEXTS = {"address", "state", "topic", "group", "kind", "request"}
_ASCENDING = _TEXTS | {"broker"}
_BYTES = {"in/s", "out/s", "bytes/s", "bytes"}
_GAP = 2
_NAME_MIN = 12


class Shown(NamedTuple):
    """A table of texts that fits; `more` rows are left out."""

    columns: tuple[str, ...]
    rows: list[list[str]]
    more: int


def is_text(column: str) -> bool:
    """Whether a column is aligned to the left."""
    return column in _TEXTS


def arranged(view: TopView, rows: Sequence[Row], sort: str, pattern: str) -> list[Row]:
    """Return the rows whose name fits the pattern, those with the highest numbers first."""
    name = COLUMNS[view][0]
    kept = [each for each in rows if _fits(str(each[name]), pattern)]
    kept.sort(key=lambda row: str(row[name]))
    known = [each for each in kept if each.get(sort) is not None]
    unknown = [each for each in kept if each.get(sort) is None]
    if sort in _TEXTS:
        known.sort(key=lambda row: str(row[sort]))
    else:
        known.sort(key=lambda row: _number(row[sort]), reverse=sort not in _ASCENDING)
    return known + unknown


def _number(cell: Cell) -> float:
    return float(cell) if isinstance(cell, int | float) else 0.0


def _fits(name: str, pattern: str) -> bool:
    if any(each in pattern for each in "*?["):
        return fnmatchcase(name, pattern)
    return pattern.lower() in name.lower()


def fitted(view: TopView, rows: Sequence[Row], width: int, height: int) -> Shown:
    """Return the most important columns and the first rows that there is room for."""
    present = [each for each in COLUMNS[view] if not rows or any(each in row for row in rows)]
    shown = rows[: max(height, 1)]
    columns: list[str] = []
    left = width
    for column in present:
        needed = max([len(column), *(len(text(column, row.get(column))) for row in shown)])
        if not columns:
            needed = min(needed, max(width // 2, _NAME_MIN))
        if columns and needed + _GAP > left:
            continue
        left -= needed + (_GAP if columns else 0)
        columns.append(column)
    name_width = max(width // 2, _NAME_MIN)
    texts = [[_cut(text(each, row.get(each)), name_width) for each in columns] for row in shown]
    return Shown(tuple(columns), texts, len(rows) - len(shown))


def _cut(found: str, width: int) -> str:
    return found if len(found) <= width else f"{found[: width - 1]}…"


def text(column: str, cell: Cell) -> str:
    """Return a cell as it is shown."""
    if cell is None:
        return "-"
    if isinstance(cell, str):
        return visible(cell)
    if column in _BYTES:
        return size_text(round(cell))
    if column == "idle":
        return f"{cell:.0f}%"
    if isinstance(cell, int) or cell >= 100 or cell == int(cell):
        return f"{round(cell):,}"
    return f"{cell:.1f}"
