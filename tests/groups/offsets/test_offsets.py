"""Committed offsets: the script, and a model that any order of commits, markers and deletions must agree with."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.groups.offsets.stage import make_stage
from tests.support.script import play

from ottla.groups.group import Committer
from ottla.groups.offsets.commit import CommitOffsets, NewOffset
from ottla.groups.offsets.remove import DeleteGroup, DeleteOffsets, ForgetTopics
from ottla.machine.keyed import Entry, Marker
from ottla.model import limits
from ottla.model.ids import TopicPartition

OUTSIDER = Committer("", None, -1, 9)
GROUPS = st.sampled_from(["a", "b"])
PARTITIONS = st.sampled_from([TopicPartition(topic, index) for topic in ("x", "y") for index in (0, 1)])
PRODUCERS = st.integers(1, 3)


def test_script() -> None:
    stage, verbs = make_stage()
    stage.restart()
    stage.told()
    play(Path(__file__).with_name("offsets.script"), stage, verbs)


def test_many_that_go_at_once_go_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of thousands of tombstones would be larger than a log takes."""
    monkeypatch.setattr(limits, "JOURNAL_PORTION_BYTES", 500)
    stage, verbs = make_stage()
    stage.restart()
    sizes: list[int] = []
    append = stage._runner._append

    def counted(entries: Sequence[Entry]) -> int:
        sizes.append(len(entries))
        return append(entries)

    stage._runner._append = counted
    for topic in ("x", "y"):
        verbs["offsets"]("g", *(f"{topic}-{index}:1" for index in range(50)))
    sizes.clear()
    verbs["forget"]("x")
    stage.advance(20)
    assert len(stage.machine.view.state.offsets.of("g")) == 50
    stage.advance(2 * 3_600_000)  # the retention
    assert "g" not in stage.machine.view.state.groups
    assert sum(sizes) == 101 and max(sizes) <= 20
    assert "g" not in stage.replayed().view.state.groups


def test_an_expiry_beyond_all_times_is_the_last_one() -> None:
    stage, verbs = make_stage()
    verbs["offsets"]("g", "x-0:1", retention=str(2**63 - 1))
    assert stage.machine.view.state.offsets.of("g")[TopicPartition("x", 0)].expires_at_ms == 2**63 - 1


class Offsets(RuleBasedStateMachine):
    """The model keeps every commit with the moment it was made, and asks at the end of a transaction who was last."""

    def __init__(self) -> None:
        super().__init__()
        self.stage, _ = make_stage()
        self.moment = 0
        self.committed: dict[tuple[str, TopicPartition], tuple[int, int]] = {}  # → moment, offset
        self.pending: dict[int, dict[tuple[str, TopicPartition], tuple[int, int]]] = {}

    @rule(group=GROUPS, partition=PARTITIONS, offset=st.integers(0, 9))
    def commit(self, group: str, partition: TopicPartition, offset: int) -> None:
        self.moment += 1
        self.stage.submit(group, CommitOffsets(group, OUTSIDER, (NewOffset(partition, offset, -1, None),)))
        self.committed[group, partition] = (self.moment, offset)

    @rule(group=GROUPS, partition=PARTITIONS, offset=st.integers(10, 19), producer=PRODUCERS)
    def commit_in_transaction(self, group: str, partition: TopicPartition, offset: int, producer: int) -> None:
        self.moment += 1
        new = (NewOffset(partition, offset, -1, None),)
        by = OUTSIDER._replace(transactional=True)
        self.stage.submit(group, CommitOffsets(group, by, new, producer_id=producer, producer_epoch=0))
        self.pending.setdefault(producer, {})[group, partition] = (self.moment, offset)

    @rule(producer=PRODUCERS, commit=st.booleans())
    def end(self, producer: int, commit: bool) -> None:
        self.stage.mark(Marker(producer, 0, commit))
        for where, made in self.pending.pop(producer, {}).items():
            if commit:
                self.committed[where] = max(made, self.committed.get(where, (0, 0)))

    @rule(group=GROUPS, partition=PARTITIONS)
    def delete(self, group: str, partition: TopicPartition) -> None:
        self.stage.submit(group, DeleteOffsets(group, (partition,)))
        self._gone(lambda where: where == (group, partition))

    @rule(group=GROUPS)
    def delete_group(self, group: str) -> None:
        self.stage.submit(group, DeleteGroup(group))
        self._gone(lambda where: where[0] == group)

    @rule(topic=st.sampled_from(["x", "y"]))
    def delete_topic(self, topic: str) -> None:
        self.stage.submit("", ForgetTopics(frozenset([topic])))
        self._gone(lambda where: where[1].topic == topic)

    def _gone(self, matches) -> None:  # type: ignore[no-untyped-def]
        for kept in (self.committed, *self.pending.values()):
            for where in [each for each in kept if matches(each)]:
                del kept[where]

    @invariant()
    def is_as_the_model_says(self) -> None:
        for machine in (self.stage.machine, self.stage.replayed()):
            offsets = machine.view.state.offsets
            found = {(group, at): kept.offset for group in ("a", "b") for at, kept in offsets.of(group).items()}
            assert found == {where: offset for where, (_, offset) in self.committed.items()}
            for group in ("a", "b"):
                waiting = {at for made in self.pending.values() for of, at in made if of == group}
                assert set(offsets.pending(group)) == waiting


TestOffsets = Offsets.TestCase
TestOffsets.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
