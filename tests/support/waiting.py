"""Waiting for what a broker does in the background: by time, never by tries, and telling what was seen last.

A busy machine answers a thousand questions in a second or in a minute; only the clock says that something never comes.
The pause leaves the processor to the broker that is waited for.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

WAIT_S = 120.0  # of a machine on which a dozen others work
COMMAND_S = 840.0  # for a whole command with a Spark of its own; less than the time a test has (pyproject.toml)
WAIT_MS = f"{WAIT_S * 1000:.0f}"  # the same as a word for tools
PAUSE_S = 0.005


def until(ask: Callable[[], T], holds: Callable[[T], object] = bool, timeout_s: float = WAIT_S) -> T:
    """Asks until the answer is a good one, and gives it."""
    deadline_s = time.monotonic() + timeout_s
    while not holds(found := ask()):
        assert time.monotonic() < deadline_s, f"after {timeout_s:g} s it is still so: {found!r}"
        time.sleep(PAUSE_S)
    return found


async def until_async(
    ask: Callable[[], Awaitable[T]], holds: Callable[[T], object] = bool, timeout_s: float = WAIT_S
) -> T:
    """The same, where asking has to be awaited."""
    deadline_s = time.monotonic() + timeout_s
    while not holds(found := await ask()):
        assert time.monotonic() < deadline_s, f"after {timeout_s:g} s it is still so: {found!r}"
        await asyncio.sleep(PAUSE_S)
    return found
