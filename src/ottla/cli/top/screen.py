"""The screen of `ottla top`: what is shown now, what keys change, and how it is drawn."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cli.terminal.output import out, print_json_text, print_table, print_text
from ottla.cli.terminal.visible import visible
from ottla.cli.top.layout import COLUMNS, DEFAULT_SORT, arranged, fitted, is_text, text
from ottla.operations.sampling.rates import Row, rows
from ottla.operations.sampling.sample import TopSample, TopView

if TYPE_CHECKING:
    from rich.console import RenderableType

_AROUND = 4  # lines beside the rows
_MEASURED = (TopView.BROKERS, TopView.REQUESTS)
NO_METRICS = "without ottla.metrics.listener, which real Kafka has not, there are no rates of requests and bytes"
_KEYS = "keys: b t g r views, s sort, / filter, q quit"
_BACK = ("\x7f", "\b")


class TopScreen:
    """`view`, `sort` and `pattern` change with keys."""

    def __init__(self, view: TopView, sort: str | None, pattern: str) -> None:
        self.view = view
        self.pattern = pattern
        self.is_over = False
        self._sort = sort
        self._typed: str | None = None  # the pattern that is being typed

    @property
    def sort(self) -> str:
        return self._sort or DEFAULT_SORT[self.view]

    def press(self, key: str) -> bool:
        """Return whether another view has to be read."""
        if self._typed is not None:
            self._type(key)
            return False
        chosen = next((each for each in TopView if each[0] == key), None)
        if chosen is not None and chosen is not self.view:
            self.view, self._sort = chosen, None
            return True
        if key == "s":
            columns = COLUMNS[self.view]
            self._sort = columns[(columns.index(self.sort) + 1) % len(columns)]
        elif key == "/":
            self._typed = ""
        elif key == "q":
            self.is_over = True
        return False

    def _type(self, key: str) -> None:
        assert self._typed is not None, "a pattern is being typed"
        if key in ("\r", "\n"):
            self.pattern, self._typed = self._typed, None
        elif key == "\x1b":
            self._typed = None
        elif key in _BACK:
            self._typed = self._typed[:-1]
        elif key.isprintable():
            self._typed += key

    def shown(self, before: TopSample, now: TopSample) -> list[Row]:
        """The rows of this view, sorted and filtered."""
        return arranged(self.view, rows(self.view, before, now), self.sort, self.pattern)

    def hints(self, now: TopSample) -> list[str]:
        """What is missing, in a line each."""
        lacks = self.view in _MEASURED and not now.metrics
        return [*([NO_METRICS] if lacks else ()), *now.missing]

    # --- drawing

    def drawn(self, before: TopSample, now: TopSample) -> RenderableType:
        """The whole screen."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        console = out()
        hints = self.hints(now)
        height = console.height - _AROUND - len(hints)
        found = fitted(self.view, self.shown(before, now), console.width, height)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
        for column in found.columns:
            title = Text(column, style="underline" if column == self.sort else "")
            table.add_column(title, justify="left" if is_text(column) else "right", no_wrap=True)
        for row in found.rows:
            table.add_row(*map(Text, row))
        lines: list[RenderableType] = [Text(self._head(now), style="bold", no_wrap=True, overflow="ellipsis"), table]
        if found.more:
            lines.append(Text(f"… {found.more:,} more", style="dim"))
        lines += [Text(visible(each), style="yellow", no_wrap=True, overflow="ellipsis") for each in hints]
        lines.append(Text(self._foot(), style="dim", no_wrap=True, overflow="ellipsis"))
        return Group(*lines)

    def _head(self, now: TopSample) -> str:
        up = sum(not each.is_fenced for each in now.brokers)
        return f"{self.view}  {time.strftime('%H:%M:%S')}  {up} of {len(now.brokers)} brokers up  sort {self.sort}"

    def _foot(self) -> str:
        if self._typed is not None:
            return visible(f"filter: {self._typed}_")
        return visible(f"filter {self.pattern}; {_KEYS}") if self.pattern else _KEYS

    def print_once(self, before: TopSample, now: TopSample) -> None:
        """Print a table, for a pipe or a file with all columns."""
        columns = COLUMNS[self.view]
        found = self.shown(before, now)
        present = [each for each in columns if not found or any(each in row for row in found)]
        if out().is_terminal:
            present = list(fitted(self.view, found, out().width, len(found)).columns)
        cells = [[text(each, row.get(each)) for each in present] for row in found]
        print_table(present, cells, right=[each for each in present if not is_text(each)])
        for hint in self.hints(now):
            print_text(f"# {hint}")

    def print_json(self, before: TopSample, now: TopSample) -> None:
        """Print one line of JSON."""
        line: dict[str, object] = {
            "time_ms": round(time.time() * 1000),
            "view": str(self.view),
            "seconds": round(now.at_s - before.at_s, 3),
            "rows": _rounded(self.shown(before, now)),
            "hints": self.hints(now),
        }
        print_json_text(json.dumps(line, ensure_ascii=False))


def _rounded(found: Sequence[Row]) -> list[Row]:
    return [{name: round(cell, 3) if isinstance(cell, float) else cell for name, cell in row.items()} for row in found]
