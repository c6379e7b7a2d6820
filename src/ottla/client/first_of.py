"""The first of several alternatives that succeeds: each is tried when the one before has failed, or takes too long.

With this a client gets along without a broker that neither answers nor refuses connections: one that lost its power, or
whose process was stopped.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from ottla.client.errors import ClientError, LastingError

T = TypeVar("T")


async def first_of(ways: Iterable[Callable[[], Awaitable[T]]], stagger_ms: int) -> T:
    """Return the result of the alternative that succeeds first; if none does, raise the error of the first one. An
    `ApiError` is a result: a broker that answers is alive.
    """
    waiting = deque(enumerate(ways))
    running: dict[asyncio.Future[T], int] = {}
    failures: dict[int, ClientError] = {}
    try:
        while waiting or running:
            if waiting:
                number, way = waiting.popleft()
                running[asyncio.ensure_future(way())] = number
            done, _ = await asyncio.wait(
                running, timeout=stagger_ms / 1000 if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in [each for each in running if each in done]:
                number = running.pop(task)
                try:
                    return task.result()
                except LastingError:
                    raise
                except ClientError as error:
                    failures[number] = error
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_look)
    raise failures[0]


def _look(task: "asyncio.Future[T]") -> None:
    """Mark the exception of an alternative that came second as retrieved: its result is not needed."""
    if not task.cancelled():
        task.exception()
