"""stdout and stderr whose reader may go away (`| head`), or which cannot be written (a full disk).

Rules:
- A command goes on without them: what it changes it finishes, and its exit code says how that went.
- A command that does nothing but read calls `stop_when_unread`: it ends there, with exit code 0, as `head` expects.
- Output that could not be written for any other reason is an error of its own, told when the command is through.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class UnreadError(Exception):
    """Nobody reads what a command that only reads has to say. No OSError: nobody on the way shall handle it."""


class Outlet(io.RawIOBase):
    """A descriptor that falls silent instead of failing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.failure: OSError | None = None
        self.stops = False  # whether the command ends when nobody reads

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        view = memoryview(data).cast("B")
        if self.failure is None:
            try:
                return os.write(self._descriptor, view)
            except OSError as error:
                self.failure = error
                if self.stops:
                    raise (UnreadError() if isinstance(error, BrokenPipeError) else error) from None
        return len(view)


def install() -> None:
    """Put outlets in the place of the process's streams. One that was closed from the start goes nowhere, and an input
    that was is empty."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # for as long as the process lives
    sys.stdout = _wrap(sys.stdout)
    sys.stderr = _wrap(sys.stderr)


def _wrap(stream: TextIO | None) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):
        return open(os.devnull, "w", encoding="utf-8") if stream is None else stream
    return io.TextIOWrapper(
        io.BufferedWriter(Outlet(stream.fileno())),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def stop_when_unread() -> None:
    """For a command that changes nothing: it is over when nobody reads its results."""
    outlet = _outlet(sys.stdout)
    if outlet is not None:
        outlet.stops = True


def unwritten() -> OSError | None:
    """Why results could not be written, unless their reader had enough of them."""
    sys.stdout.flush()
    outlet = _outlet(sys.stdout)
    failure = None if outlet is None else outlet.failure
    return None if isinstance(failure, BrokenPipeError) else failure


def _outlet(stream: TextIO) -> Outlet | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw if isinstance(raw, Outlet) else None
