"""Text from standard input, for commands that take `-` instead of an argument or a file."""

from __future__ import annotations

import sys

from ottla.operations.errors import WrongUsage


def read_stdin_text(what: str) -> str:
    """Read standard input to its end as UTF-8; `what` names its content in the error."""
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise WrongUsage(
            f"{what} on standard input is not text in UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}",
            "`iconv -f ENCODING -t UTF-8` converts text from another encoding",
        ) from None
