"""How Spark jobs are compared: one session, jobs in turn, what each took.

CPU-seconds are those of the driver's process tree (JVM and Python workers; broker and registry are not in it) and are
the figure to trust. The JVM's first rounds do not count: its compiler is not what is measured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import spark as sparks

from bench.ground import Ground

_TICKS = os.sysconf("SC_CLK_TCK")

Taken = dict[str, list[float]]  # figure → one value a round
Say = Callable[[str], None]
# By name, a job: what is done on entering and leaving (preparing, checking) is not timed, the function it gives is.
Job = Callable[[str], AbstractContextManager[Callable[[], Any]]]


@dataclass(frozen=True, slots=True)
class Length:
    """How many rows, how often; `warm_up` rounds come first."""

    records: int
    rounds: int
    warm_up: int

    def name(self, round_: int) -> str:
        """Rounds are counted from 0, those of the warm-up included."""
        return f"round {round_ - self.warm_up + 1} of {self.rounds}" if round_ >= self.warm_up else "warm up"


@dataclass(frozen=True, slots=True)
class Stage:
    """A session, and what it talks to."""

    ground: Ground
    session: Any

    def turns(self, length: Length, names: Iterable[str], job: Job, say: Say) -> dict[str, Taken]:
        """All jobs, round by round; all must return the same."""
        found: dict[str, Taken] = {}
        results: dict[str, Any] = {}
        there = list(names)
        for round_ in range(length.warm_up + length.rounds):
            for name in there if round_ % 2 else reversed(there):  # none is always the one that follows another
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
    """User and system time so far of a process and all it started, ended ones included; `without` some and theirs."""
    stats: dict[int, list[str]] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            stats[int(entry.name)] = fields
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    left_out, total, waiting = set(without), 0, [root]
    while waiting:
        pid = waiting.pop()
        if pid in stats and pid not in left_out:
            waiting.extend(children.get(pid, ()))
            total += sum(int(stats[pid][number]) for number in (11, 12, 13, 14))
    return total / _TICKS
