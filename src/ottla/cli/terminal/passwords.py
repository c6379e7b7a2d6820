"""Passwords that a command needs: from a file, from the environment, or asked for on the terminal.

Rules:
- No option takes a password: other users of the machine see the arguments of every process.
- What is typed is not echoed. A new password is asked for twice.
- No message has a part of a password in it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ottla.cli.terminal.visible import visible
from ottla.operations.errors import CommandError

ENVIRONMENT = "OTTLA_USER_PASSWORD"
_FILE_MAX = 1 << 16  # longer than any password
_HINT = f"--password-file FILE reads it from a file (- is standard input), {ENVIRONMENT} is the variable for it"


def new_password(user: str, file: Path | None) -> str:
    """Return the new password of a user; raise CommandError if there is none."""
    if file is not None:
        password = _only_line(file)
    elif ENVIRONMENT in os.environ:
        password = os.environ[ENVIRONMENT]
    else:
        password = _asked(user)
    from ottla.client.admin.new_users import checked_password

    try:
        return checked_password(password)
    except ValueError as error:
        raise CommandError(str(error), _HINT) from None


def _only_line(file: Path) -> str:
    """The content without the end of its line; at a terminal, - ends with the first line."""
    is_stdin = str(file) == "-"
    where = "standard input" if is_stdin else str(file)
    try:
        if is_stdin:
            content = sys.stdin.buffer.readline() if sys.stdin.isatty() else sys.stdin.buffer.read(_FILE_MAX)
        else:
            with file.open("rb") as opened:
                content = opened.read(_FILE_MAX)
        text = content.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise CommandError(f"the password in {where} is not text in UTF-8", _HINT) from None
    if "\n" in text or len(content) == _FILE_MAX:
        raise CommandError(f"{where} has more than one line: a password is one line, and nothing was done", _HINT)
    return text


def _asked(user: str) -> str:
    import getpass

    if not sys.stdin.isatty():
        raise CommandError("there is no password, and standard input is not a terminal, so nobody can be asked", _HINT)
    try:
        password = getpass.getpass(f"Password of {visible(user)}: ", sys.stderr)
        again = getpass.getpass("The same again: ", sys.stderr)
    except EOFError:
        print(file=sys.stderr)  # the prompt is still on the line
        raise CommandError("no password was typed, the input has ended: nothing was done", _HINT) from None
    if again != password:
        raise CommandError("the two passwords differ: nothing was done")
    return password
