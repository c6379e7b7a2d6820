"""The exactly-once protocol as pure decisions; docs/exactly-once.md tells the story and goes through the crashes.

A sink has one state, the last value of its key in the topic `_ottla_spark_sinks`:

    (none) --decide--> decided --every part ended--> done --decide (a later batch)--> decided ...
                       decided --some parts lost, rerun of the same batch--> decided, one revision later

A *part* is what one task wrote: one transaction, open until the driver ends it. The decision names all parts of a
batch; once it is in the log the batch is written, and whoever comes next ends what is left to be ended.

Rules:
- Only who prepared last can decide: every `prepare` takes the sink's transactional id anew, which fences the others,
  and reads the state afterwards. So a decision is never made on a state that has changed since.
- All decided parts are ended before any task begins. What is open then nobody will ever commit, and is aborted.
- A batch that was decided is not written again: tasks of a rerun write nothing, except those whose part was lost.
- A part is lost when its transaction ended without being committed: it timed out before it was. Its task writes it
  again; it has to be the same rows, which is checked as far as their number and size tell.
- The state belongs to a run (Spark's query id, which lives in the checkpoint): numbers of another run mean nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, NamedTuple

_FORM = 1


class Place(NamedTuple):
    """Where a record lies."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Part:
    """What one task wrote, in a transaction that it left open."""

    task: int
    transactional_id: str
    producer_id: int
    epoch: int
    implicit: bool
    rows: int
    size_bytes: int
    first: Place  # of its records; it tells whether the transaction was committed when nobody else can


@dataclass(frozen=True, slots=True)
class Decision:
    """A batch that is written, as soon as this is in the log. `parts` are those that this revision brought in."""

    run: str
    batch: int
    task_count: int
    parts: tuple[Part, ...]
    revision: int = 0
    done: bool = False


class Work(Enum):
    """What a task does."""

    WRITE = "write"
    REWRITE = "rewrite"
    NOTHING = "nothing"


class Refused(RuntimeError):
    """The batch cannot be written without rows getting lost or written twice."""


def to_bytes(decision: Decision) -> bytes:
    """As it lies in the log."""
    return json.dumps({"form": _FORM, **asdict(decision)}, separators=(",", ":")).encode()


def from_bytes(data: bytes) -> Decision:
    """Reads what `to_bytes` wrote. Refused, if a newer version did."""
    found: dict[str, Any] = json.loads(data)
    if found.pop("form") != _FORM:
        raise Refused("the sink's state was written by a newer version of Ottla")
    parts = tuple(Part(**{**each, "first": Place(*each["first"])}) for each in found.pop("parts"))
    return Decision(parts=parts, **found)


# --- before the tasks -------------------------------------------------------------------------------------------


def to_end(last: Decision | None) -> tuple[Part, ...]:
    """The parts that have to be committed before anything else is done."""
    return () if last is None or last.done else last.parts


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the tasks of a batch, and its commit, know: the last decision, and which of its parts were lost."""

    last: Decision | None
    lost: tuple[Part, ...] = ()


def prepared(last: Decision | None, lost: Sequence[Part]) -> Prepared:
    """After every part of the last decision was either committed or found lost."""
    if last is None or last.done:
        assert not lost
        return Prepared(last)
    if lost:
        return Prepared(last, tuple(lost))
    return Prepared(finished(last))


def finished(decision: Decision) -> Decision:
    """Every part is committed. The parts are nobody's concern any more."""
    return Decision(decision.run, decision.batch, decision.task_count, (), decision.revision, done=True)


# --- a task -----------------------------------------------------------------------------------------------------


def work_of(state: Prepared, run: str, batch: int, task: int) -> tuple[Work, Part | None]:
    """What this task does in this batch; with REWRITE comes the part that was lost."""
    last = state.last
    if last is None or last.run != run or batch > last.batch:
        return Work.WRITE, None
    if batch == last.batch:
        for part in state.lost:
            if part.task == task:
                return Work.REWRITE, part
    return Work.NOTHING, None


def check_rewritten(lost: Part, rows: int, size_bytes: int) -> None:
    """The rows of a rerun must be those of the first time."""
    if (rows, size_bytes) != (lost.rows, lost.size_bytes):
        raise Refused(
            f"task {lost.task} had {lost.rows} rows ({lost.size_bytes} bytes) when its batch was decided, and has "
            f"{rows} ({size_bytes} bytes) now: its transaction was lost (it timed out before it was committed), and "
            "cannot be made up for, because the query does not give the same rows again"
        )


# --- after the tasks --------------------------------------------------------------------------------------------


def decide(state: Prepared, run: str, batch: int, task_count: int, parts: Mapping[int, Part | None]) -> Decision | None:
    """What to write down, given the part of every task (None: it wrote nothing). None: there is nothing to decide.

    Refused when the tasks of a rerun are not those of the first run.
    """
    last = state.last
    written = tuple(part for _, part in sorted(parts.items()) if part is not None)
    if last is None or last.run != run or batch > last.batch:
        if last is not None and last.run == run and state.lost:
            raise Refused(
                f"batch {last.batch} was decided, but {len(state.lost)} of its transactions were lost, and the query "
                f"went on with batch {batch} instead of running it again"
            )
        return Decision(run, batch, task_count, written) if written else None
    if batch < last.batch or not state.lost:
        assert not written, "tasks of a batch that is written have written again"
        return None
    if task_count != last.task_count:
        raise Refused(
            f"batch {batch} had {last.task_count} tasks when it was decided and has {task_count} now: lost "
            f"transactions of tasks {[part.task for part in state.lost]} cannot be made up for"
        )
    if [part.task for part in written] != sorted(part.task for part in state.lost):
        raise Refused(f"batch {batch}: not all lost transactions were written again")
    return Decision(run, batch, task_count, written, last.revision + 1)
