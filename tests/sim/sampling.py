"""As many seeds as fit into a share of the CPU: together the samples of all kinds take what `docs/testing.md` says."""

import itertools
import time
from collections.abc import Callable

from ottla.sim.run import Outcome

WALL_SECONDS = 120.0  # on a machine that has much else to do there are fewer of them


def check(kind: str, outcome: Outcome) -> None:
    assert outcome.ok, f"replay with: make sim KIND={kind} SEED={outcome.seed}\n" + "\n".join(outcome.violations)


def check_sample(kind: str, simulate: Callable[[int], Outcome], start: int, *, cpu_seconds: float, least: int) -> None:
    """The same seeds each time; `make sim` tries new ones."""
    began, until = time.process_time(), time.monotonic() + WALL_SECONDS
    for seed in itertools.count(start):
        spent_all = time.process_time() > began + cpu_seconds or time.monotonic() > until
        if seed >= start + least and spent_all:
            return
        check(kind, simulate(seed))
