"""A line on stderr that says what a command is doing, while it takes long; nothing if stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def waiting_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that is told what is done next."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from ottla.cli.terminal.output import err
    from ottla.cli.terminal.visible import visible

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=err(), transient=True, disable=not err().is_terminal) as bar:
        task = bar.add_task("looking")
        yield lambda what: bar.update(task, description=visible(what))
