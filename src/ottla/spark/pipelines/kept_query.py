"""One query that is kept running: it is started, watched, and restarted after errors that may pass.

States: due (to be started, at a time), running, ended.

Rules:
- Only the query that failed is restarted. It continues from its checkpoint, as after a crash of the whole run; the
  other queries are not affected.
- A query that ended without an error, although it should run on, was stopped from outside: that is an error, too.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ottla.spark.pipelines.causes import Cause, CauseKind, cause_of, cause_of_call
from ottla.spark.pipelines.restarts import Failures, Policy, Restart

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_EVERY_S = 0.05
_STOPPED = "it was stopped in Spark: by another run with the same checkpoint, or by hand"


@dataclass(frozen=True, slots=True)
class Failed:
    """A query has failed. `restart` says when it is started again; None means never."""

    query: str
    cause: Cause
    restart: Restart | None


@dataclass(frozen=True, slots=True)
class Started:
    """A query was started, for the first time or again."""

    query: str
    id: str


class KeptQuery:
    """A query of a run. `start` starts it in Spark; `ends` is set if the query ends by itself when no data is left."""

    def __init__(self, name: str, start: "Callable[[], StreamingQuery]", policy: Policy, *, ends: bool = False) -> None:
        self.name = name
        self.query: StreamingQuery | None = None
        self.has_ended = False
        self._start = start
        self._ends = ends
        self._policy = policy
        self._failures = Failures(policy)
        self._due_s: float | None = 0.0
        self._has_failed = False

    @property
    def is_waiting(self) -> bool:
        """Whether the query has failed and waits for its restart."""
        return self._has_failed and self._due_s is not None

    def look(self, now_s: float, away: str | None = None) -> Started | Failed | None:
        """What has happened to the query since the last call; starts it if that is due. While the broker is `away`,
        nothing is started, and failures for that reason are not counted.
        """
        if self.has_ended:
            return None
        if self._due_s is not None:
            return self._begin(now_s, away) if now_s >= self._due_s and away is None else None
        query = self.query
        assert query is not None
        try:
            if query.isActive:
                return None
            error = query.exception()
        except Exception as gone:
            return self._failed(cause_of_call(gone), now_s, away)
        if error is not None:
            return self._failed(cause_of(error), now_s, away)
        if not self._ends:
            return self._failed(Cause(CauseKind.OTHER, _STOPPED, passes=False), now_s, away)
        self.has_ended = True
        return None

    def _begin(self, now_s: float, away: str | None) -> Started | Failed:
        try:
            self.query = self._start()
        except Exception as error:
            return self._failed(cause_of_call(error), now_s, away)
        self._due_s = None
        return Started(self.name, str(self.query.id))

    def _failed(self, cause: Cause, now_s: float, away: str | None) -> Failed:
        self._has_failed = True
        if away is not None and cause.kind is CauseKind.BROKER_AWAY:
            restart: Restart | None = Restart(0.0, 0, 0)
        else:
            restart = self._failures.failed(now_s, passes=cause.passes)
        self.has_ended = restart is None
        self._due_s = None if restart is None else now_s + restart.wait_s
        return Failed(self.name, cause, restart)

    def again(self, now_s: float, deadline_s: float) -> None:
        """Stop the query after its running batch, and have it started again by the next `look`. Its earlier failures do
        not count any more.
        """
        query = self.query
        if self.has_ended or self._due_s is not None or query is None:
            return  # it has done its work, or waits to be started anyway
        self.settle(deadline_s)
        query.stop()
        self._failures = Failures(self._policy)
        self._due_s = now_s

    # --- the end ------------------------------------------------------------------------------------------------

    def settle(self, deadline_s: float) -> None:
        """Wait until no batch is running, or the one that is running now has finished."""
        query, last = self.query, self.last_batch
        while query is not None and query.isActive and time.monotonic() < deadline_s:
            if not query.status["isTriggerActive"] or self.last_batch != last:
                return
            time.sleep(_LOOK_EVERY_S)

    @property
    def last_batch(self) -> int | None:
        progress = None if self.query is None else self.query.lastProgress
        return None if progress is None else progress.batchId
