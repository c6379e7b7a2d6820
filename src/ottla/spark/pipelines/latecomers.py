"""Late records of a run: which batches are still to be searched for them, and up to which batch that is done.

Rules:
- A batch counts as done when its letters are written, not before; a batch whose letters failed stays due.
- Batches are numbered without gaps. A batch whose report did not arrive (Spark may lose reports, and a query that fails
  just after a batch makes none) is searched, as are batches that a killed driver left behind.
"""

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from ottla.spark.checkpoints import finished_batches
from ottla.spark.streams.late import LateTo, send_late

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark keeps the metadata of this many batches in a checkpoint.
_BATCHES_KEPT = 100


class Watched(NamedTuple):
    """A query with a rule for late records."""

    rule: LateTo
    checkpoint: str


class Latecomers:
    """The batches to search for late records. One thread reports progress (`note`), another sends letters (`send`)."""

    def __init__(self, spark: "SparkSession", done: Mapping[str, int]) -> None:
        self._spark = spark
        self._queries: dict[str, Watched] = {}
        self._lock = Lock()
        self._due: list[tuple[str, int, bool]] = []
        self._noted: dict[str, int] = {}  # by query: the last batch that is done or due
        # The last batch that is done, by checkpoint, because a replay has a new one.
        self.done: dict[str, int] = dict(done)

    @property
    def is_watching(self) -> bool:
        return bool(self._queries)

    def watch(self, query: str, rule: LateTo, checkpoint: str) -> None:
        """Call this before the query is started: batches that an earlier run finished but did not search become due."""
        self._queries[query] = Watched(rule, checkpoint)
        before = self.done.get(checkpoint)
        last = self._noted[query] = finished_batches(self._spark, checkpoint)
        if before is None or last < 0:
            self.done[checkpoint] = last  # batches before the rule existed are not due; and a checkpoint may be gone
            return
        self._due += [(query, batch, True) for batch in range(max(before + 1, last - _BATCHES_KEPT + 2), last + 1)]

    def note(self, query: str, batch: int, late_rows: int) -> None:
        """Note that a query finished this batch, and that Spark dropped so many late rows in it."""
        if query in self._queries:
            with self._lock:
                first = max(self._noted[query] + 1, batch - _BATCHES_KEPT + 2)
                self._due += [(query, missed, True) for missed in range(first, batch)]
                self._due.append((query, batch, late_rows > 0))
                self._noted[query] = max(batch, self._noted[query])

    def send(self) -> None:
        """Send the letters of all batches that are due."""
        while True:
            with self._lock:
                if not self._due:
                    return
                query, batch, has_late = self._due[0]
            watched = self._queries[query]
            if has_late:
                send_late(self._spark, watched.rule, watched.checkpoint, batch, query)
            self.done[watched.checkpoint] = max(batch, self.done[watched.checkpoint])
            with self._lock:
                self._due.pop(0)
