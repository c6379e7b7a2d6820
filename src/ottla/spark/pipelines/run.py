"""Running a pipeline: all its queries are started, watched, and stopped together.

Rules:
- One run per name at a time: a second one would write to the same checkpoints.
- A stop waits for the batches that are running; a query that fails stops the others, and its error is the run's.
- Status goes to the board when it changes and with every beat; a broker that is away meanwhile stops nothing.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ottla.client.blocking import Blocking
from ottla.client.errors import ClientError
from ottla.client.options import wall_clock_ms
from ottla.model.errors import ApiError
from ottla.spark.outputs import triggered
from ottla.spark.pipelines.build import Built
from ottla.spark.pipelines.causes import cause_of
from ottla.spark.pipelines.definition import PipelineError
from ottla.spark.pipelines.figures import begun, figures_of, merged
from ottla.spark.pipelines.latecomers import Latecomers
from ottla.spark.pipelines.load import Pipeline
from ottla.spark.pipelines.status import LIVE, Board, Status
from ottla.spark.progress import group_of
from ottla.spark.shared_environment import wait_for_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

log = logging.getLogger(__name__)

_TICK_S = 0.2
_COMMANDS_EVERY_S = 1.0
# How long a batch may take after a stop was asked for, before it is cut short (it is repeated then).
STOP_WAIT_S = 60.0
_AWAY = (ClientError, ApiError, OSError)
_DRAIN_S = 10.0
_STARTS_MAX = 3
_SLOW_WORKER = "Python worker failed to connect back"
Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run it."""

    checkpoint: str
    once: bool = False
    force: bool = False
    # Begin anew (see replay): with a checkpoint of its own.
    replay: bool = False


