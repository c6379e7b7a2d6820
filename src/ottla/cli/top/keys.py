"""Keys pressed on a terminal, one at a time; the terminal is as before when the block ends."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_READ_BYTES = 64


@contextmanager
def pressed_keys() -> Iterator[asyncio.Queue[str]]:
    """Yield a queue of the keys that are pressed. Ctrl-C interrupts, as ever."""
    keys: asyncio.Queue[str] = asyncio.Queue()
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    loop = asyncio.get_running_loop()

    def read() -> None:
        data = os.read(descriptor, _READ_BYTES)
        if not data:  # the terminal is gone
            loop.remove_reader(descriptor)
        if data.startswith(b"\x1b") and len(data) > 1:
            return  # an arrow or another key that sends several characters
        for key in data.decode("utf-8", "ignore"):
            keys.put_nowait(key)

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield keys
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
