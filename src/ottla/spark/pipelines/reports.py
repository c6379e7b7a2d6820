"""The reports of a run's queries: figures of their batches, and of queries that have not finished a batch yet."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from ottla.client.blocking.blocking import Blocking
from ottla.client.errors import ClientError
from ottla.model.errors import ApiError
from ottla.spark.pipelines.figures import begun, figures_of, merged
from ottla.spark.pipelines.kept_query import KeptQuery
from ottla.spark.progress import groups_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DRAIN_S = 10.0
_LOOK_EVERY_S = 0.05
Figures = dict[str, Any]


class Reports(StreamingQueryListener):
    """Collects the reports of the queries with these names; other queries may run in the same session."""

    def __init__(
        self,
        names: Iterable[str],
        spark: "SparkSession",
        client: Blocking,
        on_progress: Callable[[Figures], None],
    ) -> None:
        self._names = frozenset(names)
        self._spark = spark
        self._client = client
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._figures: dict[str, Figures] = {}

    @property
    def figures(self) -> list[Figures]:
        with self._lock:
            return [self._figures[name] for name in sorted(self._figures)]

    def look_at(self, queries: Iterable[KeptQuery]) -> None:
        """Make figures of the queries that have finished no batch yet, because Spark does not report them."""
        for each in queries:
            query = each.query
            if query is not None and self._seen(each.name) < 0 and query.isActive:
                figures = begun(query, each.name)
                figures["lag"], figures["lag_seconds"] = self._lag(figures)
                with self._lock:
                    if self._figures.get(each.name, {}).get("batch") is None:
                        self._figures[each.name] = figures

    def drain(self, queries: Iterable[KeptQuery]) -> None:
        """Wait for the reports of the last batches, which come a moment after the batches."""
        deadline_s = time.monotonic() + _DRAIN_S
        for each in queries:
            with contextlib.suppress(Exception):  # Spark may be gone
                last = each.last_batch
                while last is not None and time.monotonic() < deadline_s and self._seen(each.name) < last:
                    time.sleep(_LOOK_EVERY_S)

    def _seen(self, name: str) -> int:
        with self._lock:
            batch = self._figures.get(name, {}).get("batch")
        return -1 if batch is None else int(batch)

    def _lag(self, figures: Figures) -> tuple[int | None, float | None]:
        """The lag of the groups under which the run commits, in records and in seconds, as far as it is known."""
        groups = groups_of(self._spark, figures["query"], figures["id"], figures["run"])
        try:
            lags = [each for group in sorted(groups) for each in self._client.admin.groups.lag(group)]
        except (ClientError, ApiError, OSError, RuntimeError):
            return None, None
        records = [each.records for each in lags if each.records is not None]
        seconds = [each.seconds for each in lags if each.seconds is not None]
        return sum(records) if records else None, round(max(seconds), 3) if seconds else None

    # --- callbacks of Spark -------------------------------------------------------------------------------------

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        if event.progress.name not in self._names:
            return
        figures = figures_of(event.progress)
        figures["lag_seconds"] = self._lag(figures)[1]
        with self._lock:
            figures = merged(self._figures, figures)
            self._figures[figures["query"]] = figures
        self._on_progress(figures)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass
