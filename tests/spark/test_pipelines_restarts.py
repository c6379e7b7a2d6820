"""When a query that failed is started again: decisions only, no Spark."""

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
