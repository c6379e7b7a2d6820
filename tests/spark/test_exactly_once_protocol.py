"""The exactly-once protocol with crashes between all its steps: no row is ever seen twice, and none is missing.

A model, not a broker: transactions, the log of states, drivers that are started again, and whatever may happen to them.
Real processes are killed in test_exactly_once.py.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.spark.sink.protocol import (
    Decision,
    Part,
    Place,
    Prepared,
    Refused,
    Work,
    check_rewritten,
    decide,
    finished,
    from_bytes,
    prepared,
    to_bytes,
    to_end,
    work_of,
)

RUN, TASKS, BATCHES = "run", 2, 3
Row = tuple[int, int]


class Fenced(Exception):
    """Another driver took the sink."""


class World:
    """What outlives a crash: the brokers, and Spark's checkpoint."""

    def __init__(self) -> None:
        self.epoch = 0  # of the sink's transactional id
        self.state: bytes | None = None
        self.checkpoint = -1
        self.transactions: list[tuple[str, int, Row]] = []  # (transactional id, epoch, what it wrote)
        self.outcome: dict[int, bool | None] = {}  # of a transaction by its number; None while it is open
        self.epochs: dict[str, int] = {}

    def begin(self, transactional_id: str, row: Row) -> int:
        """Take the id, which aborts what is open under it, and write."""
        self.abort(transactional_id)
        self.epochs[transactional_id] = self.epochs.get(transactional_id, 0) + 1
        self.transactions.append((transactional_id, self.epochs[transactional_id], row))
        self.outcome[len(self.transactions) - 1] = None
        return len(self.transactions) - 1

    def commit(self, part: Part) -> bool:
        """Whether it is committed, after that was asked for."""
        number = part.first.offset
        if self.outcome[number] is None:
            self.outcome[number] = True
        return self.outcome[number] is True

    def abort(self, transactional_id: str) -> None:
        for number, (name, _, _) in enumerate(self.transactions):
            if name == transactional_id and self.outcome[number] is None:
                self.outcome[number] = False

    def open(self) -> list[int]:
        return [number for number, outcome in self.outcome.items() if outcome is None]

    def visible(self) -> list[Row]:
        return sorted(row for number, (_, _, row) in enumerate(self.transactions) if self.outcome[number])

    def write(self, epoch: int, decision: Decision) -> int:
        if epoch != self.epoch:
            raise Fenced
        self.state = to_bytes(decision)
        return epoch


def driver(world: World) -> Iterator[None]:
    """One incarnation of the driver, with its tasks; it stops wherever nobody asks for the next step."""
    while (batch := world.checkpoint + 1) < BATCHES:
        epoch, state = yield from prepare(world)
        parts: dict[int, Part | None] = {}
        for task in range(TASKS):
            work, lost = work_of(state, RUN, batch, task)
            yield
            parts[task] = None
            if work is not Work.NOTHING:
                name = f"task/{task}"
                number = world.begin(name, (batch, task))
                parts[task] = Part(task, name, 1, world.epochs[name], True, 1, 10, Place("t", 0, number))
                assert (work is Work.REWRITE) == (lost is not None)
            yield
        decision = decide(state, RUN, batch, TASKS, parts)
        if decision is not None:
            world.write(epoch, decision)
            yield
            for part in decision.parts:
                if not world.commit(part):
                    raise Refused
                yield
            world.write(epoch, finished(decision))
        yield
        world.checkpoint = max(world.checkpoint, batch)


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
            world.abort(world.transactions[number][0])
            yield
        state = prepared(last, lost)
        if state.last is last:
            return epoch, state  # type: ignore[return-value]
        assert state.last is not None
        world.write(epoch, state.last)
        yield


def step(world: World, drivers: list[Iterator[None]], which: int) -> None:
    try:
        next(drivers[which])
    except (StopIteration, Fenced, Refused):
        drivers[which] = driver(world)  # its supervisor starts it again


events = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.integers(0, 1), st.integers(1, 25)),
        st.tuples(st.just("crash"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("timeout"), st.integers(0, 3), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=1_500, deadline=None)
@given(events)
def test_every_row_is_seen_once_whatever_happens(happenings: list[tuple[str, int, int]]) -> None:
    world = World()
    drivers = [driver(world), driver(world)]
    for what, which, count in happenings:
        if what == "step":
            for _ in range(count):
                step(world, drivers, which)
                seen = world.visible()
                assert len(seen) == len(set(seen)), f"seen twice: {seen}"
        elif what == "crash":
            drivers[which] = driver(world)
        elif world.open():
            world.outcome[world.open()[which % len(world.open())]] = False  # its time is over
    for _ in range(2):  # in peace, twice: the first may find a lost transaction at its commit
        try:
            for _ in driver(world):
                pass
        except Refused:
            continue
        break
    assert world.checkpoint == BATCHES - 1
    assert world.visible() == [(batch, task) for batch in range(BATCHES) for task in range(TASKS)]


def part(task: int, **changes: int) -> Part:
    return replace(Part(task, f"id/{task}", 4, 2, True, 10, 1_000, Place("t", 1, 5)), **changes)  # type: ignore[arg-type]


LAST = Decision(RUN, 5, 2, (part(0), part(1)))


def test_a_state_reads_as_it_was_written() -> None:
    assert from_bytes(to_bytes(LAST)) == LAST
    with pytest.raises(Refused, match="newer version"):
        from_bytes(to_bytes(LAST).replace(b'"form":1', b'"form":2'))


def test_a_batch_that_was_decided_is_not_written_again() -> None:
    state = prepared(LAST, [])
    assert state.last == finished(LAST)
    assert work_of(state, RUN, 5, 0) == work_of(state, RUN, 4, 0) == (Work.NOTHING, None)
    assert work_of(state, RUN, 6, 0) == (Work.WRITE, None)
    assert decide(state, RUN, 5, 2, {0: None, 1: None}) is None
    assert decide(state, RUN, 6, 1, {0: part(0)}) == Decision(RUN, 6, 1, (part(0),))
    assert decide(state, RUN, 6, 2, {0: None, 1: None}) is None, "a batch without rows leaves no trace"


def test_batches_of_another_run_are_other_batches() -> None:
    state = prepared(LAST, [part(0)])
    assert work_of(state, "other", 0, 0) == (Work.WRITE, None)
    assert decide(state, "other", 0, 1, {0: part(0)}) == Decision("other", 0, 1, (part(0),))


def test_what_was_lost_is_written_again_and_nothing_else() -> None:
    state = prepared(LAST, [part(1)])
    assert state == Prepared(LAST, (part(1),))
    assert work_of(state, RUN, 5, 0) == (Work.NOTHING, None)
    assert work_of(state, RUN, 5, 1) == (Work.REWRITE, part(1))
    again = part(1, epoch=9)
    assert decide(state, RUN, 5, 2, {0: None, 1: again}) == Decision(RUN, 5, 2, (again,), revision=1)


def test_what_cannot_be_made_up_for_is_refused() -> None:
    state = prepared(LAST, [part(1)])
    with pytest.raises(Refused, match="had 2 tasks when it was decided and has 3 now"):
        decide(state, RUN, 5, 3, {0: None, 1: part(1), 2: None})
    with pytest.raises(Refused, match="not all lost transactions"):
        decide(state, RUN, 5, 2, {0: None, 1: None})
    with pytest.raises(Refused, match="went on with batch 6"):
        decide(state, RUN, 6, 2, {0: part(0), 1: part(1)})
    check_rewritten(part(1), 10, 1_000)
    with pytest.raises(Refused, match="does not give the same rows again"):
        check_rewritten(part(1), 11, 1_000)
