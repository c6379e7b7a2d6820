"""The lifetime of a web service's process: the loop it runs, the signals that end it, the parent that it dies with.

Rules:
- `with_parent`: the process ends when its standard input does, and on Linux at the latest by the kernel's parent-death
  signal, so that a killed `ottla up` leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def end_of_process(*, with_parent: bool) -> asyncio.Event:
    """Return the event that SIGTERM, SIGINT, or the end of the parent sets. Called inside the loop."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if with_parent:
        loop.add_reader(sys.stdin.fileno(), _read_on, ended)
    return ended


def die_with_parent() -> None:
    """Have the kernel end this process when its parent has ended."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes uvloop's event loop; None where it is not installed."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _read_on(ended: asyncio.Event) -> None:
    """Read and discard standard input; set the event when it has ended."""
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        ended.set()