class Runner:
    """One run. `request_stop` may be called from anywhere, also from signal handlers."""

    def __init__(
        self,
        pipeline: Pipeline,
        spark: "SparkSession",
        client: Blocking,
        settings: Settings,
        *,
        run_id: str,
        identity: Status,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._client = client
        self._settings = settings
        self._board = Board(client)
        self._on_event = on_event
        self._stop = threading.Event()
        self._listener = _Progress(self._progressed)
        self._lock = threading.Lock()
        self._figures: dict[str, dict[str, Any]] = {}
        self._queries: list[StreamingQuery] = []
        self._late = Latecomers(spark, {})
        self.status = replace(identity, name=pipeline.name, run=run_id, state="starting")

    def request_stop(self) -> None:
        self._stop.set()

    def run(self, built: list[Built]) -> Status:
        """Until all queries have ended or a stop was asked for. Raises PipelineError if one failed."""
        self._spark.streams.addListener(self._listener)
        failure: str | None = None
        try:
            self._start(built)
            self._say("running")
            failure = self._watch()
        except BaseException as error:
            failure = str(cause_of(error))
            raise
        finally:
            self._stop_queries()
            self._drain()
            self._spark.streams.removeListener(self._listener)
            if failure is None:
                self._late.send()
            self._say("failed" if failure else "stopped", error=failure)
        if failure:
            raise PipelineError(failure, self._pipeline.file)
        return self.status

    def claim(self) -> None:
        """The name is ours from here on. PipelineError if it runs elsewhere."""
        self._board.ensure()
        before = previous_run(self._client, self._pipeline.name, force=self._settings.force)
        generation = (before.generation if before is not None else 0) + (1 if self._settings.replay else 0)
        self.status = replace(self.status, generation=generation, checkpoint=self._settings.checkpoint)
        self._late = Latecomers(self._spark, before.late if before is not None else {})
        self._board.follow()
        self._say("starting")

    # --- the queries --------------------------------------------------------------------------------------------

    def _checkpoint(self, each: Built) -> str:
        root = each.query.checkpoint or f"{self._settings.checkpoint.rstrip('/')}/{each.query.name}"
        return f"{root}/{self.status.generation}"

    def _start(self, built: list[Built]) -> None:
        late = [each for each in built if each.query.late is not None]
        for each in late:
            assert each.query.late is not None
            self._late.watch(self._pipeline.query_name(each.query), each.query.late, self._checkpoint(each))
        if late:
            self._say("starting")  # that late records are seen to is known before there are any
        for each in built:
            name = self._pipeline.query_name(each.query)
            checkpoint = self._checkpoint(each)
            try:
                writer = each.output.writer(checkpoint).queryName(name).option("checkpointLocation", checkpoint)
                query = _started(triggered(writer, "once" if self._settings.once else each.query.trigger))
            except Exception as error:
                raise each.query.error(cause_of(error).what) from error
            self._queries.append(query)
            wait_for_sources(self._spark, query)
            self._on_event({"event": "started", "query": name, "id": str(query.id), "target": each.output.target})

    def _watch(self) -> str | None:
        """What went wrong, None if nothing did."""
        next_beat_s = next_look_s = 0.0
        while not self._stop.is_set():
            ended = [query for query in self._queries if not query.isActive]
            for query in ended:
                if (error := query.exception()) is not None:
                    return f"{query.name}: {cause_of(error)}"
            if len(ended) == len(self._queries):
                return None
            now_s = time.monotonic()
            if now_s >= next_look_s:
                next_look_s = now_s + _COMMANDS_EVERY_S
                self._look_for_commands()
            self._late.send()
            if now_s >= next_beat_s:
                next_beat_s = now_s + self.status.beat_ms / 1000
                self._look_at_beginners()
                self._say("running")
            self._stop.wait(_TICK_S)
        self._say("stopping")
        return None

    def _look_for_commands(self) -> None:
        try:
            if self._board.is_told_to_stop(self._pipeline.name, self.status.run):
                self._stop.set()
        except _AWAY as error:
            log.warning("commands cannot be read: %s", error)

    def _stop_queries(self) -> None:
        deadline_s = time.monotonic() + STOP_WAIT_S
        for query in self._queries:
            with contextlib.suppress(Exception):  # it, or Spark under it, may be gone
                settle(query, deadline_s)
                query.stop()

    def _drain(self) -> None:
        """Reports of the last batches come a moment after these: they are wanted too."""
        deadline_s = time.monotonic() + _DRAIN_S
        for query in self._queries:
            with contextlib.suppress(Exception):
                last = _batch(query)
                while last is not None and time.monotonic() < deadline_s and self._seen(query.name) < last:
                    time.sleep(0.05)

    def _seen(self, name: str | None) -> int:
        with self._lock:
            batch = self._figures.get(name or "", {}).get("batch")
        return -1 if batch is None else int(batch)

    # --- what is known ------------------------------------------------------------------------------------------

    def _progressed(self, event: QueryProgressEvent) -> None:
        known = {self._pipeline.query_name(each) for each in self._pipeline.queries}
        if event.progress.name not in known:
            return  # somebody else's query in the same session
        figures = merged(self._figures, figures_of(event.progress))
        figures["lag_seconds"] = self._lag(figures["query"])[1]
        with self._lock:
            self._figures[figures["query"]] = figures
        self._late.note(figures["query"], figures["batch"], figures["late_rows"])
        self._on_event({"event": "progress", **figures})

    def _lag(self, name: str) -> tuple[int | None, float | None]:
        """Of the group of a query, in records and in seconds, as far as they are known."""
        try:
            lags = self._client.admin.groups.lag(group_of(name, ""))
        except (*_AWAY, RuntimeError):
            return None, None
        records = [each.records for each in lags if each.records is not None]
        seconds = [each.seconds for each in lags if each.seconds is not None]
        return sum(records) if records else None, round(max(seconds), 3) if seconds else None

    def _look_at_beginners(self) -> None:
        """Queries that have finished no batch yet make no reports: they are asked."""
        for query in self._queries:
            name = query.name or ""
            if self._seen(name) < 0 and query.isActive:
                figures = begun(query, name)
                figures["lag"], figures["lag_seconds"] = self._lag(name)
                with self._lock:
                    if self._figures.get(name, {}).get("batch") is None:
                        self._figures[name] = figures

    def _say(self, state: str, error: str | None = None) -> None:
        with self._lock:
            figures = [self._figures[name] for name in sorted(self._figures)]
        changed = state != self.status.state or error is not None
        self.status = replace(
            self.status, state=state, error=error, queries=figures, updated_ms=wall_clock_ms(), late=self._late.done
        )
        try:
            self._board.publish(self.status)
        except _AWAY as away:
            log.warning("the status cannot be written: %s", away)
        if changed:
            self._on_event({"event": state, "pipeline": self._pipeline.name, "error": error})


def previous_run(client: Blocking, name: str, *, force: bool = False) -> Status | None:
    """What is known of the last run of a pipeline, if there was one. PipelineError if it is running now."""
    before = Board(client).all(wall_clock_ms()).get(name)
    if before is not None and before.state in LIVE and not before.is_dead_here and not force:
        raise PipelineError(
            f"pipeline {name} runs already, on {before.host} (process {before.pid}): "
            f"`ottla pipeline stop {name}`, or --force if you know better"
        )
    return before


class _Progress(StreamingQueryListener):
    """Hands reports of batches on."""

    def __init__(self, take: Callable[[QueryProgressEvent], None]) -> None:
        self._take = take

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self._take(event)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass


def _started(writer: "DataStreamWriter") -> "StreamingQuery":
    """A Connect server gives its Python workers ten seconds to come up, which nothing can change and which may be too
    short on a busy machine. No query exists then, so it is tried again."""
    for _ in range(_STARTS_MAX - 1):
        try:
            return writer.start()
        except PySparkException as error:
            if _SLOW_WORKER not in str(error):
                raise
    return writer.start()


def settle(query: "StreamingQuery", deadline_s: float) -> None:
    """Wait until no batch is running, or the one that was has been finished."""
    last = _batch(query)
    while query.isActive and time.monotonic() < deadline_s:
        if not query.status["isTriggerActive"] or _batch(query) != last:
            return
        time.sleep(0.05)


def _batch(query: "StreamingQuery") -> int | None:
    progress = query.lastProgress
    return None if progress is None else progress.batchId
