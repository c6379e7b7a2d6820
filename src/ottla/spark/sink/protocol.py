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
- Nothing else is written before lost parts are there, whoever writes it, unless somebody gives them up by name.
- Numbers of batches belong to a run: Spark's query id, which lives in the checkpoint. All batch writes of a sink are
  one run. Runs before the last one are remembered with their last batches, so that none of these is written again.
- The last batch of a run is remembered with its plan: what it read, as far as that is known. Where a batch that counts
  as written has another plan now, its rows are others, and nobody has written them: that is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from ottla.model import limits

# Batch writes have no run of Spark's: all writes of one sink are numbered together.
BATCH_RUN = "batch"
_FORM = 3  # 1 did not know of earlier runs, 2 not of plans


class RecordPosition(NamedTuple):
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
    first: RecordPosition  # of its records; it tells whether the transaction was committed when nobody else can


class Known(NamedTuple):
    """How far a run has come: its last batch that was decided, and what that one read (empty if it is not known)."""

    run: str
    batch: int
    plan: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """A batch that is written, as soon as this is in the log. `parts` are those that this revision brought in."""

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
        """What is known of a run."""
        return next((each for each in (Known(self.run, self.batch, self.plan), *self.earlier) if each.run == run), None)


class Work(Enum):
    """What a task does."""

    WRITE = "write"
    REWRITE = "rewrite"
    NOTHING = "nothing"


class BatchRefused(RuntimeError):
    """The batch cannot be written without rows getting lost or written twice."""


class Unfinished(BatchRefused):
    """Another run of the same batch makes good what is missing, with nothing changed by anybody."""


class TakenOver(BatchRefused):
    """Another driver has the sink now."""


def to_bytes(decision: Decision) -> bytes:
    """As it lies in the log."""
    return json.dumps({"form": _FORM, **asdict(decision)}, separators=(",", ":")).encode()


def from_bytes(data: bytes) -> Decision:
    """Reads what `to_bytes` wrote. BatchRefused, if a newer version did; ValueError, if it is nothing of the kind."""
    try:
        found: dict[str, Any] = json.loads(data)
        form = found.pop("form")
        if isinstance(form, int) and form > _FORM:
            raise BatchRefused("it was written by a newer version of Ottla")
        parts = tuple(Part(**{**each, "first": RecordPosition(*each["first"])}) for each in found.pop("parts"))
        earlier = tuple(Known(str(run), int(batch), *plan) for run, batch, *plan in found.pop("earlier", ()))
        return Decision(str(found.pop("run")), int(found.pop("batch")), parts=parts, earlier=earlier, **found)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no state of a sink ({type(error).__name__}: {error})") from error


# --- before the tasks -------------------------------------------------------------------------------------------


def to_end(last: Decision | None) -> tuple[Part, ...]:
    """The parts that have to be committed before anything else is done."""
    return () if last is None or last.done else last.parts


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the tasks of a batch, and its commit, know: the last decision, and which of its parts were lost."""

    last: Decision | None
    lost: tuple[Part, ...] = ()


def prepared(last: Decision | None, lost: Sequence[Part], given_up: tuple[str, int] | None = None) -> Prepared:
    """After every part of the last decision was either committed or found lost. `given_up`: the run and the batch whose
    lost parts are not missed."""
    if last is None or last.done:
        assert not lost
        return Prepared(last)
    if lost and given_up != (last.run, last.batch):
        return Prepared(last, tuple(lost))
    return Prepared(finished(last))


def finished(decision: Decision) -> Decision:
    """Every part is committed. The parts are nobody's concern any more."""
    return replace(decision, parts=(), done=True)


def next_batch_write(last: Decision | None) -> int:
    """The number of a batch write that was not given one."""
    known = None if last is None else last.last_of(BATCH_RUN)
    return 0 if known is None else known + 1


# --- a task -----------------------------------------------------------------------------------------------------


def work_of(state: Prepared, run: str, batch: int, task: int) -> tuple[Work, Part | None]:
    """What this task does in this batch; with REWRITE comes the lost part. BatchRefused, as in `decide`, before
    anything is written in vain."""
    if is_new(state, run, batch):
        return Work.WRITE, None
    if state.last is not None and (run, batch) == (state.last.run, state.last.batch):
        for part in state.lost:
            if part.task == task:
                return Work.REWRITE, part
    return Work.NOTHING, None


def is_new(state: Prepared, run: str, batch: int) -> bool:
    """Whether this batch was not decided yet. BatchRefused if it must not be: parts of the last one are missing."""
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


def missing(last: Decision, lost: Sequence[Part]) -> str:
    """Which rows were lost, in words."""
    tasks = sorted(part.task for part in lost)
    shown = ", ".join(map(str, tasks[:10])) + (", ..." if len(tasks) > 10 else "")
    of_run = "batch write" if last.run == BATCH_RUN else f"run {last.run}, batch"
    return (
        f"{of_run} {last.batch} was decided, but {sum(part.rows for part in lost)} rows of it (of tasks {shown}) were "
        "lost: their transactions ended before they were committed"
    )


def check_rewritten(lost: Part, rows: int, size_bytes: int) -> None:
    """The rows of a rerun must be those of the first time."""
    if (rows, size_bytes) != (lost.rows, lost.size_bytes):
        raise BatchRefused(
            f"task {lost.task} had {lost.rows} rows ({lost.size_bytes} bytes) when its batch was decided, and has "
            f"{rows} ({size_bytes} bytes) now: its transaction was lost (it ended before it was committed), and "
            "cannot be made up for, because the query does not give the same rows again"
        )


# --- after the tasks --------------------------------------------------------------------------------------------


def decide(
    state: Prepared, run: str, batch: int, task_count: int, parts: Mapping[int, Part | None], plan: str = ""
) -> Decision | None:
    """What to write down, given the part of every task (None: it wrote nothing) and the batch's plan. None: there is
    nothing to decide.

    BatchRefused when a rerun is not what the first run was.
    """
    last = state.last
    written = tuple(part for _, part in sorted(parts.items()) if part is not None)
    if last is None or is_new(state, run, batch):
        return Decision(run, batch, task_count, written, earlier=_earlier(last, run), plan=plan) if written else None
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


def _check_plan(last: Decision, run: str, batch: int, plan: str) -> None:
    """Only the last batch of a run is ever run again, and reads then what it read before."""
    known = last.known_of(run)
    if known is None or not known.plan or not plan or (known.batch, known.plan) == (batch, plan):
        return
    before = "from other offsets" if batch == known.batch else f"and those up to batch {known.batch} after it"
    raise BatchRefused(
        f"batch {batch} was written before, {before}: it seems that the checkpoint of the query was restored from a "
        "backup. Nothing is written, because new rows would be taken for those that are there. Put the checkpoint back "
        "as it was; or give the query another sink.id, and all rows since the backup are written, some of them again"
    )


def _earlier(last: Decision | None, run: str) -> tuple[Known, ...]:
    """The runs that were before this one."""
    if last is None or last.run == run:
        return () if last is None else last.earlier
    others = [each for each in last.earlier if each.run != run]
    return tuple([*others, Known(last.run, last.batch, last.plan)][-limits.SPARK_RUNS_REMEMBERED_MAX :])
