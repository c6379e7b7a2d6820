"""Slices: long work on the event loop, done in bounded pieces with other work in between.

Work without an upper bound (all partitions of a cluster, all members of a group) is cut into slices of some
milliseconds. The loop serves other requests between two slices, and it does only one slice per turn, whichever work the
slice belongs to: ten clients that ask for everything delay other clients no more than one does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias, TypeVar

from ottla.server.loop.later import Large, Later, Sliced

T = TypeVar("T")
U = TypeVar("U")

# Work without a result that yields where a slice ends.
Steps: TypeAlias = Generator[None, None, None]


class Slices:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._tasks: set[asyncio.Future[Any]] = set()
        self._taken = False  # whether a slice was done in this turn of the loop at once
        self._closed = False

    async def turn(self) -> None:
        """Return when it is the caller's turn to do its next slice."""
        await self._queue()

    def soon(self, slice_: Callable[[], None]) -> None:
        """Call `slice_` when it is its turn."""
        self._queue().add_done_callback(lambda turn: None if turn.cancelled() else slice_())

    def at_once(self) -> bool:
        """Return whether nobody waits, and it is the caller's turn to do a slice now, without coming back for it."""
        if self._waiting or self._taken or self._closed:
            return False
        self._taken = True
        self.loop.call_soon(self._free)
        return True

    def _free(self) -> None:
        self._taken = False

    def begin(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Start a task for work in slices. It runs until it is done or until `close`, even if the client that asked for
        it leaves.
        """
        task = asyncio.ensure_future(work, loop=self.loop)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancel all work: work that is under way ends between two slices."""
        self._closed = True
        tasks = list(self._tasks)
        for each in (*tasks, *self._waiting):
            each.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _queue(self) -> asyncio.Future[None]:
        mine = self.loop.create_future()
        if self._closed:
            mine.cancel()
            return mine
        self._waiting.append(mine)
        if len(self._waiting) == 1:
            self.loop.call_soon(self._next)
        return mine

    def _next(self) -> None:
        while self._waiting:
            first = self._waiting.popleft()
            if not first.done():  # cancelled
                first.set_result(None)
                break
        if self._waiting:
            self.loop.call_soon(self._next)

    async def finish(self, steps: Generator[None, None, T]) -> T:
        """Run `steps`, a generator that yields where a slice ends, to its end and return its result."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            await self.turn()

    def answer(self, steps: Generator[None, None, T]) -> T | Sliced[T]:
        """Run `steps` of a handler that only reads: return the result if one slice is enough, else a
        `Sliced` for it.
        """
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        return Sliced(self._rest(steps), changes=False)

    def answer_of(self, known: Later[U], make: Callable[[U], Generator[None, None, T]]) -> T | Awaitable[T | Large[T]]:
        """Do `answer` with the steps that `make` builds from the value of `known`, now or when that is set."""
        return self.answer(make(known.taken())) if known.done else self._when_known(known, make)

    async def _when_known(self, known: Later[U], make: Callable[[U], Generator[None, None, T]]) -> Large[T]:
        return Large(await self.finish(make(await known)))

    async def _rest(self, steps: Generator[None, None, T]) -> Large[T]:
        await self.turn()
        return Large(await self.finish(steps))


class Tally:
    """Counts the work done in a slice, for generators that decide by themselves where to yield."""

    __slots__ = ("_done", "_per_slice")

    def __init__(self, per_slice: int) -> None:
        self._per_slice = per_slice
        self._done = 0

    def is_full(self, more: int = 1) -> bool:
        """Add `more` to the work of this slice; return True if the slice has done enough and a new one begins."""
        self._done += more
        if self._done < self._per_slice:
            return False
        self._done = 0
        return True
