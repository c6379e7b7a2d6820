"""CpuWaits: for how long a thread has waited for a CPU, from one question to the next.

Work that took long by the clock may only have waited while the operating system let other processes run. Asking for
that is a system call, which is too much for each short piece of work: it is asked for after one that took long.
"""

from __future__ import annotations

from collections.abc import Callable


class CpuWaits:
    __slots__ = ("_last_s", "_waited_s")

    def __init__(self, waited_s: Callable[[], float]) -> None:
        """`waited_s` returns how long the calling thread has waited so far, or always 0 if that is not known."""
        self._waited_s = waited_s
        self._last_s = 0.0

    def since_last(self) -> float:
        """Return the seconds of waiting since the last call: at least those of any work that began after it."""
        last_s, self._last_s = self._last_s, self._waited_s()
        return self._last_s - last_s
