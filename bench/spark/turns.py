"""Compare Spark jobs: run them alternately in one session, and measure the time of each.

CPU-seconds are those of the driver's process tree (JVM and Python workers, without broker and registry) and are the
most reliable figure. The first rounds do not count, because the JVM's compiler is not to be measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.spark import sessions as sparks

from bench.ground import Ground

_TICKS = os.sysconf("SC_CLK_TCK")

Taken = dict[str, list[float]]  # figure → one value a round
Say = Callable[[str], None]
# By name, the context of a job: entering and leaving it (preparing, checking) is not timed, the function it yields is.
Job = Callable[[str], AbstractContextManager[Callable[[], Any]]]


@dataclass(frozen=True, slots=True)
class Length:
    """The number of records and of rounds; `warm_up` rounds come first."""

    records: int
    rounds: int
    warm_up: int

    def name(self, round_: int) -> str:
        """The name of a round; rounds are counted from 0, including those of the warm-up."""
        return f"round {round_ - self.warm_up + 1} of {self.rounds}" if round_ >= self.warm_up else "warm up"


@dataclass(frozen=True, slots=True)
class Stage:
    """A Spark session, and the node and registry that it uses."""

    ground: Ground
    session: Any

    def turns(self, length: Length, names: Iterable[str], job: Job, say: Say) -> dict[str, Taken]:
        """Run all jobs, round by round; all must return the same result."""
        found: dict[str, Taken] = {}
        results: dict[str, Any] = {}
        there = list(names)
        for round_ in range(length.warm_up + length.rounds):
            for name in there if round_ % 2 else reversed(there):  # no job always follows the same one
                say(f"{name}, {length.name(round_)}")
                with job(name) as timed:
                    cpu_s, begun = self._cpu_s(), time.perf_counter()
                    results[name] = timed()
                    wall_s = time.perf_counter() - begun
                    cpu_s = self._cpu_s() - cpu_s
                if round_ >= length.warm_up:
                    figures = found.setdefault(name, {"rows_per_s": [], "cpu_s": []})
                    figures["rows_per_s"].append(length.records / wall_s)
                    figures["cpu_s"].append(cpu_s)
            assert len(set(results.values())) == 1, f"results differ: {results}"
        return found

    def _cpu_s(self) -> float:
        return tree_cpu_s(os.getpid(), self.ground.apart)


@contextmanager
def stage(ground: Ground, directory: Path) -> Iterator[Stage]:
    session = sparks.start_session(
        name="bench",
        **{
            "spark.driver.memory": "2g",
            "spark.local.dir": str(directory / "spark"),
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
        },
    )
    try:
        yield Stage(ground, session)
    finally:
        sparks.stop_session(session)


def tree_cpu_s(root: int, without: Iterable[int] = ()) -> float:
    """User and system time so far of a process and all its descendants, including ended ones; `without` some processes
    and their descendants.
    """
    stats: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # the process has ended meanwhile
            stats[int(entry.name)] = fields
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    left_out, total, waiting = set(without), 0, [root]
    while waiting:
        pid = waiting.pop()
        if pid in stats and pid not in left_out:
            waiting.extend(children.get(pid, ()))
            total += sum(int(stats[pid][number]) for number in (11, 12, 13, 14))
    return total / _TICKS
