"""Tasks: types for the present and target tasks of members of a streams group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

# Subtopology → partitions. Subtopologies without partitions have no entry.
Tasks = Mapping[str, frozenset[int]]
# The same with the epoch in which the member got each task.
Held = Mapping[str, Mapping[int, int]]
NO_TASKS: Tasks = MappingProxyType({})
NO_HELD: Held = MappingProxyType({})


class TaskId(NamedTuple):
    """One task of a topology."""

    subtopology: str
    partition: int


class TaskSet(NamedTuple):
    """The tasks that a member shall own, or reports as owned."""

    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    def overlaps(self, owned: OwnedTasks) -> bool:
        """Whether any task is in both, in the same role."""
        return (
            _overlap(self.active, owned.active)
            or _overlap(self.standby, owned.standby)
            or _overlap(self.warmup, owned.warmup)
        )

    def is_within(self, owned: OwnedTasks) -> bool:
        """Whether every task is also owned, in the same role."""
        return (
            _within(self.active, owned.active)
            and _within(self.standby, owned.standby)
            and _within(self.warmup, owned.warmup)
        )


class OwnedTasks(NamedTuple):
    """The tasks that a member owns, or is revoking."""

    active: Held = NO_HELD
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)


NOTHING = TaskSet()
NOTHING_OWNED = OwnedTasks()


def each(tasks: Tasks | Held) -> Iterator[TaskId]:
    """Yield all tasks one by one."""
    for subtopology, partitions in tasks.items():
        for partition in partitions:
            yield TaskId(subtopology, partition)


def gathered(tasks: Iterable[TaskId]) -> Tasks:
    """Return the tasks by subtopology, in order."""
    found: dict[str, set[int]] = {}
    for task in sorted(tasks):
        found.setdefault(task.subtopology, set()).add(task.partition)
    return {subtopology: frozenset(partitions) for subtopology, partitions in found.items()}


def without_epochs(owned: OwnedTasks) -> TaskSet:
    active = {subtopology: frozenset(partitions) for subtopology, partitions in owned.active.items()}
    return TaskSet(active, owned.standby, owned.warmup)


def _overlap(tasks: Tasks, owned: Tasks | Held) -> bool:
    return any(not partitions.isdisjoint(owned.get(name, ())) for name, partitions in tasks.items())


def _within(tasks: Tasks, owned: Tasks | Held) -> bool:
    return all(name in owned and partitions <= set(owned[name]) for name, partitions in tasks.items())
