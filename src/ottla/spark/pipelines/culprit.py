"""Find the record on which a query failed. Spark calls functions with rows without their offsets; so the batch that
failed is read again in ever smaller parts, until one record is left.

Rules:
- The search is only for failures that the records cause, and only after the run has given up: functions of the user are
  called again, nothing is written.
- The result is the first record, in the order of its partition, with which the query fails in the same way. If the
  query does not fail again, cannot run as a batch or takes too long, the result is all records of its batch, or those
  that are left by then.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ottla.client.blocking.blocking import Blocking
from ottla.model import limits
from ottla.spark.pipelines.build import build
from ottla.spark.pipelines.causes import Cause, CauseKind, cause_of
from ottla.spark.pipelines.definition import Definition
from ottla.spark.pipelines.failure_text import FailedSpan
from ottla.spark.pipelines.load import Pipeline
from ottla.spark.service_addresses import rereading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Fails = Callable[[Sequence[FailedSpan]], bool]
_SEARCHED = (CauseKind.CODE, CauseKind.DATA)
# Options that choose topics or starting offsets in another way than the search does.
_OTHER_PLACES = ("startingtimestamp", "startingoffsetsbytimestamp", "subscribepattern", "assign")


class Unsearchable(Exception):
    """The records that the query read cannot be read again as a batch."""


def search(spans: Sequence[FailedSpan], fails: Fails, may_go_on: Callable[[], bool]) -> list[FailedSpan]:
    """The records that are left: first halve the list of partitions until one is left, then find the smallest end
    offset with which the query fails.
    """
    left = list(spans)
    while len(left) > 1 and may_go_on():
        half = len(left) // 2
        left = left[:half] if fails(left[:half]) else left[half:]
    if len(left) > 1:
        return left
    (span,) = left
    assert span.start is not None
    good, bad = span.start, span.end  # a range that ends at `good` does not fail, one that ends at `bad` does
    while bad - good > 1 and may_go_on():
        middle = (good + bad) // 2
        if fails([replace(span, end=middle)]):
            bad = middle
        else:
            good = middle
    return [replace(span, start=good, end=bad)]


class CulpritSearch:
    """Searches for the record on which a query of a pipeline failed."""

    def __init__(
        self, pipeline: Pipeline, query: Definition, spark: "SparkSession", client: Blocking, *, is_replay: bool
    ) -> None:
        self._pipeline = replace(pipeline, queries=(query,))
        self._spark = spark
        self._client = client
        self._is_replay = is_replay

    def with_record(self, cause: Cause, is_stopped: Callable[[], bool]) -> Cause:
        """The same cause, narrowed to the record if it can be found."""
        if cause.kind not in _SEARCHED or not cause.spans or cause.is_of_one_record:
            return cause
        deadline_s = time.monotonic() + limits.PIPELINE_SEARCH_S
        try:
            spans = self._begun(cause.spans)
            if sum(each.end - (each.start or 0) for each in spans) > limits.PIPELINE_SEARCH_RECORDS_MAX:
                return cause
            trial = _Trial(cause, self._pipeline, self._spark, spans)
            found = search(spans, trial.fails, lambda: time.monotonic() < deadline_s and not is_stopped())
            # A half was assumed to fail because the other did not: check that a failure was seen at all.
            is_seen = trial.has_failed or trial.fails(found)
        except Exception:  # the search is only an attempt to say more
            return cause
        return replace(cause, spans=tuple(found)) if is_seen else cause

    def _begun(self, spans: Sequence[FailedSpan]) -> list[FailedSpan]:
        """The spans with a known start. The first batch starts at the beginning of the log, unless the query says
        otherwise (see `_Rereading`).
        """
        if all(each.start is not None for each in spans):
            return list(spans)
        if self._is_replay:
            raise Unsearchable
        bounds = {topic: self._client.admin.topics.bounds(topic) for topic in {each.topic for each in spans}}
        return [
            replace(each, start=bounds[each.topic][each.partition][0]) if each.start is None else each for each in spans
        ]


class _Trial:
    """Runs the query over some of its records."""

    def __init__(self, cause: Cause, pipeline: Pipeline, spark: "SparkSession", spans: Sequence[FailedSpan]) -> None:
        self._cause = cause
        self._pipeline = pipeline
        self._spark = spark
        self._rereading = _Rereading(spans, from_beginning=any(each.start is None for each in cause.spans))
        self.has_failed = False

    def fails(self, spans: Sequence[FailedSpan]) -> bool:
        self._rereading.wanted = spans
        token = rereading.set(self._rereading)
        try:
            (built,) = build(self._pipeline, self._spark)
            if built.output.frame.isStreaming:
                raise Unsearchable
            built.output.frame.write.format("noop").mode("overwrite").save()
        except Unsearchable:
            raise
        except Exception as error:
            found = cause_of(error)
            if (found.kind, found.frame) != (self._cause.kind, self._cause.frame):
                raise
            self.has_failed = True
            return True
        finally:
            rereading.reset(token)
        return False


class _Rereading:
    """Reads streams as batches: the records of all spans are planned once, and a filter selects the wanted ones.
    Implements `service_addresses.Rereading`.
    """

    def __init__(self, spans: Sequence[FailedSpan], *, from_beginning: bool) -> None:
        self._spans = spans
        self._from_beginning = from_beginning
        self._frames: dict[tuple[tuple[str, str], ...], DataFrame] = {}
        self.wanted: Sequence[FailedSpan] = spans

    def frame(self, spark: "SparkSession", topics: Sequence[str], options: Mapping[str, str]) -> "DataFrame":
        from pyspark.sql import functions as F

        raw = self._whole(spark, topics, options)
        condition = F.lit(False)
        for span in self.wanted:
            if span.topic in topics:
                here = (F.col("topic") == span.topic) & (F.col("partition") == span.partition)
                condition |= here & (F.col("offset") >= (span.start or 0)) & (F.col("offset") < span.end)
        return raw.where(condition)

    def _whole(self, spark: "SparkSession", topics: Sequence[str], options: Mapping[str, str]) -> "DataFrame":
        given = {name.lower(): value for name, value in options.items()}
        if given.get("on.bad") == "dlq" or not given.keys().isdisjoint(_OTHER_PLACES):
            raise Unsearchable  # dead letters would be written again; or the start is unknown
        if self._from_beginning and given["startingoffsets"] != "earliest":
            raise Unsearchable
        key = tuple(sorted(given.items()))
        if key not in self._frames:
            told = given | _places([each for each in self._spans if each.topic in topics])
            if "assign" in told:
                del told["subscribe"]
            self._frames[key] = spark.read.format("ottla").options(**told).load()
        return self._frames[key]


def _places(spans: Sequence[FailedSpan]) -> dict[str, str]:
    """These spans as options of a batch read; empty if there are no spans."""
    if not spans:
        return {}
    starts: dict[str, dict[str, int | None]] = {}
    ends: dict[str, dict[str, int]] = {}
    for each in spans:
        starts.setdefault(each.topic, {})[str(each.partition)] = each.start
        ends.setdefault(each.topic, {})[str(each.partition)] = each.end
    assigned = {topic: [int(each) for each in places] for topic, places in ends.items()}
    return {
        "assign": json.dumps(assigned),
        "startingoffsets": json.dumps(starts),
        "endingoffsets": json.dumps(ends),
    }
