"""Wait for background work of a broker: until a deadline, not for a number of tries; the error says what was seen last.

A busy machine may answer a thousand requests in a second or in a minute, so only a deadline decides that something does
not happen. The pause between tries leaves the processor to the broker.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

WAIT_S = 120.0  # enough for a machine on which many other processes run
COMMAND_S = 840.0  # for a whole command with a Spark of its own; less than the time a test has (pyproject.toml)
WAIT_MS = f"{WAIT_S * 1000:.0f}"  # the same as text, for arguments of tools
PAUSE_S = 0.005


def until(ask: Callable[[], T], holds: Callable[[T], object] = bool, timeout_s: float = WAIT_S) -> T:
    """Call `ask` until its result is as wanted, and return the result."""
    deadline_s = time.monotonic() + timeout_s
    while not holds(found := ask()):
        assert time.monotonic() < deadline_s, f"after {timeout_s:g} s it is still so: {found!r}"
        time.sleep(PAUSE_S)
    return found


async def until_async(
    ask: Callable[[], Awaitable[T]], holds: Callable[[T], object] = bool, timeout_s: float = WAIT_S
) -> T:
    """The same for a coroutine function."""
    deadline_s = time.monotonic() + timeout_s
    while not holds(found := await ask()):
        assert time.monotonic() < deadline_s, f"after {timeout_s:g} s it is still so: {found!r}"
        await asyncio.sleep(PAUSE_S)
    return found
