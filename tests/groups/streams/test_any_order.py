"""Members who join, go silent, miss answers and leave in any order, over topics that come, grow and go, copies that are
wanted or not, and a coordinator that restarts at any moment.

Whatever they do: no active task has two owners, no process has a task twice, nobody works on what the coordinator
thinks is free, the journal holds the whole group, and when they calm down every task has its owner and its copies.
"""

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.groups.streams.stage import CHANGELOG, REPARTITION, Streamers

from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import StreamsMember
from ottla.groups.streams.tasks import NOTHING, TaskId, each

# Two threads of each of two processes.
PROCESSES = {"anna": "p", "bert": "p", "carl": "q", "dora": "q"}
NAMES = st.sampled_from(sorted(PROCESSES))
MOSTLY_NOT = st.sampled_from([False, False, False, True])
COPIES = "group.streams.num.standby.replicas"
ROUNDS = 40


def durable(group: StreamsGroup) -> tuple[Any, ...]:
    return (
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assigned_ms,
        group.members,
        group.targets,
        group.topology,
        group.validated_topology_epoch,
        group.assignment_configs,
        group.active_at,
        group.copies_at,
    )


def active_of(member: StreamsMember) -> list[TaskId]:
    return [task for owned in (member.assigned, member.pending_revocation) for task in each(owned.active)]


def copies_of(member: StreamsMember) -> list[TaskId]:
    return [task for owned in (member.assigned, member.pending_revocation) for task in each(owned.standby)]


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = Streamers(tell_timers=())
        self.play = "plain"

    @initialize(play=st.sampled_from(["plain", "state", "words"]), delay_ms=st.sampled_from(["0", "3000"]))
    def begin(self, play: str, delay_ms: str) -> None:
        self.play = play
        self.stage.setting("group.streams.initial.rebalance.delay.ms", delay_ms)

    # --- what happens

    @rule(name=NAMES, lost=MOSTLY_NOT)
    def join(self, name: str, lost: bool) -> None:
        self._hear(name, lost)
        self.stage.join(name, self.play, process=PROCESSES[name])

    @rule(name=NAMES, lost=MOSTLY_NOT, confirms=st.booleans())
    def beat(self, name: str, lost: bool, confirms: bool) -> None:
        if self.stage.actor(name).epoch > 0:
            self._hear(name, lost)
            (self.stage.confirm if confirms else self.stage.beat)(name)

    @rule(name=NAMES)
    def leave(self, name: str) -> None:
        self._hear(name, lost=False)
        self.stage.leave(name)

    @rule(name=st.sampled_from(["orders", "bills", CHANGELOG, REPARTITION]), size=st.integers(0, 4))
    def topic(self, name: str, size: int) -> None:
        now = self.stage.topics.sizes.get(name, 0)
        if (size == 0 and now) or size > now > 0 or (size and name in ("orders", "bills") and not now):
            self.stage.topic(name, str(size))

    @rule(copies=st.sampled_from(["0", "1", "2"]))
    def copies(self, copies: str) -> None:
        self.stage.setting(COPIES, copies)

    @rule(ms=st.sampled_from([1, 1_000, 4_000, 12_000, 25_000, 46_000]))
    def time_passes(self, ms: int) -> None:
        self.stage.advance(ms)
        group = self.stage.group
        for actor in self.stage.actors.values():
            if group is not None and actor.name not in group.members:
                actor.tasks = NOTHING  # nobody was heard of for so long: clients stop by themselves

    @rule()
    def restart(self) -> None:
        self.stage.restart()

    def _hear(self, name: str, lost: bool) -> None:
        (self.stage.deaf.add if lost else self.stage.deaf.discard)(name)

    # --- what must hold

    @invariant()
    def an_active_task_has_one_owner(self) -> None:
        group = self.stage.group
        if group is not None:
            owned = [task for member in group.members.values() for task in active_of(member)]
            assert len(owned) == len(set(owned))
            assert set(owned) == set(group.active_at)

    @invariant()
    def a_process_has_a_task_once(self) -> None:
        group = self.stage.group
        if group is not None:
            held = Counter(
                (member.process_id, task)
                for member in group.members.values()
                for task in (*active_of(member), *copies_of(member))
            )
            assert not held or max(held.values()) == 1

    @invariant()
    def nobody_works_on_what_is_free(self) -> None:
        group = self.stage.group
        for actor in self.stage.actors.values():
            member = group.members.get(actor.name) if group is not None else None
            if member is not None:
                assert set(each(actor.tasks.active)) <= set(active_of(member))

    @invariant()
    def the_journal_is_the_group(self) -> None:
        group = self.stage.group
        if group is not None:
            replayed = self.stage.replayed().view.state.groups["app"]
            assert isinstance(replayed, StreamsGroup)
            assert durable(replayed) == durable(group)

    def teardown(self) -> None:
        """The topics are what they should be, and all members call regularly."""
        sizes = self.stage.topics.sizes
        for name in (CHANGELOG, REPARTITION):
            if name in sizes:
                self.stage.topic(name, "0")
        for name in ("orders", "bills"):
            self.stage.topic(name, str(sizes.get(name, 2)))
        self.stage.deaf.clear()
        for _ in range(ROUNDS):
            for name, actor in self.stage.actors.items():
                if actor.epoch > 0:
                    self.stage.confirm(name)
                elif self.stage.group is not None and name in self.stage.group.members:
                    self.join(name, lost=False)  # it never heard that it is one
            self.stage.advance(1_000)
        group = self.stage.group
        if group is not None and group.members:
            assert group.state_name == "Stable"
            assert group.configured is not None
            tasks = {
                TaskId(name, partition): subtopology.is_stateful
                for name, subtopology in group.configured.subtopologies.items()
                for partition in range(subtopology.tasks)
            }
            assert set(group.active_at) == set(tasks)
            processes = {member.process_id for member in group.members.values()}
            most = min(int(group.assignment_configs["num.standby.replicas"]), len(processes) - 1)
            wanted = {task: most for task, is_stateful in tasks.items() if is_stateful and most}
            assert {task: len(found) for task, found in group.copies_at.items()} == wanted


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
