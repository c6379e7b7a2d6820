"""Very many offsets are deleted bit by bit, with others' commands in between."""

from __future__ import annotations

from typing import Any

import pytest
from tests.groups.offsets.stage import SETTINGS, machine

from ottla.groups.group import Committer
from ottla.groups.machine import GroupsMachine
from ottla.groups.offsets.commit import CommitOffsets, NewOffset
from ottla.groups.offsets.entries import entry_of
from ottla.groups.offsets.remove import DeleteGroup, ExpireOffsets, ForgetTopics
from ottla.groups.offsets.store import CommittedOffset
from ottla.machine.keyed import Entry
from ottla.machine.kit import Moment
from ottla.machine.runner import Runner
from ottla.model import limits
from ottla.model.ids import TopicPartition

NOW_MS = 10**9
OLD_MS = NOW_MS - int(SETTINGS["offsets.retention.minutes"]) * 60_000
MANY = 3 * limits.OFFSETS_DELETED_AT_ONCE


class Bench:
    """A coordinator whose journal counts at once."""

    def __init__(self) -> None:
        self.machine: GroupsMachine = machine()
        self.batches: list[list[Entry]] = []
        self.replies: list[Any] = []
        self.runner: Runner[Any, Any, Any] = Runner(self.machine, self._append, lambda _: None)

    def _append(self, entries: Any) -> int:
        self.batches.append(list(entries))
        return len(self.batches)

    def submit(self, command: Any) -> None:
        self.runner.submit(command, Moment(NOW_MS, NOW_MS), self.replies.append)
        self.runner.commit(len(self.batches))

    def step(self) -> bool:
        """Runs what is due; whether anything was."""
        due_ms = self.runner.next_deadline_ms
        if due_ms is None or due_ms > NOW_MS + 1_000:
            return False
        self.runner.wake(Moment(NOW_MS, max(due_ms, NOW_MS)))
        self.runner.commit(len(self.batches))
        return True

    def put(self, group: str, topic: str, partitions: range, at_ms: int, producer_id: int = -1) -> None:
        for index in partitions:
            where = TopicPartition(topic, index)
            self.machine.apply(entry_of(group, where, CommittedOffset(1, -1, "", at_ms), producer_id, 0))

    def of(self, group: str) -> set[tuple[str, int]]:
        return set(self.machine.view.state.offsets.of(group))

    def replayed(self, group: str) -> set[tuple[str, int]]:
        """What the journal says was deleted."""
        return {
            (entry.key.topic, entry.key.partition)
            for batch in self.batches
            for entry in batch
            if entry.value is None and getattr(entry.key, "topic", None) and entry.key.group == group
        }


def commit(group: str, index: int) -> CommitOffsets:
    return CommitOffsets(group, Committer("", None, -1, 9), (NewOffset(TopicPartition("t", index), 7, -1, None),))


def test_a_group_is_deleted_at_once_and_its_offsets_bit_by_bit() -> None:
    bench = Bench()
    bench.put("g", "t", range(MANY), NOW_MS)
    bench.put("g", "u", range(1), NOW_MS, producer_id=5)
    bench.submit(DeleteGroup("g"))
    assert "g" not in bench.machine.view.state.groups
    assert bench.of("g") == set()
    assert not bench.machine.view.state.offsets.pending("g")
    assert bench.replies == []
    bench.submit(commit("g", MANY - 1))  # somebody else makes a group of that name
    bench.replies.clear()
    while bench.step():
        pass
    assert bench.replies == [None], "when the last was deleted"
    assert bench.of("g") == {("t", MANY - 1)}
    assert bench.replayed("g") == {*(("t", index) for index in range(MANY - 1)), ("u", 0)}
    assert max(map(len, bench.batches)) <= limits.OFFSETS_DELETED_AT_ONCE


def test_a_small_group_is_deleted_in_one_batch() -> None:
    bench = Bench()
    bench.put("g", "t", range(limits.OFFSETS_DELETED_AT_ONCE), NOW_MS)
    bench.submit(DeleteGroup("g"))
    assert bench.replies == [None]
    assert [len(batch) for batch in bench.batches] == [limits.OFFSETS_DELETED_AT_ONCE + 1]


@pytest.mark.parametrize("at_once", [1, 7, 23, 1_000_000])
def test_what_expires_does_not_depend_on_how_much_is_looked_at_once(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(limits, "OFFSETS_WALKED_AT_ONCE", at_once)
    bench = Bench()
    for number in range(10):
        bench.put(f"g{number}", "t", range(0, 10), NOW_MS if number % 3 else OLD_MS)
        bench.put(f"g{number}", "t", range(10, 20), OLD_MS)
        bench.put(f"g{number}", "t", range(20, 25), NOW_MS)
        bench.put(f"g{number}", "t", range(12, 14), NOW_MS, producer_id=number)  # pending: those stay
    bench.put("all", "t", range(50), OLD_MS)
    bench.submit(ExpireOffsets())
    while bench.step():
        pass
    assert "all" not in bench.machine.view.state.groups
    assert bench.of("all") == set()
    for number in range(10):
        kept = {12, 13, *range(20, 25), *(range(10) if number % 3 else ())}
        assert bench.of(f"g{number}") == {("t", index) for index in kept}
    if at_once < 1_000:
        assert max(map(len, bench.batches)) <= at_once // 10 + 2


@pytest.mark.parametrize("at_once", [1, 7, 1_000_000])
def test_all_offsets_of_a_deleted_topic_go(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(limits, "OFFSETS_WALKED_AT_ONCE", at_once)
    bench = Bench()
    for number in range(10):
        bench.put(f"g{number}", "kept", range(5), NOW_MS)
        bench.put(f"g{number}", "gone", range(5), NOW_MS)
        bench.put(f"g{number}", "kept", range(5, 10), NOW_MS, producer_id=1)
        bench.put(f"g{number}", "gone", range(3, 8), NOW_MS, producer_id=1)
    bench.submit(ForgetTopics(frozenset(["gone"])))
    while bench.step():
        pass
    offsets = bench.machine.view.state.offsets
    for number in range(10):
        assert bench.of(f"g{number}") == {("kept", index) for index in range(5)}
        assert set(offsets.pending(f"g{number}")) == {("kept", index) for index in range(5, 10)}
