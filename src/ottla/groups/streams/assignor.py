"""The sticky assignor: which member shall own which task.

Active tasks stay with their member while it has not more than its share, then go to members with a standby copy, then
to the least loaded member of the least loaded process. Standby copies are assigned likewise; a process never gets two
copies of a task, active or standby. A process is one instance of the application; its members are its threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ottla.groups.streams.configure import ConfiguredSubtopology
from ottla.groups.streams.tasks import NOTHING, TaskId, TaskSet, each, gathered


class StreamsMemberSpec(NamedTuple):
    """A member: its process, and its target so far."""

    process_id: str
    target: TaskSet = NOTHING


class _Member(NamedTuple):
    process: _Process
    id: str

    @property
    def held(self) -> int:
        return self.process.counts[self.id]


@dataclass(slots=True)
class _Process:
    """One instance of the application, with the number of tasks that each of its members has so far."""

    id: str
    counts: dict[str, int] = field(default_factory=dict)
    tasks: set[TaskId] = field(default_factory=set)

    @property
    def load(self) -> float:
        return sum(self.counts.values()) / len(self.counts)

    def least_loaded(self) -> str:
        return min(self.counts, key=lambda member_id: self.counts[member_id])


@dataclass(slots=True)
class _Quota:
    """The most tasks that a member may have: an even share of the tasks not held by members that have reached the
    share.
    """

    tasks: int
    members: int

    @property
    def share(self) -> int:
        return -(-self.tasks // self.members) if self.members else 0

    def took(self, count: int) -> None:
        """Note that a member has this many tasks now."""
        if count == self.share:
            self.members -= 1
            self.tasks -= count


class _Deal:
    """One assignment while it is being made."""

    def __init__(self, members: Mapping[str, StreamsMemberSpec], tasks: int, copies: int) -> None:
        processes: dict[str, _Process] = {}
        self.active: dict[str, list[TaskId]] = {member_id: [] for member_id in members}
        self.standby: dict[str, list[TaskId]] = {member_id: [] for member_id in members}
        self.active_before: dict[TaskId, _Member] = {}
        self.standby_before: dict[TaskId, list[_Member]] = {}
        for member_id in sorted(members):
            spec = members[member_id]
            process = processes.setdefault(spec.process_id, _Process(spec.process_id))
            process.counts[member_id] = 0
            member = _Member(process, member_id)
            self.active_before.update((task, member) for task in each(spec.target.active))
            for task in each(spec.target.standby):
                self.standby_before.setdefault(task, []).append(member)
        self.processes = [processes[process_id] for process_id in sorted(processes)]
        self.active_quota = _Quota(tasks, len(members))
        self.quota = _Quota(tasks + copies, len(members))

    def give(self, member: _Member, task: TaskId, *, active: bool) -> None:
        process, member_id = member
        assert task not in process.tasks, f"process {process.id} would have two copies of {task}"
        process.counts[member_id] += 1
        process.tasks.add(task)
        (self.active if active else self.standby)[member_id].append(task)
        if active:
            self.active_quota.took(process.counts[member_id])
        self.quota.took(process.counts[member_id])

    # --- active tasks

    def deal_active(self, tasks: list[TaskId]) -> None:
        # Partition by partition, so that tasks of the same partition, which former assignments kept together, stay so.
        left = sorted(tasks, key=lambda task: (task.partition, task.subtopology))
        left = [task for task in left if not self._give_back(task, self.active_before.get(task))]
        left = [task for task in left if not self._give_back(task, _idlest(self.standby_before.get(task), None))]
        heap = self._heap()
        for task in sorted(left):
            process = self.processes[heap[0][1]]
            self.give(_Member(process, process.least_loaded()), task, active=True)
            _settle(heap, process)

    def _give_back(self, task: TaskId, member: _Member | None) -> bool:
        if member is None or member.held >= self.active_quota.share:
            return False
        self.give(member, task, active=True)
        return True

    # --- standby copies

    def deal_standby(self, tasks: list[TaskId], copies: int) -> None:
        left: list[tuple[TaskId, int]] = []
        for task in sorted(tasks, key=lambda task: (task.partition, task.subtopology), reverse=True):
            for copy in range(copies):
                member = self._former_holder(task)
                if member is None:
                    left.append((task, copies - copy))
                    break
                self.give(member, task, active=False)
        heap = self._heap()
        for task, count in sorted(left, reverse=True):
            for _ in range(count):
                if not self._place_copy(heap, task):
                    break

    def _former_holder(self, task: TaskId) -> _Member | None:
        before = self.active_before.get(task)
        if before is not None and task not in before.process.tasks and before.held < self.quota.share:
            return before
        member = _idlest(self.standby_before.get(task), task)
        return member if member is not None and member.held < self.quota.share else None

    def _place_copy(self, heap: list[tuple[float, int]], task: TaskId) -> bool:
        """Give a copy to the least loaded process that does not have the task yet; return whether there is one."""
        passed: list[tuple[float, int]] = []
        found = False
        while heap and not found:
            load, place = heappop(heap)
            process = self.processes[place]
            if task not in process.tasks:
                self.give(_Member(process, process.least_loaded()), task, active=False)
                load, found = process.load, True
            passed.append((load, place))
        for item in passed:
            heappush(heap, item)
        return found

    def _heap(self) -> list[tuple[float, int]]:
        heap = [(process.load, place) for place, process in enumerate(self.processes)]
        heapify(heap)
        return heap


def _settle(heap: list[tuple[float, int]], process: _Process) -> None:
    """Update the heap: the process on top has one task more."""
    _, place = heappop(heap)
    heappush(heap, (process.load, place))


def _idlest(members: list[_Member] | None, new_copy: TaskId | None) -> _Member | None:
    """Return the least loaded member that had a copy; processes that have `new_copy` already are left out."""
    found: _Member | None = None
    for member in members or ():
        if new_copy is not None and new_copy in member.process.tasks:
            continue
        if found is None or (member.process.load < found.process.load and member.held < found.held):
            found = member
    return found


def assign(
    members: Mapping[str, StreamsMemberSpec], subtopologies: Mapping[str, ConfiguredSubtopology], copies: int
) -> dict[str, TaskSet]:
    """Return the targets of all members; each active task has one owner, if there is any member."""
    if not members:
        return {}
    every: list[TaskId] = []
    stateful: list[TaskId] = []
    for name in sorted(subtopologies):
        tasks = [TaskId(name, partition) for partition in range(subtopologies[name].tasks)]
        every += tasks
        stateful += tasks if subtopologies[name].is_stateful else []
    deal = _Deal(members, len(every), len(stateful) * copies)
    deal.deal_active(every)
    if copies:
        deal.deal_standby(stateful, copies)
    return {
        member_id: TaskSet(gathered(deal.active[member_id]), gathered(deal.standby[member_id])) for member_id in members
    }
