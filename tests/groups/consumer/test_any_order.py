"""Members of both kinds who join, go silent, miss answers, change their minds and leave in any order, over topics that
come, grow and go, and a coordinator that restarts at any moment.

Whatever they do: no partition has two owners, nobody uses what the coordinator thinks is free, the journal holds the
whole group, and when they calm down everything that is read has its reader.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.groups.consumer.stage import Consumers, id_of

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ConsumerMember

NEW = st.sampled_from(["nina", "nora", "static-a", "static-b"])
OLD = st.sampled_from(["olga", "otto"])
TOPICS = st.lists(st.sampled_from(["orders", "bills", "news"]), min_size=1, unique=True)
MOSTLY_NOT = st.sampled_from([False, False, False, True])
ROUNDS = 40


def durable(group: ConsumerGroup) -> tuple[Any, ...]:
    return (
        group.epoch,
        group.metadata_hash,
        group.assignment_epoch,
        group.assigned_ms,
        group.members,
        group.targets,
        group.instances,
        group.owners,
        group.regexes,
    )


def owned_by(member: ConsumerMember) -> set[tuple[bytes, int]]:
    both = (member.assigned, member.pending_revocation)
    return {(topic_id, each) for owned in both for topic_id, partitions in owned.items() for each in partitions}


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = Consumers(tell_timers=(), **{"group.consumer.max.size": "100"})
        self.returns = 0

    # --- what happens

    @rule(name=NEW, topics=TOPICS, lost=MOSTLY_NOT, regex=st.sampled_from(["", "", "or.*|news"]))
    def join(self, name: str, topics: list[str], lost: bool, regex: str) -> None:
        """A static member is another process each time, under another id."""
        if name.startswith("static"):
            self.returns += 1
            self._hear(name, lost)
            self.stage.join(name, *topics, instance=name, member=f"{name}.{self.returns}")
        elif not self.stage.actor(name).epoch:
            self._hear(name, lost)
            self.stage.join(name, *topics, regex=regex)

    @rule(name=NEW, lost=MOSTLY_NOT, confirms=st.booleans(), topics=st.one_of(st.just([]), st.just([]), TOPICS))
    def beat(self, name: str, lost: bool, confirms: bool, topics: list[str]) -> None:
        if self.stage.actor(name).epoch > 0:
            self._hear(name, lost)
            self.stage.beat(name, *topics, confirm=confirms)

    @rule(name=NEW, epoch=st.sampled_from(["-1", "-2"]))
    def leave(self, name: str, epoch: str) -> None:
        actor = self.stage.actor(name)
        if actor.epoch > 0 and (epoch == "-1" or actor.instance_id is not None):
            self._hear(name, lost=False)
            self.stage.leave(name, epoch)
            actor.epoch, actor.owned = 0, {}

    @rule(name=OLD, topics=TOPICS)
    def old_join(self, name: str, topics: list[str]) -> None:
        self.stage.old_join(name, *topics)
        self.stage.advance(1)
        self.stage.old_sync(name)

    @rule(name=OLD)
    def old_beat(self, name: str) -> None:
        if self.stage.actor(name).epoch > 0:
            self.stage.old_beat(name)

    @rule(name=OLD)
    def old_leave(self, name: str) -> None:
        actor = self.stage.actor(name)
        if actor.epoch > 0:
            self.stage.old_leave(name)
            actor.epoch, actor.owned = 0, {}

    @rule(name=st.sampled_from(["orders", "bills", "news"]), size=st.integers(0, 4))
    def topic(self, name: str, size: int) -> None:
        now = self.stage.topics.sizes.get(name, 0)
        if (size == 0 and now) or size > now:
            self.stage.topic(name, str(size))

    @rule(ms=st.sampled_from([1, 1_000, 12_000, 25_000, 46_000]))
    def time_passes(self, ms: int) -> None:
        self.stage.advance(ms)
        for actor in self.stage.actors.values():
            group = self.stage.group
            if isinstance(group, ConsumerGroup) and actor.member_id not in group.members:
                actor.owned = {}  # nobody was heard of for so long: clients stop by themselves

    @rule()
    def restart(self) -> None:
        self.stage.restart()

    def _hear(self, name: str, lost: bool) -> None:
        (self.stage.deaf.add if lost else self.stage.deaf.discard)(name)

    # --- what must hold

    @invariant()
    def nobody_shares_a_partition(self) -> None:
        group = self.stage.group
        if isinstance(group, ConsumerGroup):
            held = [place for member in group.members.values() for place in owned_by(member)]
            assert len(held) == len(set(held))
            counted = {(topic_id, each) for topic_id, owners in group.owners.items() for each in owners}
            assert counted == set(held)

    @invariant()
    def nobody_uses_what_is_free(self) -> None:
        group = self.stage.group
        if isinstance(group, ConsumerGroup):
            for actor in self.stage.actors.values():
                member = group.members.get(actor.member_id)
                if member is not None:
                    there = {id_of(name) for name in self.stage.topics.sizes}
                    uses = {
                        (topic_id, each) for topic_id in actor.owned.keys() & there for each in actor.owned[topic_id]
                    }
                    assert uses <= owned_by(member)

    @invariant()
    def the_journal_is_the_group(self) -> None:
        group = self.stage.group
        replayed = self.stage.replayed().view.state.groups.get("shop")
        if isinstance(group, ConsumerGroup):
            assert isinstance(replayed, ConsumerGroup)
            assert durable(replayed) == durable(group)

    def teardown(self) -> None:
        """All calm down, and call regularly."""
        self.stage.deaf.clear()
        self.stage.advance(12_000)
        for _ in range(ROUNDS):
            for name, actor in self.stage.actors.items():
                self._calm(name, actor.epoch)
            self.stage.advance(1_000)
        group = self.stage.group
        if isinstance(group, ConsumerGroup) and group.members:
            assert group.state_name == "Stable"
            held = {place for member in group.members.values() for place in owned_by(member)}
            read = {name for member in group.members.values() for name in group.topics_of(member)}
            sizes = self.stage.topics.sizes
            assert held == {(id_of(name), each) for name in read if name in sizes for each in range(sizes[name])}

    def _calm(self, name: str, epoch: int) -> None:
        if name.startswith("o") and epoch > 0:
            self.stage.old_beat(name)
            if self.stage.told()[-1].endswith("REBALANCE_IN_PROGRESS"):
                self.stage.old_join(name)
                self.stage.advance(1)
                self.stage.old_sync(name)
        elif epoch > 0:
            self.stage.beat(name, confirm=True)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
