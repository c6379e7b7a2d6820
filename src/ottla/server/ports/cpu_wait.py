"""How long a thread has waited for a CPU: it could have run, and the operating system let others run. Linux tells."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

_PATH, _READ_BYTES, _NS_PER_S = "/proc/thread-self/schedstat", 100, 1e9


class _Statistics:
    """The scheduler's statistics of one thread, open as long as the thread lives."""

    def __init__(self) -> None:
        self.fd: int | None = None
        with suppress(OSError):
            self.fd = os.open(_PATH, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self.fd is not None:
            os.close(self.fd)


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.statistics = _Statistics()


_mine = _OfThread()


def waited_for_cpu_s() -> float:
    """Return the seconds that the calling thread has waited for a CPU so far; 0 if the system does not tell."""
    fd = _mine.statistics.fd
    if fd is None:
        return 0.0
    try:
        return int(os.pread(fd, _READ_BYTES, 0).split()[1]) / _NS_PER_S
    except (OSError, IndexError, ValueError):
        return 0.0
