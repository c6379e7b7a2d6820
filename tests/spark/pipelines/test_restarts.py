"""When a query that failed is started again: decisions only, no Spark."""

from typing import Any

import pytest

from ottla.spark.pipelines.causes import CauseKind
from ottla.spark.pipelines.kept_query import Failed, KeptQuery, Started
from ottla.spark.pipelines.restarts import Failures, Policy, Restart

POLICY = Policy(limit=4, within_s=100, wait_s=1, wait_max_s=5)


def test_waits_double_up_to_the_longest_and_then_it_is_given_up() -> None:
    failures = Failures(POLICY)
    assert [failures.failed(now_s, passes=True) for now_s in (0, 2, 5, 10, 20)] == [
        Restart(1, 1, 4),
        Restart(2, 2, 4),
        Restart(4, 3, 4),
        Restart(5, 4, 4),
        None,
    ]


def test_failures_of_long_ago_do_not_count() -> None:
    failures = Failures(POLICY)
    assert failures.failed(0, passes=True) == Restart(1, 1, 4)
    assert failures.failed(99, passes=True) == Restart(2, 2, 4)
    assert failures.failed(100, passes=True) == Restart(2, 2, 4)  # the first is 100 seconds back
    assert failures.failed(300, passes=True) == Restart(1, 1, 4)


def test_an_error_that_lasts_is_not_tried_again() -> None:
    failures = Failures(POLICY)
    assert failures.failed(0, passes=False) is None
    assert failures.failed(1, passes=True) == Restart(1, 1, 4)


def test_none_at_all_can_be_asked_for() -> None:
    assert Failures(Policy(limit=0)).failed(0, passes=True) is None


def test_waits_stay_what_they_are_however_many_starts_are_allowed() -> None:
    failures = Failures(Policy(limit=10**6, within_s=10**9))
    assert max(made.wait_s for now_s in range(2000) if (made := failures.failed(now_s, passes=True))) == 60


class Query:
    """As Spark's, as far as it is looked at."""

    id = "q"

    def __init__(self) -> None:
        self.isActive = True
        self.error: Exception | None = None

    def exception(self) -> Exception | None:
        return self.error

    def end(self, error: Exception | None = None) -> None:
        self.isActive, self.error = False, error


class Spark:
    """Starts queries, unless it is told to fail."""

    def __init__(self) -> None:
        self.started: list[Query] = []
        self.failures: list[Exception] = []

    def start(self) -> Any:
        if self.failures:
            raise self.failures.pop(0)
        self.started.append(Query())
        return self.started[-1]


def kept(spark: Spark, limit: int = 2, *, ends: bool = False) -> KeptQuery:
    return KeptQuery("sums", spark.start, Policy(limit=limit, within_s=100, wait_s=1, wait_max_s=5), ends=ends)


def failed(found: object) -> Failed:
    assert isinstance(found, Failed)
    return found


AWAY = TimeoutError("no answer")


def test_a_query_that_failed_is_started_again_when_it_is_due() -> None:
    spark = Spark()
    query = kept(spark)
    assert isinstance(query.look(0), Started) and query.look(1) is None and not query.is_waiting
    spark.started[0].end(AWAY)
    assert failed(query.look(10)).restart == Restart(1, 1, 2)
    assert query.is_waiting and query.look(10.5) is None and len(spark.started) == 1
    assert isinstance(query.look(11), Started) and not query.is_waiting and len(spark.started) == 2
    spark.started[1].end(AWAY)
    assert failed(query.look(12)).restart == Restart(2, 2, 2)
    assert isinstance(query.look(14), Started)
    spark.started[2].end(AWAY)
    assert failed(query.look(15)).restart is None
    assert query.has_ended and query.look(99) is None and len(spark.started) == 3


def test_an_error_that_lasts_ends_it() -> None:
    spark = Spark()
    query = kept(spark)
    query.look(0)
    spark.started[0].end(ValueError("no"))
    found = failed(query.look(1))
    assert (found.restart, str(found.cause)) == (None, "ValueError: no") and query.has_ended


def test_a_start_that_fails_is_tried_again() -> None:
    """A Connect server gives its Python workers ten seconds to come up, which may be too short on a busy machine."""
    spark = Spark()
    query = kept(spark)
    errors = pytest.importorskip("pyspark.errors")
    spark.failures = [errors.PySparkException("Python worker failed to connect back."), ValueError("no")]
    found = failed(query.look(0))
    assert (found.cause.kind, found.restart) == (CauseKind.WORKER_LOST, Restart(1, 1, 2))
    assert failed(query.look(1)).restart is None


def test_one_that_nobody_here_has_stopped_has_failed_unless_it_was_to_end() -> None:
    for ends in (False, True):
        spark = Spark()
        query = kept(spark, ends=ends)
        query.look(0)
        spark.started[0].end()
        found = query.look(1)
        assert query.has_ended
        assert found is None if ends else "stopped in Spark" in str(failed(found).cause)


def test_while_the_broker_is_away_nothing_is_started_and_nothing_counts() -> None:
    errors = pytest.importorskip("ottla.client.errors")
    spark = Spark()
    query = kept(spark, limit=1)
    query.look(0)
    for now_s in (10, 20, 30):
        spark.started[-1].end(errors.NotConnected("no connection to 127.0.0.1:9092"))
        found = failed(query.look(now_s, away="no connection"))
        assert found.cause.kind is CauseKind.BROKER_AWAY and found.restart is not None and found.restart.number == 0
        assert query.look(now_s + 5, away="no connection") is None and query.is_waiting
        assert isinstance(query.look(now_s + 6), Started)  # it is back
    spark.started[-1].end(AWAY)
    assert failed(query.look(40, away="no connection")).restart == Restart(1, 1, 1)  # somebody else does not answer
