"""The status topic as one visitor reads it, and what was seen in it while that visitor looked.

Any client can write to the topic, so figures may be anything: `number_of` and `text_of` read what they should be.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from ottla.client.blocking.blocking import Blocking
from ottla.client.options import wall_clock_ms
from ottla.console.access import Access
from ottla.console.refusals import RefusedRequest, WrongInput
from ottla.model import limits
from ottla.operations.threads import BlockingWork, in_thread
from ottla.spark.pipelines.status import LIVE, Board, PipelineStatus

T = TypeVar("T")


class PipelinePoint(NamedTuple):
    """What a query told at one time; None is unknown."""

    at_s: float
    input_rate: float | None
    processed_rate: float | None
    lag: float | None
    lag_seconds: float | None
    state_bytes: float | None


class PipelineDesk:
    """Reads the board; one call at a time, in a thread."""

    def __init__(self, access: Access) -> None:
        self._client = Blocking(access.client_options)
        self._board = Board(self._client)
        self._lock = asyncio.Lock()
        self._past: dict[tuple[str, str], deque[PipelinePoint]] = {}

    async def statuses(self) -> dict[str, PipelineStatus]:
        """All pipelines that were ever run, by name, as they are now."""
        found = await self._in_thread(lambda board: board.latest(wall_clock_ms()))
        for status in found.values():
            self._remember(status)
        return found

    async def status(self, name: str) -> PipelineStatus:
        """One pipeline. Raises RefusedRequest if there is none."""
        found = (await self.statuses()).get(name)
        if found is None:
            raise RefusedRequest(404, "there is no such pipeline", "it may never have run, or its status was deleted")
        return found

    async def ask(self, name: str, run: str, question: Callable[[Board, PipelineStatus], None]) -> PipelineStatus:
        """Ask the run that was shown for something. Raises WrongInput if it does not run any more."""
        status = await self.status(name)
        if status.run != run or status.state not in LIVE:
            raise WrongInput(f"this run of the pipeline does not go on any more: it is {status.state}")
        await self._in_thread(lambda board: question(board, status))
        return status

    def past(self, name: str, query: str) -> list[PipelinePoint]:
        """What was seen of a query, oldest first."""
        return list(self._past.get((name, query), ()))

    def rates(self, name: str) -> list[float | None]:
        """The rows a second of all queries of a pipeline, as they were seen, oldest first."""
        sums: dict[float, float | None] = {}
        for (pipeline, _), points in self._past.items():
            for each in points if pipeline == name else ():
                before = sums.get(each.at_s, 0.0)
                known = before is not None and each.processed_rate is not None
                sums[each.at_s] = (before or 0.0) + (each.processed_rate or 0.0) if known else None
        return [sums[at_s] for at_s in sorted(sums)]

    def close(self) -> None:
        """Close the client, without waiting for it."""
        threading.Thread(target=self._client.close, kwargs={"discard": True}, daemon=True).start()

    async def _in_thread(self, work: Callable[[Board], T]) -> T:
        # The next call waits here, and not in a thread, of which there are few; and until this one has really ended,
        # because the page that asks may end before.
        await self._lock.acquire()
        running = asyncio.ensure_future(in_thread(BlockingWork.board, work, self._board))
        running.add_done_callback(self._ended)
        return await asyncio.shield(running)

    def _ended(self, running: asyncio.Future[T]) -> None:
        self._lock.release()
        if not running.cancelled():
            running.exception()  # asyncio would log it if the page has ended before

    def _remember(self, status: PipelineStatus) -> None:
        if status.state == "lost":
            return
        for figures in status.queries:
            key = (status.name, figures["query"])
            points = self._past.get(key)
            if points is None:
                if len(self._past) >= limits.PIPELINE_QUERIES_REMEMBERED_MAX:
                    continue
                points = self._past[key] = deque(maxlen=limits.PIPELINE_POINTS_MAX)
            at_s = status.updated_ms / 1000
            if not points or at_s > points[-1].at_s:
                points.append(_point(at_s, figures))


def desk_of(access: Access) -> PipelineDesk:
    return access.kept(PipelineDesk, PipelineDesk, PipelineDesk.close)


def number_of(figures: Mapping[str, object], name: str) -> float | None:
    """A figure if it is a number that can be shown."""
    value = figures.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > 1e18:
        return None
    return value


def text_of(figures: Mapping[str, object], name: str) -> str | None:
    value = figures.get(name)
    return None if value is None else str(value)[: limits.CONSOLE_CELL_CHARS]


def _point(at_s: float, figures: Mapping[str, object]) -> PipelinePoint:
    names = ("input_rate", "processed_rate", "lag", "lag_seconds", "state_bytes")
    return PipelinePoint(at_s, *(number_of(figures, each) for each in names))
