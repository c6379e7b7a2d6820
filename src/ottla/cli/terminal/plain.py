"""Print errors and warnings on stderr without importing Rich, for `ottla start`."""

import os
import sys
from typing import IO

from ottla.cli.terminal.visible import visible


def is_coloured(stream: IO[str]) -> bool:
    """Whether to use colours on this stream: it is a terminal, and NO_COLOR is not set (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def print_error(message: str, hint: str | None = None) -> None:
    """One red line, and a dim one with the hint."""
    _line("error:", "1;31", message)
    if hint:
        _line("hint:", "2", hint)


def print_warning(message: str, hint: str | None = None) -> None:
    """One yellow line, and a dim one with the hint."""
    _line("warning:", "33", message)
    if hint:
        _line("hint:", "2", hint)


def _line(label: str, colour: str, message: str) -> None:
    text = " ".join(message.split())
    text = visible(text) if sys.stderr.isatty() else text
    if is_coloured(sys.stderr):
        label = f"\x1b[{colour}m{label}\x1b[0m"
    print(f"{label} {text}", file=sys.stderr, flush=True)
