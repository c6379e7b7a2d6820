"""Members who join, sync, leave, restart and fall silent in any order, over coordinators that restart at any moment.

Whatever they do: one leader per generation, no assignment with two owners, every request answered in the end, and what
the journal says is what the group last settled on.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.groups.classic.stage import GROUP, Classics

from ottla.groups.classic.group import ClassicGroup, ClassicState
from ottla.groups.classic.turn import JOIN, SYNC, JoinReply, SyncReply

ACTORS = st.sampled_from(["anna", "bert", "carl", "dora"])  # some of them join without an id, some need one
INSTANCES = st.sampled_from(["i", "j"])
EVERYBODY = {"anna": None, "bert": None, "carl": None, "dora": None, "static i": "i", "static j": "j"}
PROTOCOLS = st.sampled_from(["range", "range:other", "range,sticky", "sticky,range"])
MOSTLY_NOT = st.sampled_from([False, False, True])
SETTLED = (ClassicState.EMPTY, ClassicState.STABLE)
LONG_MS = 700_000  # longer than any timeout, several times


def durable(group: ClassicGroup) -> tuple[Any, ...]:
    """The part of a settled group that a record holds."""
    members = [
        (
            each.member_id,
            each.instance_id,
            each.client_id,
            each.session_timeout_ms,
            each.rebalance_timeout_ms,
            each.metadata(group.protocol),
            each.assignment,
        )
        for each in group.members.values()
    ]
    # What a Stable group was before is of no interest; an Empty one's age decides when its offsets expire.
    since_ms = group.state_since_ms if group.is_empty else None
    return group.state, group.generation, group.protocol_type, group.protocol, group.leader, members, since_ms


class Overheard(Classics):
    """Checks what members are told."""

    def __init__(self, **settings: str) -> None:
        super().__init__(**settings)
        self.waiting = 0
        self.leaders: dict[int, str | None] = {}  # of each generation since the coordinator started, by slot

    def act(self, who: str, command: Any) -> None:
        self.waiting += 1
        super().act(who, command)

    def restart(self) -> None:
        super().restart()
        self.leaders.clear()  # a generation that was never written down may be formed again

    def _reply(self, who: str, value: Any) -> None:
        if who != "loaded":
            self.waiting -= 1
        super()._reply(who, value)
        if isinstance(value, JoinReply) and not value.error:
            assert value.members == () or value.leader == value.member_id
            assert self.leaders.setdefault(value.generation, self.slot(value.leader)) == self.slot(value.leader)
        if isinstance(value, SyncReply) and not value.error and value.assignment:
            slot, _, generation = value.assignment.decode().partition("@")
            assert slot == self.slot(self.member_ids[who])
            assert int(generation) == self.generations[who]

    def slot(self, member_id: str) -> str:
        """A static member is the same under all its ids."""
        name = self.called(member_id).partition("#")[0]
        return name if name in ("i", "j") else member_id


class AnyOrder(RuleBasedStateMachine):
    @initialize(delay=st.sampled_from(["0", "3000"]), size=st.sampled_from(["3", "100"]))
    def begin(self, delay: str, size: str) -> None:
        self.stage = Overheard(**{"group.initial.rebalance.delay.ms": delay, "group.max.size": size})
        self.settled: tuple[Any, ...] | None = None

    @rule(who=ACTORS, protocols=PROTOCOLS, rebalance=st.sampled_from(["4000", "60000"]), version=st.sampled_from("39"))
    def join(self, who: str, protocols: str, rebalance: str, version: str) -> None:
        self.stage.join(who, protocols=protocols, rebalance=rebalance, version=version)

    @rule(who=ACTORS)
    def forget_and_join(self, who: str) -> None:
        self.stage.join(who, member="", version="3")

    @rule(
        instance=INSTANCES,
        protocols=PROTOCOLS,
        forgets=MOSTLY_NOT,
        version=st.sampled_from("89"),
    )
    def join_static(self, instance: str, protocols: str, forgets: bool, version: str) -> None:
        who = f"static {instance}"
        if forgets:
            self.stage.member_ids.pop(who, None)
        self.stage.join(who, instance=instance, protocols=protocols, version=version)

    @rule(who=ACTORS | INSTANCES.map(lambda instance: f"static {instance}"))
    def sync(self, who: str) -> None:
        group = self.stage.group
        members = group.members if group is not None else {}
        generation = self.stage.generations.get(who, 0)
        names = {member_id: f"one {at}" for at, member_id in enumerate(members)}
        for member_id, name in names.items():
            self.stage.member_ids[name] = member_id
        self.stage.sync(who, *(f"{name}:{self.stage.slot(id)}@{generation}" for id, name in names.items()))

    @rule(syncs=st.booleans())
    def everybody_does_as_told(self, syncs: bool) -> None:
        """All members that know that they are rejoin, and perhaps ask for their assignments."""
        self.stage.advance(0 if self.stage.settings["group.initial.rebalance.delay.ms"] == "0" else 6000)
        for who, instance in EVERYBODY.items():
            if self._is_member(who):
                self.stage.join(who, instance=instance)
        for who in EVERYBODY:
            if syncs and self._is_member(who):
                self.sync(who)

    def _is_member(self, who: str) -> bool:
        group = self.stage.group
        return group is not None and self.stage.member_ids.get(who) in group.members

    @rule(who=ACTORS | INSTANCES.map(lambda instance: f"static {instance}"))
    def heartbeat(self, who: str) -> None:
        self.stage.heartbeat(who)

    @rule(who=ACTORS | INSTANCES.map(lambda instance: f"@{instance}"))
    def leave(self, who: str) -> None:
        self.stage.leave(who)

    @rule(ms=st.sampled_from([1, 1000, 4000, 9999, 60_000]))
    def advance(self, ms: int) -> None:
        self.stage.advance(ms)

    @rule()
    def restart(self) -> None:
        self.stage.restart()
        assert self.stage.waiting == 0

    @invariant()
    def waits_are_known(self) -> None:
        """Who waits is in the group, and whom the group takes for waiting waits."""
        group = self.stage.group
        members = group.members.values() if group is not None else ()
        expected = {(JOIN, GROUP, each.member_id) for each in members if each.is_awaiting_join}
        expected |= {(SYNC, GROUP, each.member_id) for each in members if each.is_awaiting_sync}
        assert set(self.stage._runner._parked) == expected
        assert self.stage.waiting == len(expected)

    @invariant()
    def group_is_sound(self) -> None:
        group = self.stage.group
        if group is None:
            return
        assert (group.leader in group.members) if group.members else (group.leader is None)
        assert group.is_empty is (not group.members and group.state is not ClassicState.PREPARING)
        assert group.pending_sync <= group.members.keys()
        assert not set(group.pending) & group.members.keys()
        instances = [each.instance_id for each in group.members.values() if each.is_static]
        assert len(instances) == len(set(instances))
        if group.state is ClassicState.STABLE:
            owned = [each.assignment for each in group.members.values() if each.assignment]
            assert len(owned) == len(set(owned))

    @invariant()
    def journal_holds_what_was_settled(self) -> None:
        group = self.stage.group
        if group is not None and group.state in SETTLED:
            self.settled = durable(group)
        replayed = self.stage.replayed().view.state.groups.get(GROUP)
        assert replayed is None or isinstance(replayed, ClassicGroup)
        if self.settled is not None:
            assert replayed is not None
            assert durable(replayed) == self.settled
        else:
            assert replayed is None or replayed.generation == 0  # its very first rebalance

    def teardown(self) -> None:
        """All fall silent: everybody is answered, and nobody is left."""
        if hasattr(self, "stage"):
            self.stage.advance(LONG_MS)
            assert self.stage.waiting == 0
            assert self.stage.group is None or self.stage.group.is_empty


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
