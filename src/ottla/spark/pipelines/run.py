"""Running a pipeline: all its queries are started, kept running, and stopped together.

Rules:
- There is one run per name at a time, because a second one would write to the same checkpoints. If there are two, the
  one that claimed the name last goes on (see `status`).
- A query that failed is restarted if its error may pass (`causes`, `restarts`); otherwise the other queries are
  stopped, and the run fails with that error.
- A stop waits for the batches that are running, and so does a restart that somebody asked for: then all queries are
  started again in the same run, from their checkpoints. The file is not read again.
- A broker that is away stops no query: the run waits for the broker, and its status says so.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ottla.client.blocking.blocking import Blocking
from ottla.client.options import wall_clock_ms
from ottla.spark.pipelines.build import Built
from ottla.spark.pipelines.causes import Cause, CauseKind, cause_of_call
from ottla.spark.pipelines.culprit import CulpritSearch
from ottla.spark.pipelines.definition import PipelineError
from ottla.spark.pipelines.kept_query import Failed, KeptQuery, Started
from ottla.spark.pipelines.latecomers import Latecomers
from ottla.spark.pipelines.load import Pipeline
from ottla.spark.pipelines.reports import Figures, Reports
from ottla.spark.pipelines.restarts import Failures, Policy
from ottla.spark.pipelines.status import LIVE, Board, PipelineStatus
from ottla.spark.pipelines.status_publisher import StatusPublisher, impatient
from ottla.spark.runtime.shared_environment import wait_for_sources
from ottla.spark.streams.outputs import triggered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_TICK_S = 0.2
# How long a stop waits for a running batch before it interrupts the batch, which is then repeated by the next run; and
# how long if the broker is away, because the batch can hardly finish then.
STOP_WAIT_S = 60.0
_STOP_WAIT_AWAY_S = 2.0
Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """How to run a pipeline."""

    checkpoint: str
    once: bool = False
    force: bool = False
    # Whether the streams begin at `--from` (see `replay`), with new checkpoints.
    replay: bool = False
    restarts: Policy = field(default_factory=Policy)


class PipelineRun:
    """One run. `request_stop` and `request_restart` may be called from any thread and from signal handlers."""

    def __init__(
        self,
        pipeline: Pipeline,
        spark: "SparkSession",
        client: Blocking,
        settings: Settings,
        *,
        run_id: str,
        identity: PipelineStatus,
        on_event: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._pipeline = pipeline
        self._spark = spark
        self._client = client
        self._settings = settings
        self._on_event = on_event
        self._stop = threading.Event()
        self._restart = threading.Event()
        self._is_spark_gone = False
        self._ended_by: Failed | None = None
        self._kept: list[KeptQuery] = []
        self._built: dict[str, Built] = {}
        self._late = Latecomers(spark, {})
        self._late_failures = Failures(settings.restarts)
        self._late_due_s = 0.0
        self._publisher: StatusPublisher | None = None
        names = [pipeline.query_name(each) for each in pipeline.queries]
        self._near = impatient(client)
        self._reports = Reports(names, spark, self._near, self._progressed)
        self.status = replace(identity, name=pipeline.name, run=run_id, state="starting")

    def request_stop(self) -> None:
        self._stop.set()

    def request_restart(self) -> None:
        """Have all queries stopped after their running batches, and started again from their checkpoints."""
        self._restart.set()

    def claim(self) -> None:
        """Claim the pipeline's name for this run. Raises PipelineError if the pipeline runs elsewhere."""
        try:
            self._claim()
        except BaseException:
            self._near.close(discard=True)  # `run`, which closes the client otherwise, will not be called
            raise
        self._on_event({"event": "starting", "pipeline": self._pipeline.name, "error": None})

    def _claim(self) -> None:
        Board(self._client).ensure()
        before = previous_run(self._client, self._pipeline.name, force=self._settings.force)
        generation = (before.generation if before is not None else 0) + (1 if self._settings.replay else 0)
        late = before.late if before is not None else {}
        self.status = replace(self.status, generation=generation, checkpoint=self._settings.checkpoint, late=late)
        self._late = Latecomers(self._spark, late)
        self._publisher = StatusPublisher(self._near, self.status, self.request_stop, self.request_restart)
        self._publisher.start()

    def run(self, built: list[Built]) -> PipelineStatus:
        """Run until all queries have ended or a stop was requested. Raises PipelineError if a query failed for good.
        `claim` must have been called.
        """
        failure: PipelineError | None = None
        is_over = False
        try:
            self._spark.streams.addListener(self._reports)
            self._prepare(built)
            failure = self._watch()
            is_over = True
        except PipelineError as error:
            failure = error
        except Exception as error:
            failure = self._failure(None, cause_of_call(error))
        finally:
            # Always, also if this process is being ended.
            if not self._is_spark_gone:
                self._stop_queries()
            if self._ended_by is not None:
                failure = self._failure(self._ended_by.query, self._with_record(self._ended_by))
            if failure is None and is_over:
                failure = self._send_last_letters()
            state = "stopped" if failure is None and is_over else "failed"
            self._say(state, str(failure) if failure is not None else None if is_over else "interrupted")
            self._told.close()
            self._near.close(discard=True)
        if failure is not None:
            raise failure
        return self.status

    # --- the queries --------------------------------------------------------------------------------------------

    def _prepare(self, built: list[Built]) -> None:
        for each in built:
            name, query = self._pipeline.query_name(each.query), each.query
            checkpoint = self._checkpoint(each)
            if query.late is not None:
                self._late.watch(name, query.late, checkpoint)
            policy = self._settings.restarts
            if query.restarts is not None:
                policy = replace(policy, limit=query.restarts)
            self._built[name] = each
            self._kept.append(KeptQuery(name, self._starter(each, name, checkpoint), policy, ends=self._settings.once))
        self.status = replace(self.status, writes={name: [*each.output.topics] for name, each in self._built.items()})
        if self._late.is_watching:
            # Publish how far late records were sent before a query can drop any.
            self.status = replace(self.status, late=dict(self._late.done))
            self._told.tell_now(self.status)

    def _checkpoint(self, each: Built) -> str:
        root = each.query.checkpoint or f"{self._settings.checkpoint.rstrip('/')}/{each.query.name}"
        return f"{root}/{self.status.generation}"

    def _starter(self, each: Built, name: str, checkpoint: str) -> "Callable[[], StreamingQuery]":
        def start() -> "StreamingQuery":
            writer = each.output.writer(checkpoint).queryName(name).option("checkpointLocation", checkpoint)
            query = triggered(writer, "once" if self._settings.once else each.query.trigger).start()
            wait_for_sources(self._spark, query)
            return query

        return start

    def _watch(self) -> PipelineError | None:
        """Watch the queries until the run ends. The error that ended the run, None if there was none."""
        next_beat_s = 0.0
        while not self._stop.is_set():
            now_s, away = time.monotonic(), self._told.away
            if self._restart.is_set() and away is None:
                self._restart_queries(now_s)
            for each in self._kept:
                failure = self._take(each.look(now_s, away))
                if failure is not None:
                    return failure
            if all(each.has_ended for each in self._kept):
                return None
            failure = self._send_letters(now_s) if away is None else None
            if failure is not None:
                return failure
            is_beat = now_s >= next_beat_s
            if is_beat:
                next_beat_s = now_s + self.status.beat_ms / 1000
                if away is None:
                    self._reports.look_at(self._kept)
            state = self._state(away)
            if is_beat or state != self.status.state:
                self._say(state, away if state == "waiting" else None)
            self._stop.wait(_TICK_S)
        if self._told.replaced_by is not None:
            return PipelineError(
                f"another run of pipeline {self._pipeline.name} has taken over, on {self._told.replaced_by}"
            )
        self._say("stopping")
        return None

    def _restart_queries(self, now_s: float) -> None:
        """Do what somebody asked for."""
        self._restart.clear()
        self._on_event({"event": "restart asked for", "pipeline": self._pipeline.name, "error": None})
        self._say("restarting", is_quiet=True)
        for each in self._kept:
            with contextlib.suppress(Exception):  # the query may be gone: then `look` says why
                each.again(now_s, now_s + STOP_WAIT_S)
        self.status = replace(self.status, restarted_ms=wall_clock_ms())

    def _state(self, away: str | None) -> str:
        if away is not None:
            return "waiting"
        return "restarting" if any(each.is_waiting for each in self._kept) or self._late_due_s else "running"

    def _take(self, happened: Started | Failed | None) -> PipelineError | None:
        """Report what happened to a query. Its error, if that ends the run."""
        if isinstance(happened, Started):
            target = self._built[happened.query].output.target
            self._on_event({"event": "started", "query": happened.query, "id": happened.id, "target": target})
        elif isinstance(happened, Failed):
            if happened.restart is None:
                self._ended_by = happened
                return self._failure(happened.query, happened.cause)
            self._restarting(happened)
        return None

    def _restarting(self, failed: Failed) -> None:
        assert failed.restart is not None
        error = f"{failed.query}: {failed.cause}"
        now_ms = wall_clock_ms()
        self.status = replace(self.status, restarts=self.status.restarts + 1, last_error=error, last_error_ms=now_ms)
        told = {"in_seconds": failed.restart.wait_s, "number": failed.restart.number, "limit": failed.restart.limit}
        self._on_event({"event": "restarting", "pipeline": self._pipeline.name, "error": error, **told})
        self._say(self._state(self._told.away), is_quiet=True)

    def _failure(self, query: str | None, cause: Cause) -> PipelineError:
        """The error that ends the run, with the line of the query in the file."""
        self._is_spark_gone = cause.kind is CauseKind.SPARK_GONE
        built = self._built.get(query or "")
        restarts = self.status.restarts
        what = f"{cause}; after {restarts} {'restart' if restarts == 1 else 'restarts'}" if restarts else str(cause)
        if built is None:
            said = what if query is None else f"{query}: {what}"
            return PipelineError(said, self._pipeline.file, passes=cause.is_worth_another_run)
        made = built.query
        return PipelineError(f"{made.name}: {what}", made.file, made.line, passes=cause.is_worth_another_run)

    def _with_record(self, failed: Failed) -> Cause:
        """Search for the record that caused the failure. The other queries have stopped, so Spark is free for that."""
        query, is_replay = self._built[failed.query].query, self._settings.replay
        search = CulpritSearch(self._pipeline, query, self._spark, self._near, is_replay=is_replay)
        return search.with_record(failed.cause, self._stop.is_set)

    def _stop_queries(self) -> None:
        patience_s = STOP_WAIT_S if self._told.away is None else _STOP_WAIT_AWAY_S
        if self._told.replaced_by is not None:
            patience_s = 0.0  # the other run continues from the same checkpoints
        deadline_s = time.monotonic() + patience_s
        for each in self._kept:
            with contextlib.suppress(Exception):  # the query, or Spark itself, may be gone
                each.settle(deadline_s)
                if each.query is not None:
                    each.query.stop()
        self._reports.drain(self._kept)
        with contextlib.suppress(Exception):
            self._spark.streams.removeListener(self._reports)

    # --- late records -------------------------------------------------------------------------------------------

    def _send_letters(self, now_s: float) -> PipelineError | None:
        """Send the letters of late records. After an error that may pass it is tried again, as often as a query would
        be restarted.
        """
        if now_s < self._late_due_s:
            return None
        try:
            self._late.send()
        except Exception as error:
            cause = cause_of_call(error)
            restart = self._late_failures.failed(now_s, passes=cause.passes)
            failed = Failed("late records", cause, restart)
            if restart is None:
                return self._failure(failed.query, cause)
            self._late_due_s = now_s + restart.wait_s
            self._restarting(failed)
        else:
            self._late_due_s = 0.0
        return None

    def _send_last_letters(self) -> PipelineError | None:
        try:
            self._late.send()
        except Exception as error:
            cause = cause_of_call(error)
            what = f"late records were not written (the next run does it): {cause}"
            return PipelineError(what, self._pipeline.file, passes=cause.is_worth_another_run)
        return None

    # --- status and events --------------------------------------------------------------------------------------

    def _progressed(self, figures: Figures) -> None:
        self._late.note(figures["query"], figures["batch"], figures["late_rows"])
        self._on_event({"event": "progress", **figures})

    def _say(self, state: str, error: str | None = None, *, is_quiet: bool = False) -> None:
        has_changed = state != self.status.state
        self.status = replace(
            self.status, state=state, error=error, queries=self._reports.figures, late=dict(self._late.done)
        )
        self._told.tell(self.status)
        if has_changed and not is_quiet:
            self._on_event({"event": state, "pipeline": self._pipeline.name, "error": error})

    @property
    def _told(self) -> StatusPublisher:
        assert self._publisher is not None, "claim comes first"
        return self._publisher


def previous_run(client: Blocking, name: str, *, force: bool = False) -> PipelineStatus | None:
    """The last known status of a pipeline, None if it never ran. Raises PipelineError if it is running now."""
    before = Board(client).all(wall_clock_ms()).get(name)
    if before is not None and before.state in LIVE and not before.is_dead_here and not force:
        raise PipelineError(
            f"pipeline {name} runs already, on {before.host} (process {before.pid}): "
            f"`ottla pipeline stop {name}`, or --force if you know better"
        )
    return before
