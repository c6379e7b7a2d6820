"""The exactly-once protocol as pure functions; docs/exactly-once.md explains it and goes through the possible crashes.

A sink has one state, the last value of its key in the topic `_ottla_spark_sinks`:

    (none) --decide--> decided --every part ended--> done --decide (a later batch)--> decided ...
                       decided --some parts lost, rerun of the same batch--> decided, one revision later

A *part* is what one task wrote: one transaction, open until the driver ends it. The decision names all parts of a
batch. Once the decision is in the log the batch counts as written, and the next driver commits the parts that are still
open.

Rules:
- Only the driver that prepared last can decide: every `prepare` takes the sink's transactional id with a new epoch,
  which fences other drivers, and reads the state afterwards. So a decision is never based on an old state.
- All decided parts are ended before any task begins. Transactions that are still open then will never be committed, and
  are aborted.
- A batch that was decided is not written again: tasks of a rerun write nothing, except those whose part was lost.
- A part is lost if its transaction timed out before it was committed. Its task writes the part again; the rows have to
  be the same, which is checked by their number and size.
- No other batch is written to the sink before lost parts are written again, unless the option `sink.give.up` gives them
  up.
- Batches are numbered within a run: Spark's query id, which is in the checkpoint. All batch writes of a sink are one
  run. The state has earlier runs with their last batches, so that none of these is written again.
- The state has the plan of the last batch of a run: a hash of the offsets that it read, as far as they are known. If a
  batch that counts as written has another plan now, it has other rows, which were not written: it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from ottla.model import limits

# The run of batch writes, which have no query id: all batch writes of one sink are numbered together.
BATCH_RUN = "batch"
_FORM = 3  # version 1 had no earlier runs, version 2 no plans


class RecordPosition(NamedTuple):
    """The position of a record in a topic."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Part:
    """The transaction of one task, which the task left open."""

    task: int
    transactional_id: str
    producer_id: int
    epoch: int
    implicit: bool
    rows: int
    size_bytes: int
    first: RecordPosition  # its first record: if it is visible, the transaction was committed


class Known(NamedTuple):
    """The last decided batch of a run, and its plan (empty if it is not known)."""

    run: str
    batch: int
    plan: str = ""


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """A batch that counts as written as soon as this is in the log. `parts` are those that this revision added."""

    run: str
    batch: int
    task_count: int
    parts: tuple[Part, ...]
    revision: int = 0
    done: bool = False
    earlier: tuple[Known, ...] = ()  # runs before this one; the latest run is last
    plan: str = ""

    def last_of(self, run: str) -> int | None:
        """The last batch of a run that was decided; None if the run is not known."""
        known = self.known_of(run)
        return None if known is None else known.batch

    def known_of(self, run: str) -> Known | None:
        """The last decided batch of a run; None if the run is not known."""
        return next((each for each in (Known(self.run, self.batch, self.plan), *self.earlier) if each.run == run), None)


class Work(Enum):
    """The work of a task."""

    WRITE = "write"
    REWRITE = "rewrite"
    NOTHING = "nothing"


class BatchRefused(RuntimeError):
    """The batch cannot be written without losing rows or writing them twice."""


class UnfinishedBatch(BatchRefused):
    """The batch is not complete; running it again unchanged completes it."""


class TakenOver(BatchRefused):
    """Another driver has taken over the sink."""


def to_bytes(decision: BatchDecision) -> bytes:
    """The value of the decision's record."""
    return json.dumps({"form": _FORM, **asdict(decision)}, separators=(",", ":")).encode()


def from_bytes(data: bytes) -> BatchDecision:
    """Parse the result of `to_bytes`. Raises BatchRefused if a newer version wrote it, ValueError if it is none."""
    try:
        found: dict[str, Any] = json.loads(data)
        form = found.pop("form")
        if isinstance(form, int) and form > _FORM:
            raise BatchRefused("it was written by a newer version of Ottla")
        parts = tuple(Part(**{**each, "first": RecordPosition(*each["first"])}) for each in found.pop("parts"))
        earlier = tuple(Known(str(run), int(batch), *plan) for run, batch, *plan in found.pop("earlier", ()))
        return BatchDecision(str(found.pop("run")), int(found.pop("batch")), parts=parts, earlier=earlier, **found)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no state of a sink ({type(error).__name__}: {error})") from error


# --- before the tasks -------------------------------------------------------------------------------------------


def to_end(last: BatchDecision | None) -> tuple[Part, ...]:
    """The parts that have to be committed before anything else is done."""
    return () if last is None or last.done else last.parts


@dataclass(frozen=True, slots=True)
class Prepared:
    """The state with which the tasks and the commit of a batch work: the last decision, and its lost parts."""

    last: BatchDecision | None
    lost: tuple[Part, ...] = ()


def prepared(last: BatchDecision | None, lost: Sequence[Part], given_up: tuple[str, int] | None = None) -> Prepared:
    """The state after every part of the last decision was either committed or found lost. `given_up`: the run and the
    batch whose lost parts are given up.
    """
    if last is None or last.done:
        assert not lost
        return Prepared(last)
    if lost and given_up != (last.run, last.batch):
        return Prepared(last, tuple(lost))
    return Prepared(finished(last))


