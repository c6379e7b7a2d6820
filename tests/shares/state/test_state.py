"""The share coordinator's machine: the script, and any order of commands against a model of single offsets."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.shares.state.stage import IDS, make_stage
from tests.shares.state.test_batches import STATES, offsets
from tests.support.script import play

from ottla.machine.keyed import Entry
from ottla.model import limits
from ottla.shares.state.batches import NO_OFFSET, StateBatch
from ottla.shares.state.commands import DeleteState, InitializeState, ReadState, WriteState
from ottla.shares.state.partition import SharePartitionId
from ottla.shares.state.upkeep import SnapshotCold, TopicsDeleted

PARTITIONS = st.sampled_from(
    [SharePartitionId(group, IDS["orders"], index) for group in ("a", "b") for index in (0, 1)]
)


def test_script() -> None:
    stage, verbs = make_stage()
    stage.restart()
    stage.told()
    play(Path(__file__).with_name("state.script"), stage, verbs)


class Shares(RuleBasedStateMachine):
    """The model: for each partition its start and the state of each offset from there on."""

    def __init__(self) -> None:
        super().__init__()
        self.stage, _ = make_stage()
        self.model: dict[SharePartitionId, tuple[int, dict[int, tuple[int, int]]]] = {}

    @rule(id=PARTITIONS, start=st.sampled_from([NO_OFFSET, 0, 5]))
    def begin(self, id: SharePartitionId, start: int) -> None:
        self.stage.submit("", InitializeState(*id, -1, start))
        self.model[id] = (start, {})

    @rule(
        id=PARTITIONS,
        first=st.integers(0, 20),
        length=st.integers(0, 8),
        state=STATES,
        count=st.integers(1, 3),
        start=st.sampled_from([NO_OFFSET, NO_OFFSET, 3, 9, 15]),
    )
    def write(self, id: SharePartitionId, first: int, length: int, state: int, count: int, start: int) -> None:
        batch = StateBatch(first, first + length, state, count)
        self.stage.submit("", WriteState(*id, -1, -1, start, 0, (batch,)))
        if id in self.model:
            before, known = self.model[id]
            start = before if start == NO_OFFSET else start
            for offset, here in offsets([batch]).items():
                known[offset] = max(known.get(offset, here), here)
            self.model[id] = (start, {offset: here for offset, here in known.items() if offset >= start})

    @rule(id=PARTITIONS, leader=st.integers(0, 5))
    def read(self, id: SharePartitionId, leader: int) -> None:
        self.stage.submit("", ReadState(*id, leader))

    @rule(id=PARTITIONS)
    def delete(self, id: SharePartitionId) -> None:
        self.stage.submit("", DeleteState(*id))
        self.model.pop(id, None)

    @rule()
    def time_passes(self) -> None:
        self.stage.now_ms += 20_000
        self.stage.submit("", SnapshotCold())

    @invariant()
    def is_what_was_written(self) -> None:
        partitions = self.stage.machine.view.state.partitions
        assert {id: (state.start_offset, offsets(state.batches)) for id, state in partitions.items()} == self.model

    @invariant()
    def journal_gives_it_back(self) -> None:
        assert self.stage.replayed().view.state.partitions == self.stage.machine.view.state.partitions

    @invariant()
    def pruned_records_are_not_missed(self) -> None:
        """What a coordinator needs to go on is in the records that are left; only old epochs are forgotten."""
        live = self.stage.machine.view.state
        kept, whole = make_stage()[0], self.stage.journal
        for offset in range(live.needed_from, len(whole)):
            key, value, *_ = whole[offset]
            assert isinstance(key, bytes)
            kept.journal.append((key, value, -1, -1))
        again = kept.replayed().view.state.partitions
        assert again.keys() == live.partitions.keys()
        for id, state in again.items():
            there = live.partitions[id]
            assert (state.start_offset, state.batches) == (there.start_offset, there.batches)
            assert (state.leader_epoch, state.state_epoch) == (there.leader_epoch, there.state_epoch)


TestShares = Shares.TestCase
TestShares.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_offsets_in_the_journal_are_those_it_was_read_at() -> None:
    """Reading does not begin at zero when the journal was pruned."""
    stage, _ = make_stage()
    id = SharePartitionId("a", IDS["orders"], 0)
    stage.submit("", InitializeState(*id, 1, 0))
    machine = stage.machine
    (key, value) = (entry := machine.decide(InitializeState(*id, 2, 5), 0).records[0]).key, entry.value
    machine.apply(Entry(key, value, offset=70))
    assert machine.view.state.needed_from == 70
    assert machine.view.state.journal_end == 71


def test_many_at_once_are_written_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of records of all partitions could be larger than a log takes."""
    monkeypatch.setattr(limits, "JOURNAL_PORTION_BYTES", 500)
    stage, _ = make_stage()
    stage.restart()
    ids = [SharePartitionId(f"group-{number}", IDS["orders"], 0) for number in range(10)]
    for id in ids:
        stage.submit("", InitializeState(*id, 1, 0))
    stage.told()
    stage.advance(10_010)
    assert len([line for line in stage.told() if line.startswith("snapshot 1")]) == 10
    stage.submit("", TopicsDeleted(frozenset({IDS["orders"]})))
    assert 0 < len(stage.machine.view.state.partitions) < 10
    stage.advance(10)
    assert not stage.machine.view.state.partitions
    assert len([line for line in stage.told() if line.startswith("deleted")]) == 10
