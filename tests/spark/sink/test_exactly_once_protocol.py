"""The exactly-once protocol with crashes between all its steps: no row is ever seen twice, and none is missing.

A model, not a broker: transactions, the log of states, drivers that are started again, their tasks, whose attempts race
each other and may be late, and whatever may happen to them. Real processes are killed in test_exactly_once.py.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.producer.transaction import OpenTransaction
from ottla.model import limits
from ottla.spark.sink.driver import Ticket, written
from ottla.spark.sink.protocol import (
    BATCH_RUN,
    BatchDecision,
    BatchRefused,
    Known,
    Part,
    Prepared,
    RecordPosition,
    Work,
    check_rewritten,
    decide,
    finished,
    from_bytes,
    next_batch_write,
    prepared,
    to_bytes,
    to_end,
    work_of,
)

RUN, TASKS, BATCHES = "run", 2, 3
Row = tuple[str, int, int]


class Fenced(Exception):
    """Another took the transactional id."""


class World:
    """What outlives a crash: the brokers, and the checkpoints of queries."""

    def __init__(self) -> None:
        self.epoch = 0  # of the sink's transactional id
        self.state: bytes | None = None
        self.checkpoints: dict[str, int] = {}  # by run: the last batch that Spark knows to be written
        self.transactions: list[tuple[str, int, Row]] = []  # (transactional id, epoch, what it wrote)
        self.outcome: dict[int, bool | None] = {}  # of a transaction by its number; None while it is open
        self.epochs: dict[str, int] = {}
        self.attempts: list[Attempt] = []  # that are running, whether anybody waits for them or not

    def take(self, transactional_id: str) -> int:
        """Take the id, which aborts what is open under it."""
        for number in self.open_under(transactional_id):
            self.outcome[number] = False
        self.epochs[transactional_id] = self.epochs.get(transactional_id, 0) + 1
        return self.epochs[transactional_id]

    def write_row(self, transactional_id: str, epoch: int, row: Row) -> int:
        if self.epochs[transactional_id] != epoch:
            raise Fenced
        self.transactions.append((transactional_id, epoch, row))
        self.outcome[len(self.transactions) - 1] = None
        return len(self.transactions) - 1

    def commit(self, part: Part) -> bool:
        """Whether it is committed, after that was asked for."""
        number = part.first.offset
        if self.outcome[number] is None:
            self.outcome[number] = True
        return self.outcome[number] is True

    def open(self) -> list[int]:
        return [number for number, outcome in self.outcome.items() if outcome is None]

    def open_under(self, transactional_id: str) -> list[int]:
        return [number for number in self.open() if self.transactions[number][0] == transactional_id]

    def visible(self) -> list[Row]:
        return sorted(row for number, (_, _, row) in enumerate(self.transactions) if self.outcome[number])

    def write(self, epoch: int, decision: BatchDecision) -> None:
        if epoch != self.epoch:
            raise Fenced
        self.state = to_bytes(decision)


@dataclass(eq=False)
class Attempt:
    """One attempt of a task: it chooses an id, takes it, writes, and has its part to tell of.

    `hasty`: nobody else does anything between its look whether an id is free and its taking it.
    """

    world: World
    row: Row
    hasty: bool
    part: Part | None = None
    failed: bool = False
    steps: Iterator[None] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = self._run()
        self.world.attempts.append(self)

    def step(self) -> None:
        try:
            next(self.steps)
        except StopIteration:
            self.world.attempts.remove(self)
        except Fenced:
            self.failed = True
            self.world.attempts.remove(self)

    def _run(self) -> Iterator[None]:
        world, (_, _, task) = self.world, self.row
        name = f"task/{task}"
        if world.open_under(name):
            name += f"/{len(world.epochs)}"
        if not self.hasty:
            yield
        epoch = world.take(name)
        yield
        number = world.write_row(name, epoch, self.row)
        yield
        self.part = Part(task, name, 1, epoch, True, 1, 10, RecordPosition("t", 0, number))


class Driver:
    """One driver of a query, with its supervisor: it is started again when it crashed or failed."""

    def __init__(self, world: World, run: str = RUN, *, hasty: bool = False) -> None:
        self.world, self.run, self.hasty = world, run, hasty
        self.running: dict[int, list[Attempt]] = {}  # the attempts of every task that is not done
        self.refusals: list[str] = []
        self.crash()

    def crash(self) -> None:
        """Its attempts go on, as those of an executor that does not know."""
        self.running = {}
        self.steps = self._batches()

    def retry_stage(self) -> None:
        """Shuffle files are gone: every task that is not done gets another attempt, counted from 0 again."""
        for attempts in self.running.values():
            if len(attempts) < 4:
                attempts.append(Attempt(self.world, attempts[0].row, self.hasty))

    def step(self) -> bool:
        """False when its query has nothing to do any more."""
        try:
            next(self.steps)
        except StopIteration:
            return False
        except Fenced:
            self.crash()
        except BatchRefused as refusal:
            self.refusals.append(str(refusal))
            self.crash()
        return True

    def _batches(self) -> Iterator[None]:
        world = self.world
        while (batch := world.checkpoints.get(self.run, -1) + 1) < BATCHES:
            epoch, state = yield from prepare(world)
            parts: dict[int, Part | None] = {}
            for task in range(TASKS):
                work, lost = work_of(state, self.run, batch, task)
                assert (work is Work.REWRITE) == (lost is not None)
                if work is Work.NOTHING:
                    parts[task] = None
                else:
                    self.running[task] = [Attempt(world, (self.run, batch, task), self.hasty)]
            while self.running:
                yield
                parts |= self._see_to_tasks()
            decision = decide(state, self.run, batch, TASKS, parts)
            if decision is not None:
                if any(world.outcome[part.first.offset] is not None for part in decision.parts):
                    raise BatchRefused("over")
                yield
                world.write(epoch, decision)
                yield
                for part in decision.parts:
                    if not world.commit(part):
                        raise BatchRefused("lost")
                    yield
                world.write(epoch, finished(decision))
            yield
            world.checkpoints[self.run] = max(world.checkpoints.get(self.run, -1), batch)

    def _see_to_tasks(self) -> dict[int, Part | None]:
        """A step of every attempt; the parts of those that are the first of their task to be done."""
        done: dict[int, Part | None] = {}
        for task, attempts in list(self.running.items()):
            for attempt in attempts:
                if attempt in self.world.attempts:
                    attempt.step()
            finished_first = next((each for each in attempts if each.part is not None), None)
            if finished_first is not None:
                done[task] = finished_first.part
                del self.running[task]
            elif all(each.failed for each in attempts):
                self.running[task] = [Attempt(self.world, attempts[0].row, self.hasty)]
        return done


def prepare(world: World) -> "Iterator[None]":
    while True:
        world.epoch += 1
        epoch = world.epoch
        yield
        last = None if world.state is None else from_bytes(world.state)
        yield
        lost = []
        for part in to_end(last):
            if not world.commit(part):
                lost.append(part)
            yield
        for number in world.open():
            if world.outcome[number] is None:  # nobody has ended it meanwhile
                world.outcome[number] = False
            yield
        state = prepared(last, lost)
        if state.last is last:
            return epoch, state  # type: ignore[return-value]
        assert state.last is not None
        world.write(epoch, state.last)
        yield


events = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.integers(0, 2), st.integers(1, 25)),
        st.tuples(st.just("late"), st.integers(0, 5), st.integers(1, 4)),
        st.tuples(st.just("retry"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("crash"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("timeout"), st.integers(0, 3), st.just(0)),
    ),
    max_size=40,
)
Event = tuple[str, int, int]


def happen(world: World, drivers: list[Driver], event: Event) -> None:
    what, which, count = event
    driver = drivers[which % len(drivers)]
    if what == "step":
        for _ in range(count):
            driver.step()
            seen = world.visible()
            assert len(seen) == len(set(seen)), f"seen twice: {seen}"
    elif what == "late" and world.attempts:
        attempt = world.attempts[which % len(world.attempts)]
        for _ in range(count):
            if attempt in world.attempts:
                attempt.step()
    elif what == "retry":
        driver.retry_stage()
    elif what == "crash":
        driver.crash()
    elif what == "timeout" and world.open():
        world.outcome[world.open()[which % len(world.open())]] = False  # its time is over


def all_rows(*runs: str) -> list[Row]:
    return [(run, batch, task) for run in sorted(runs) for batch in range(BATCHES) for task in range(TASKS)]


def finish(world: World, *drivers: Driver) -> None:
    """In peace: one after the other, as often as some rows that one lost are another's to write again."""
    for _ in range(20):
        busy = False
        for driver in drivers:
            for _ in range(200):
                if not driver.step():
                    break
            else:
                busy = True
        if not busy:
            return
    raise AssertionError("it does not come to an end")