def finished(decision: BatchDecision) -> BatchDecision:
    """The decision when every part is committed. The parts are not needed any more."""
    return replace(decision, parts=(), done=True)


def next_batch_write(last: BatchDecision | None) -> int:
    """The number of a batch write without the option `batch.id`."""
    known = None if last is None else last.last_of(BATCH_RUN)
    return 0 if known is None else known + 1


# --- a task -----------------------------------------------------------------------------------------------------


def work_of(state: Prepared, run: str, batch: int, task: int) -> tuple[Work, Part | None]:
    """The work of this task in this batch; with REWRITE comes the lost part. Raises BatchRefused in the same cases as
    `decide`, before rows are written in vain.
    """
    if is_new(state, run, batch):
        return Work.WRITE, None
    if state.last is not None and (run, batch) == (state.last.run, state.last.batch):
        for part in state.lost:
            if part.task == task:
                return Work.REWRITE, part
    return Work.NOTHING, None


def is_new(state: Prepared, run: str, batch: int) -> bool:
    """Whether this batch is not decided yet. Raises BatchRefused if it must not be decided because parts of the last
    one are lost.
    """
    last = state.last
    if last is None:
        return True
    known = last.last_of(run)
    if known is not None and batch <= known:
        return False
    if state.lost:
        again = f"with batch.id={last.batch}" if last.run == BATCH_RUN else "from its checkpoint"
        raise BatchRefused(
            f"{missing(last, state.lost)}. Nothing else is written by this sink before they are: run that "
            f"{'write' if last.run == BATCH_RUN else 'query'} again, {again}, which writes them again; or give these "
            f"rows up with the option sink.give.up={last.run}:{last.batch}"
        )
    return True


def missing(last: BatchDecision, lost: Sequence[Part]) -> str:
    """A description of the lost rows."""
    tasks = sorted(part.task for part in lost)
    shown = ", ".join(map(str, tasks[:10])) + (", ..." if len(tasks) > 10 else "")
    of_run = "batch write" if last.run == BATCH_RUN else f"run {last.run}, batch"
    return (
        f"{of_run} {last.batch} was decided, but {sum(part.rows for part in lost)} rows of it (of tasks {shown}) were "
        "lost: their transactions ended before they were committed"
    )


def check_rewritten(lost: Part, rows: int, size_bytes: int) -> None:
    """Raise BatchRefused if the rows of a rerun differ in number or size from those of the first run."""
    if (rows, size_bytes) != (lost.rows, lost.size_bytes):
        raise BatchRefused(
            f"task {lost.task} had {lost.rows} rows ({lost.size_bytes} bytes) when its batch was decided, and has "
            f"{rows} ({size_bytes} bytes) now: its transaction was lost (it ended before it was committed), and "
            "cannot be made up for, because the query does not give the same rows again"
        )


# --- after the tasks --------------------------------------------------------------------------------------------


def decide(
    state: Prepared, run: str, batch: int, task_count: int, parts: Mapping[int, Part | None], plan: str = ""
) -> BatchDecision | None:
    """The decision, given the part of every task (None if it wrote nothing) and the batch's plan. None if there is
    nothing to decide.

    Raises BatchRefused if a rerun differs from the first run.
    """
    last = state.last
    written = tuple(part for _, part in sorted(parts.items()) if part is not None)
    if last is None or is_new(state, run, batch):
        return (
            BatchDecision(run, batch, task_count, written, earlier=_earlier(last, run), plan=plan) if written else None
        )
    _check_plan(last, run, batch, plan)
    if (run, batch) != (last.run, last.batch) or not state.lost:
        assert not written, "tasks of a batch that is written have written again"
        return None
    if task_count != last.task_count:
        raise BatchRefused(
            f"batch {batch} had {last.task_count} tasks when it was decided and has {task_count} now: lost "
            f"transactions of tasks {[part.task for part in state.lost]} cannot be made up for"
        )
    if [part.task for part in written] != sorted(part.task for part in state.lost):
        raise BatchRefused(f"batch {batch}: not all lost transactions were written again")
    return replace(last, parts=written, revision=last.revision + 1)


def _check_plan(last: BatchDecision, run: str, batch: int, plan: str) -> None:
    """Raise BatchRefused if this is not the last batch of its run, or has other offsets than it had: Spark repeats only
    the last batch, with the same offsets.
    """
    known = last.known_of(run)
    if known is None or not known.plan or not plan or (known.batch, known.plan) == (batch, plan):
        return
    before = "from other offsets" if batch == known.batch else f"and those up to batch {known.batch} after it"
    raise BatchRefused(
        f"batch {batch} was written before, {before}: it seems that the checkpoint of the query was restored from a "
        "backup. Nothing is written, because new rows would be taken for those that are there. Put the checkpoint back "
        "as it was; or give the query another sink.id, and all rows since the backup are written, some of them again"
    )


def _earlier(last: BatchDecision | None, run: str) -> tuple[Known, ...]:
    """The runs before this one."""
    if last is None or last.run == run:
        return () if last is None else last.earlier
    others = [each for each in last.earlier if each.run != run]
    return tuple([*others, Known(last.run, last.batch, last.plan)][-limits.SPARK_RUNS_REMEMBERED_MAX :])
