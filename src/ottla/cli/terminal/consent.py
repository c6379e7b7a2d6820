"""Ask for confirmation before data is destroyed.

Rules:
- On a terminal the user is asked; only `y` or `yes` counts as consent.
- If standard input is not a terminal, there is no question and nothing is done: a script has to give `--yes`.
"""

from __future__ import annotations

import sys

from ottla.cli.terminal.visible import visible
from ottla.operations.errors import CommandError

_HINT = "--yes does it without asking"


def ask(question: str, *, yes: bool) -> None:
    """Return if the user consents or `yes` is set; otherwise raise CommandError."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{question} Nothing was done: standard input is not a terminal, so nobody can agree", _HINT)
    print(f"{visible(question)} [y/N]: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        print(file=sys.stderr)
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was done: the answer was not yes", _HINT)
