"""BatchLooks: looks into the records of clients' batches (`log/look.py`), on the event loop or in a worker.

A short look is taken on the loop, within a budget per turn of the loop. All others are taken by a worker, step by step.
Python runs one thread at a time, so only one step runs at a time and the loop has its turn after each: a request of
another connection waits for one step, never for a whole batch.

Batches that decompress to little do not wait for large ones: each kind has its own queue, and the queues take turns. Of
each kind one batch is decompressed at a time, which bounds the memory of all looks of the node. Between two batches of
one client, the other clients of the queue have their turns (`server/loop/fair_turns.py`).

Rules:
- A batch that is looked at stays in the receive buffer of its connection, which is held meanwhile: the batch is not
  copied, counts as request memory, and later requests of the connection are not appended before it.
- `begin` of a look, and callbacks given to `when_quiet`, run on the loop while no step runs.
- Every failure (of a step, of `begin`, of a `done` callback) is logged, and the next look has its turn all the same.
- After `close` no `done` callback is called any more, so nothing is appended to logs that are being closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from ottla.log.config import LogConfig
from ottla.log.look import Look, recompresses
from ottla.log.steps import Steps
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import CODEC_MASK, BatchHeader, Buffer
from ottla.server.loop.fair_turns import FairTurns, Job, WaitingClient

log = logging.getLogger(__name__)

WorkT = TypeVar("WorkT", bound=Steps)


class BatchLooks:
    def __init__(self, loop: asyncio.AbstractEventLoop, executor: Executor | None) -> None:
        self._loop = loop
        self._executor = executor
        self._soon = FairTurns()  # the first job of each queue may be under way
        self._large = FairTurns()
        self._large_next = False
        self._running: asyncio.Future[bool] | None = None  # the step that a worker is running
        self._quiet: list[Callable[[], object]] = []
        self._left_bytes = limits.LOOKED_AT_PER_TURN_BYTES
        self._closed = False

    # On the loop

    def here(self, batch: Buffer, header: BatchHeader, config: LogConfig, now_ms: int, name: str) -> Look | None:
        """Return the finished look if it is a short one; None means that a worker has to take it."""
        packed = header.attributes & CODEC_MASK
        most_bytes = limits.LOOKED_AT_ON_LOOP_PACKED_BYTES if packed else limits.LOOKED_AT_ON_LOOP_BYTES
        cost = max(header.count * limits.LOOKED_AT_RECORD_BYTES, len(batch))
        if (
            cost > limits.LOOKED_AT_ON_LOOP_BYTES
            or len(batch) > most_bytes
            or config.contract is not None
            or recompresses(config, header)
            or not self.allow(max(cost, limits.LOOKED_AT_UNPACKED_BYTES) if packed else cost)
        ):
            return None
        look = Look(batch, header, config, now_ms, name, limits.LOOKED_AT_ON_LOOP_BYTES).whole()
        return None if look.beyond_limit else look

    def allow(self, cost_bytes: int) -> bool:
        """Take `cost_bytes` from the budget of this turn of the loop; return False if less is left."""
        if cost_bytes > self._left_bytes:
            return False
        if self._left_bytes == limits.LOOKED_AT_PER_TURN_BYTES:
            self._loop.call_soon(self._new_turn)
        self._left_bytes -= cost_bytes
        return True

    def _new_turn(self) -> None:
        self._left_bytes = limits.LOOKED_AT_PER_TURN_BYTES

    # In a worker

    def take(self, make: Callable[[int], Look], limit_bytes: int, done: Callable[[Look], None]) -> None:
        """Call `done`, some turns later, with the look that `make` returns for a batch that decompresses to
        `limit_bytes`.
        """

        def looked(look: Look) -> None:
            if look.beyond_limit and limit_bytes > limits.LOOKED_INTO_SOON_BYTES:
                self._queue(self._large, make(limit_bytes), done)  # start again in the queue of large batches
            else:
                done(look)

        self._queue(self._soon, make(min(limit_bytes, limits.LOOKED_INTO_SOON_BYTES)), looked)

    def search(self, search: WorkT, done: Callable[[WorkT], None], client: WaitingClient | None = None) -> None:
        """Do a search in a log in the same way, queued with the large batches.

        If `client` is given, the search is refused before its next step when that client has disconnected.
        """
        self._queue(self._large, search, done, client)

    def _queue(
        self, queue: FairTurns, work: WorkT, done: Callable[[WorkT], None], client: WaitingClient | None = None
    ) -> None:
        queue.add(Job(work, partial(done, work), client))
        self._next()

    def when_quiet(self, what: Callable[[], object]) -> None:
        """Call `what` when no step runs: now, or after the current step."""
        if self._running is None:
            _surely(what)
        else:
            self._quiet.append(what)

    def _next(self) -> None:
        if self._running is not None or self._closed:
            return
        queue = self._large if self._large and (self._large_next or not self._soon) else self._soon
        if not queue:
            return
        self._large_next = queue is self._soon
        job = queue.first
        if job.client is not None and job.client.has_left():
            job.work.refusal, job.work.done = ApiError(ErrorCode.REQUEST_TIMED_OUT), True
        elif not job.begun:
            job.begun = True
            try:
                job.work.begin()
            except Exception as error:
                _refuse(job, error)
        self._running = self._loop.run_in_executor(self._executor, job.work.step)
        self._running.add_done_callback(lambda step: self._stepped(queue, job, step))

    def _stepped(self, queue: FairTurns, job: Job, step: asyncio.Future[bool]) -> None:
        self._running = None
        quiet, self._quiet = self._quiet, []
        for what in quiet:
            _surely(what)
        if self._closed or step.cancelled():
            return
        error = step.exception()
        if error is not None:
            _refuse(job, error)
        queue.stepped()
        if job.work.done:
            _surely(job.done)
        self._next()

    async def close(self) -> None:
        """Wait for the current step; its `done` callback is not called."""
        self._closed = True
        self._soon.clear()
        self._large.clear()
        if self._running is not None:
            await asyncio.wait([self._running])


def _refuse(job: Job, error: BaseException) -> None:
    """Answer a failure of the broker itself with UNKNOWN_SERVER_ERROR, and log it."""
    log.error("a %s could not go on", type(job.work).__name__, exc_info=error)
    job.work.refusal, job.work.done = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR), True


def _surely(what: Callable[[], object]) -> None:
    """Call `what`; log an exception, so that the other callbacks still run."""
    try:
        what()
    except Exception:
        log.exception("what was found in batches was of no use")
