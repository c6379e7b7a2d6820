"""The check that comes before all others of a cluster: whether it can be examined at all."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.operations.doctor.check import Checks, HealthLevel, Symptom
from ottla.operations.failures import hint_for, message_of

UNREACHABLE = "cluster-unreachable"
REACH = Checks[Exception]("Reaching it", "Made instead of the checks of a running cluster if that cannot be read.")


@REACH.check(
    UNREACHABLE,
    "The cluster does not answer, or refuses this user",
    why="Nothing is known about it: no check of it could be made.",
    do="start a node, or name another one with `-b HOST:PORT`; `--profile` or `--command-config` say how to connect",
    level=HealthLevel.PROBLEM,
)
def cluster_unreachable(error: Exception) -> Iterator[Symptom]:
    yield Symptom(message_of(error), do=hint_for(error))
