"""Whether a query that failed is started again, and when.

Rules:
- An error that lasts (`causes` says which) ends the run: the same would happen again.
- After an error that may pass, the query is started again at most `limit` times within `within_s`. The waits double,
  from `wait_s` to `wait_max_s`.
- A failure that lies `within_s` back does not count any more: a query that ran well since then begins anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.model import limits


@dataclass(frozen=True, slots=True)
class Policy:
    """How often, and how soon."""

    limit: int = limits.PIPELINE_RESTARTS
    within_s: float = limits.PIPELINE_RESTARTS_WITHIN_S
    wait_s: float = limits.PIPELINE_RESTART_WAIT_S
    wait_max_s: float = limits.PIPELINE_RESTART_WAIT_MAX_S


class Restart(NamedTuple):
    """The next start is due after `wait_s`; it is the `number`-th of `limit`."""

    wait_s: float
    number: int
    limit: int


def next_start(policy: Policy, failures_s: Sequence[float], now_s: float) -> Restart | None:
    """After a failure `now_s` that may pass, given when earlier ones were; None: it was tried often enough."""
    number = len(counting(policy, failures_s, now_s)) + 1
    if number > policy.limit:
        return None
    doublings = min(number - 1, 32)
    return Restart(min(policy.wait_s * 2**doublings, policy.wait_max_s), number, policy.limit)


def counting(policy: Policy, failures_s: Sequence[float], now_s: float) -> list[float]:
    """The failures that still count."""
    return [each for each in failures_s if now_s - each < policy.within_s]


class Failures:
    """What has become of one query so far."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._failures_s: list[float] = []

    def failed(self, now_s: float, *, passes: bool) -> Restart | None:
        """When it is started again; None: it is not."""
        if not passes:
            return None
        found = next_start(self._policy, self._failures_s, now_s)
        self._failures_s = [*counting(self._policy, self._failures_s, now_s), now_s]
        return found
