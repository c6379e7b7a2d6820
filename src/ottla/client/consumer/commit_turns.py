"""CommitTurns: who asks first goes first, and one at a time.

A turn is taken by a call that awaits nothing. With a lock, a task that was created first and starts later would be
overtaken by code that asks in between.
"""

from __future__ import annotations

import asyncio


class CommitTurns:
    """The queue."""

    def __init__(self) -> None:
        self._last: asyncio.Future[None] | None = None

    def take(self) -> CommitTurn:
        """Return a turn after all that were taken before. Whoever takes it must end it."""
        turn = CommitTurn(self._last)
        self._last = turn.over
        return turn


class CommitTurn:
    """One place in the queue; `over` is done when this turn, and all before it, are over."""

    def __init__(self, before: asyncio.Future[None] | None) -> None:
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._before = before

    async def come(self, timeout_s: float) -> bool:
        """Wait until all turns before are over; return False if that takes longer."""
        if self._before is not None and not self._before.done():
            await asyncio.wait([self._before], timeout=timeout_s)
        return self._has_come

    def end(self) -> None:
        """End this turn, even if it has not come yet; the next one still waits for those before."""
        if self._has_come:
            self._finish()
        else:
            assert self._before is not None
            self._before.add_done_callback(self._finish)

    @property
    def _has_come(self) -> bool:
        return self._before is None or self._before.done()

    def _finish(self, _: object = None) -> None:
        if not self.over.done():
            self.over.set_result(None)
