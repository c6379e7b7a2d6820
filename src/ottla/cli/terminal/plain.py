"""Errors and lines on stderr without loading anything: what `ottla start` needs before (and instead of) Rich."""

import os
import sys
from typing import IO


class CommandError(Exception):
    """A command cannot do what was asked; `hint` says what would help."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class WrongUsage(CommandError):
    """A command was asked for something that makes no sense, whatever the cluster looks like."""

    exit_code = 2


def is_coloured(stream: IO[str]) -> bool:
    """Whether colours help there: a terminal, and nobody asked for none (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def print_error(message: str, hint: str | None = None) -> None:
    """One red line, and a dim one with the hint."""
    _line("error:", "1;31", message)
    if hint:
        _line("hint:", "2", hint)


def print_warning(message: str) -> None:
    """One yellow line."""
    _line("warning:", "33", message)


def _line(label: str, colour: str, message: str) -> None:
    text = " ".join(message.split())
    if is_coloured(sys.stderr):
        label = f"\x1b[{colour}m{label}\x1b[0m"
    print(f"{label} {text}", file=sys.stderr, flush=True)
