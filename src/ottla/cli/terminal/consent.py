"""Asking before something is destroyed.

Rules:
- On a terminal the person is asked; only `y` or `yes` is consent.
- Where standard input is not a terminal nobody is asked and nothing is done: a script says `--yes`.
"""

from __future__ import annotations

import sys

from ottla.cli.terminal.plain import CommandError

_HINT = "--yes does it without asking"


def ask(question: str, *, yes: bool) -> None:
    """Return with consent, which `yes` gives beforehand; raise CommandError without it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{question} Nothing was done: standard input is not a terminal, so nobody can agree", _HINT)
    print(f"{question} [y/N]: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was done: the answer was not yes", _HINT)
