"""Write files with secrets: readable by their owner only, and never over a file that is there unless that is asked for.

A file appears with its whole contents or not at all.
"""

from __future__ import annotations

import os
from pathlib import Path

from ottla.operations.errors import CommandError

SECRET_MODE = 0o600
PUBLIC_MODE = 0o644
_DIRECTORY_MODE = 0o700


def make_directory(path: Path) -> None:
    """Make a directory that only its owner can enter, unless it is there."""
    path.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)


def check_absent(*paths: Path, force: bool) -> None:
    """Raise CommandError if one of the files is there and must stay."""
    there = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if there and not force:
        raise CommandError(f"{' and '.join(there)}: there already, and not overwritten", "--force overwrites")


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    write(path, text, SECRET_MODE)


def write(path: Path, text: str, mode: int) -> None:
    """Write or replace a file with this mode, whatever the mask of the process is."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, SECRET_MODE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            os.fchmod(descriptor, mode)
            file.write(text)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
