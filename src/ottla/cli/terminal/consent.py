"""Asking before something is destroyed.

Rules:
- On a terminal the person answers. Elsewhere the answer is a line of standard input; only `y` or `yes` is consent.
- Where nobody can answer nothing is done: a script says `--yes`.
"""

from __future__ import annotations

import sys

from ottla.cli.terminal.plain import CommandError

_HINT = "--yes does it without asking"


def ask(question: str, *, yes: bool) -> None:
    """Return with consent, which `yes` gives beforehand; raise CommandError without it."""
    if yes:
        return
    print(f"{question} [y/N]: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer.endswith("\n") or not sys.stdin.isatty():
        print(file=sys.stderr)
    if not answer:
        raise CommandError("nothing was done: this needs consent, and standard input holds no answer", _HINT)
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was done: the answer was not yes", _HINT)