@settings(max_examples=1_000, deadline=None)
@given(events)
def test_every_row_is_seen_once_whatever_happens(happenings: list[Event]) -> None:
    """Two drivers of one query, and one of another that uses the same sink."""
    world = World()
    drivers = [Driver(world), Driver(world), Driver(world, "other")]
    for event in happenings:
        happen(world, drivers, event)
    finish(world, Driver(world), Driver(world, "other"))
    assert world.checkpoints == {RUN: BATCHES - 1, "other": BATCHES - 1}
    assert world.visible() == all_rows(RUN, "other")


@settings(max_examples=300, deadline=None)
@given(events)
def test_attempts_do_not_end_each_others_transactions(happenings: list[Event]) -> None:
    """Stages are retried and attempts are late: as long as nothing times out, nothing that was decided is lost."""
    world = World()
    driver = Driver(world, hasty=True)
    for event in happenings:
        if event[0] != "timeout":
            happen(world, [driver], event)
    finish(world, driver)
    assert driver.refusals == []
    assert world.visible() == all_rows(RUN)


def part(task: int, **changes: int) -> Part:
    return replace(Part(task, f"id/{task}", 4, 2, True, 10, 1_000, RecordPosition("t", 1, 5)), **changes)  # type: ignore[arg-type]


LAST = BatchDecision(RUN, 5, 2, (part(0), part(1)))


