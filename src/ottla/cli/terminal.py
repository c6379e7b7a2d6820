"""Lines on stderr without loading anything: what `ottla start` needs before (and instead of) Rich."""

import sys


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
    if sys.stderr.isatty():
        label = f"\x1b[{colour}m{label}\x1b[0m"
    print(f"{label} {text}", file=sys.stderr, flush=True)
