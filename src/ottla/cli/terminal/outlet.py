"""stdout and stderr whose reader may go away (`| head`), or which cannot be written (a full disk).

Rules:
- A command goes on without its output: it completes its changes, and its exit code says whether they succeeded.
- A command that only reads calls `stop_when_unread`: it ends when its output is not read any more, with exit code 0.
- If output could not be written for another reason, that is an error, which is reported at the end of the command.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class UnreadError(Exception):
    """The output of a command that only reads is not read any more. It is no OSError, so that handlers of OSError
    ignore it.
    """


class Outlet(io.RawIOBase):
    """A file descriptor that ignores writes after one has failed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.failure: OSError | None = None
        self.stops = False  # whether the command ends when its output is not read any more

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
    """Replace the process's streams by outlets. A stream that was closed from the start becomes /dev/null."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # open until the process ends
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
    """End the command when its output is not read any more; for commands that change nothing."""
    outlet = _outlet(sys.stdout)
    if outlet is not None:
        outlet.stops = True


def unwritten() -> OSError | None:
    """Why output could not be written; None if it could, or if its reader went away."""
    sys.stdout.flush()
    outlet = _outlet(sys.stdout)
    failure = None if outlet is None else outlet.failure
    return None if isinstance(failure, BrokenPipeError) else failure


def _outlet(stream: TextIO) -> Outlet | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw if isinstance(raw, Outlet) else None