def test_a_state_reads_as_it_was_written() -> None:
    state = replace(LAST, earlier=(Known("first", 3), Known(BATCH_RUN, 7, "p")), plan="q")
    assert from_bytes(to_bytes(state)) == state
    # As it was before earlier runs were remembered, and before plans were.
    without_plan = to_bytes(LAST).replace(b',"plan":""', b"")
    assert from_bytes(without_plan.replace(b'"form":3', b'"form":1').replace(b',"earlier":[]', b"")) == LAST
    second = without_plan.replace(b'"form":3', b'"form":2').replace(b'"earlier":[]', b'"earlier":[["first",3]]')
    assert from_bytes(second) == replace(LAST, earlier=(Known("first", 3),))
    with pytest.raises(BatchRefused, match="newer version"):
        from_bytes(to_bytes(LAST).replace(b'"form":3', b'"form":4'))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"{",
        b"[]",
        b"7",
        b'"text"',
        b"{}",
        b'{"form":2}',
        b'{"form":"x","parts":[],"run":"r"}',
        b'{"form":2,"parts":[{}],"run":"r","batch":1}',
        b'{"form":2,"parts":[],"run":"r","batch":"x","task_count":1}',
        b'{"form":2,"parts":[],"run":"r","batch":1,"task_count":1,"what":2}',
    ],
)
def test_what_is_no_state_is_not_taken_for_one(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the text says why; who reads it adds where it lies
        from_bytes(data)


def test_a_batch_that_was_decided_is_not_written_again() -> None:
    state = prepared(LAST, [])
    assert state.last == finished(LAST)
    assert work_of(state, RUN, 5, 0) == work_of(state, RUN, 4, 0) == (Work.NOTHING, None)
    assert work_of(state, RUN, 6, 0) == (Work.WRITE, None)
    assert decide(state, RUN, 5, 2, {0: None, 1: None}) is None
    assert decide(state, RUN, 6, 1, {0: part(0)}) == BatchDecision(RUN, 6, 1, (part(0),))
    assert decide(state, RUN, 6, 2, {0: None, 1: None}) is None, "a batch without rows leaves no trace"


def test_batches_of_another_run_are_other_batches() -> None:
    state = prepared(LAST, [])
    assert work_of(state, "other", 0, 0) == (Work.WRITE, None)
    decision = decide(state, "other", 0, 1, {0: part(0)})
    assert decision == BatchDecision("other", 0, 1, (part(0),), earlier=(Known(RUN, 5),))
    # The earlier run is remembered: its batches are not written again, its next one is.
    state = prepared(finished(decision), [])
    assert work_of(state, RUN, 5, 0) == (Work.NOTHING, None)
    assert decide(state, RUN, 5, 1, {0: None}) is None
    assert decide(state, RUN, 6, 1, {0: part(0)}) == BatchDecision(RUN, 6, 1, (part(0),), earlier=(Known("other", 0),))


def test_a_batch_that_reads_something_else_now_does_not_count_as_written() -> None:
    """Of a checkpoint that was restored from a backup the batches are counted on from there, over other rows."""
    first = decide(Prepared(None), RUN, 5, 1, {0: part(0)}, "b")
    assert first is not None
    later = decide(Prepared(finished(first)), "other", 0, 1, {0: part(0)}, "x")
    assert later is not None
    for last in (finished(first), finished(later)):  # of the last run, and of one before it
        state = Prepared(last)
        assert decide(state, RUN, 5, 1, {0: None}, "b") is None
        assert decide(state, RUN, 5, 1, {0: None}) is None, "what it reads cannot be found out"
        for batch, why in ((5, "from other offsets"), (4, "and those up to batch 5")):
            with pytest.raises(BatchRefused, match=f"batch {batch} was written before, {why}.*sink.id"):
                decide(state, RUN, batch, 1, {0: None}, "b and c")
        assert decide(state, RUN, 6, 1, {0: part(0)}, "d") is not None
    believed = Prepared(replace(finished(first), plan=""))  # as it was decided before plans were remembered
    assert decide(believed, RUN, 5, 1, {0: None}, "b and c") is None


def test_as_many_runs_are_remembered_as_there_is_room_for() -> None:
    last = BatchDecision("0", 0, 1, (), done=True)
    for number in range(1, 100):
        decided = decide(Prepared(last), str(number), number, 1, {0: part(0)})
        assert decided is not None
        last = finished(decided)
    assert len(last.earlier) == limits.SPARK_RUNS_REMEMBERED_MAX
    assert (last.last_of("99"), last.last_of("98"), last.last_of("0")) == (99, 98, None)


def test_batch_writes_are_numbered_over_other_runs() -> None:
    assert next_batch_write(None) == next_batch_write(LAST) == 0
    assert next_batch_write(BatchDecision(BATCH_RUN, 4, 1, (), done=True)) == 5
    assert next_batch_write(replace(LAST, earlier=(Known(BATCH_RUN, 7),))) == 8


def test_what_was_lost_is_given_up_by_name_only() -> None:
    for given_up in (None, (RUN, 4), ("other", 5)):
        state = prepared(LAST, [part(1)], given_up)
        assert state == Prepared(LAST, (part(1),))
        for run, batch in (("other", 0), (BATCH_RUN, 0), (RUN, 6)):
            for refused in (lambda *at: work_of(*at, 0), lambda *at: decide(*at, 1, {0: part(0)})):  # type: ignore[misc]
                with pytest.raises(BatchRefused, match=r"10 rows of it \(of tasks 1\) were lost.*sink.give.up=run:5"):
                    refused(state, run, batch)
        assert work_of(state, RUN, 4, 1) == (Work.NOTHING, None), "what came before is written"
    assert prepared(LAST, [part(1)], (RUN, 5)) == Prepared(finished(LAST))


def test_what_was_lost_is_written_again_and_nothing_else() -> None:
    state = prepared(LAST, [part(1)])
    assert state == Prepared(LAST, (part(1),))
    assert work_of(state, RUN, 5, 0) == (Work.NOTHING, None)
    assert work_of(state, RUN, 5, 1) == (Work.REWRITE, part(1))
    again = part(1, epoch=9)
    assert decide(state, RUN, 5, 2, {0: None, 1: again}) == BatchDecision(RUN, 5, 2, (again,), revision=1)


def test_what_cannot_be_made_up_for_is_refused() -> None:
    state = prepared(LAST, [part(1)])
    with pytest.raises(BatchRefused, match="had 2 tasks when it was decided and has 3 now"):
        decide(state, RUN, 5, 3, {0: None, 1: part(1), 2: None})
    with pytest.raises(BatchRefused, match="not all lost transactions"):
        decide(state, RUN, 5, 2, {0: None, 1: None})
    check_rewritten(part(1), 10, 1_000)
    with pytest.raises(BatchRefused, match="does not give the same rows again"):
        check_rewritten(part(1), 11, 1_000)


def test_what_tasks_return_does_not_grow_with_their_number() -> None:
    lost = tuple(part(task) for task in range(1_000))
    taken = OpenTransaction("ottla-spark/s/driver", 1, 2, True)
    state = Prepared(BatchDecision(RUN, 5, 1_000, lost, earlier=(Known("other", 1),) * 32), lost)
    ticket = Ticket("s", taken, state, 0, passing=False, made_ms=0)
    messages = [written(ticket, RUN, 5, task, part(task)) for task in range(1_000)]
    assert messages[0].ticket is ticket
    assert max(len(pickle.dumps(each)) for each in messages[1:]) < 1_000
