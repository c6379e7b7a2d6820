"""Tables, JSON and small texts on the terminal.

Rule: results go to stdout, everything else (progress, summaries, warnings) to stderr, so that results can be piped.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from ottla.cli.terminal.visible import visible, visible_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console


@cache
def _console(stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def out() -> Console:
    """The console for results, on stdout."""
    return _console(False)


def err() -> Console:
    """The console for everything else, on stderr."""
    return _console(True)


def print_json(value: Any) -> None:
    """Print plain JSON on stdout, without colours or wrapping."""
    print_json_text(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_json_text(text: str) -> None:
    """Print JSON on stdout; on a terminal with all control characters as escapes."""
    print(visible_json(text) if sys.stdout.isatty() else text)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None, right: Sequence[str] = ()
) -> None:
    """Print a table; columns named in `right` hold numbers. If stdout is no terminal, print lines of tab-separated
    fields.
    """
    from rich.table import Table
    from rich.text import Text

    console = out()
    if not console.is_terminal:
        print("\t".join(columns))
        for row in rows:
            print("\t".join(_plain(cell) for cell in row))
        return
    table = Table(title=title, title_justify="left", header_style="bold cyan", box=None, pad_edge=False)
    for column in columns:
        table.add_column(Text(visible(column)), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(visible(_plain(cell))) for cell in row))
    console.print(table, soft_wrap=False)


def print_rows(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool, right: Sequence[str] = ()
) -> None:
    """Print rows as JSON (all fields) or as a table (the named columns)."""
    if as_json:
        print_json(list(rows))
    else:
        print_table(columns, [[row[column] for column in columns] for row in rows], right=right)


def note(message: str) -> None:
    """Print a remark for the user on stderr."""
    console = err()
    console.print(_shown(message, console), style="dim", markup=False)


def done(message: str) -> None:
    """Report that something succeeded."""
    console = err()
    console.print("[green]✓[/green] ", end="")
    console.print(_shown(message, console), markup=False)


def literal(text: object) -> str:
    """Text to be put into Rich's markup for stdout: its brackets are no tags, and on a terminal its control characters
    are escapes.
    """
    from rich.markup import escape

    return escape(visible(str(text)) if out().is_terminal else str(text))


def print_text(text: str) -> None:
    """Print a line of a result on stdout; on a terminal with control characters as escapes."""
    print(visible(text) if sys.stdout.isatty() else text)


def _shown(message: str, console: Console) -> str:
    return visible(message) if console.is_terminal else message


def _plain(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, list | tuple):
        return ",".join(str(each) for each in cell)
    return str(cell)
