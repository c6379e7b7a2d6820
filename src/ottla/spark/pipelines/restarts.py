"""Whether a query that failed is started again, and when.

Rules:
- An error that does not pass (see `causes`) ends the run, because it would happen again.
- After an error that may pass, the query is started again at most `limit` times within `within_s`. The waits double,
  from `wait_s` to `wait_max_s`.
- A failure that is older than `within_s` does not count any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.model import limits


@dataclass(frozen=True, slots=True)
class Policy:
    """How often a query is restarted, and after which waits."""

    limit: int = limits.PIPELINE_RESTARTS
    within_s: float = limits.PIPELINE_RESTARTS_WITHIN_S
    wait_s: float = limits.PIPELINE_RESTART_WAIT_S
    wait_max_s: float = limits.PIPELINE_RESTART_WAIT_MAX_S


class Restart(NamedTuple):
    """The next start is due after `wait_s`; it is number `number` of at most `limit` restarts."""

    wait_s: float
    number: int
    limit: int


def next_start(policy: Policy, failures_s: Sequence[float], now_s: float) -> Restart | None:
    """The restart after a failure at `now_s` that may pass, given the times of earlier failures; None if there were too
    many.
    """
    number = len(counting(policy, failures_s, now_s)) + 1
    if number > policy.limit:
        return None
    doublings = min(number - 1, 32)
    return Restart(min(policy.wait_s * 2**doublings, policy.wait_max_s), number, policy.limit)


def counting(policy: Policy, failures_s: Sequence[float], now_s: float) -> list[float]:
    """The failures that still count."""
    return [each for each in failures_s if now_s - each < policy.within_s]


class Failures:
    """The failures of one query so far."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._failures_s: list[float] = []

    def failed(self, now_s: float, *, passes: bool) -> Restart | None:
        """Count a failure. The restart of the query, or None if it is not restarted."""
        if not passes:
            return None
        found = next_start(self._policy, self._failures_s, now_s)
        self._failures_s = [*counting(self._policy, self._failures_s, now_s), now_s]
        return found
