"""The first of several ways that works: each is tried when the one before has failed, or takes too long.

That is how a client does without a broker that neither answers nor refuses: a machine that lost its power, a process
that was stopped.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from ottla.client.errors import ClientError, UnsupportedApi

T = TypeVar("T")


async def first_of(ways: Iterable[Callable[[], Awaitable[T]]], stagger_ms: int) -> T:
    """The result of the way that works first; when none does, the error of the first one. A broker's own errors are
    results: one that answers is alive."""
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
                except UnsupportedApi:
                    raise
                except ClientError as error:
                    failures[number] = error
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_look)
    raise failures[0]


def _look(task: "asyncio.Future[T]") -> None:
    """Nobody needs the result of a way that came second, not even its error."""
    if not task.cancelled():
        task.exception()
