"""Share groups: the script, and any order of heartbeats, topics and answers."""

from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.groups.share.stage import GROUP, id_of, make_stage
from tests.support.script import play

from ottla.groups.offsets.remove import ExpireOffsets
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from ottla.groups.share.state_partitions import InitializeShares, SharesInitialized, SharesNotInitialized

MEMBERS = st.sampled_from(["a", "b", "c"])
TOPICS = st.frozensets(st.sampled_from(["orders", "bills", "missing"]), min_size=1)


def test_script() -> None:
    stage, verbs, _ = make_stage()
    stage.restart()
    stage.told()
    play(Path(__file__).with_name("share.script"), stage, verbs)


def test_an_empty_group_keeps_what_it_has_accomplished() -> None:
    stage, verbs, _ = make_stage()
    stage.restart()
    verbs["beat"]("anna", "orders")
    verbs["begun"]("orders:0,1")
    verbs["beat"]("anna", epoch="-1")
    stage.told()
    stage.submit("", ExpireOffsets())
    verbs["initialized"]()
    assert stage.told() == ["initialized: orders:0,1"]


class Shares(RuleBasedStateMachine):
    """Members know what they were told; the share coordinator answers whenever it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.stage, self.verbs, self.topics = make_stage()
        self.asked: list[InitializeShares] = []
        self.initialized: set[tuple[bytes, int]] = set()
        self.told: dict[str, ShareHeartbeatReply] = {}
        self.stage.tell = self.hear  # type: ignore[method-assign]
        self.epoch = 0
        self.stage.restart()

    def hear(self, thing: object) -> None:
        if isinstance(thing, InitializeShares):
            self.asked.append(thing)

    def beat(self, member: str, epoch: int, topics: frozenset[str] | None) -> ShareHeartbeatReply | None:
        beats: list[ShareHeartbeatReply] = []
        command = ShareHeartbeat(GROUP, member, epoch, None, topics, "", "")
        self.stage._runner.submit(command, self.stage.moment(), beats.append)
        self.stage._commit()
        return beats[0] if beats and isinstance(beats[0], ShareHeartbeatReply) else None

    @rule(member=MEMBERS, topics=TOPICS)
    def join(self, member: str, topics: frozenset[str]) -> None:
        found = self.beat(member, 0, topics)
        assert found is not None and found.assigned is not None
        self.told[member] = found

    @rule(member=MEMBERS, topics=st.none() | TOPICS)
    def stay(self, member: str, topics: frozenset[str] | None) -> None:
        if member in self.told:
            before = self.told[member]
            found = self.beat(member, before.epoch, topics)
            if found is None:
                del self.told[member]
            else:
                assert found.epoch >= before.epoch
                self.told[member] = found._replace(assigned=found.assigned or before.assigned)
                if found.assigned is not None:
                    self.told[member] = found

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        self.beat(member, -1, None)
        self.told.pop(member, None)

    @rule(well=st.booleans())
    def answer(self, well: bool) -> None:
        if self.asked:
            asked = self.asked.pop(0)
            if well:
                self.initialized.update((id, each) for id, some in asked.partitions.items() for each in some)
            command = SharesInitialized if well else SharesNotInitialized
            self.stage.submit("", command(GROUP, asked.partitions))

    @rule(name=st.sampled_from(["orders", "bills"]), more=st.integers(0, 2))
    def change_topic(self, name: str, more: int) -> None:
        size = 0 if more == 0 else self.topics.sizes.get(name, 0) + more
        if size <= 6 and (size or name in self.topics.sizes):
            self.verbs["topic"](name, str(size))

    @rule(seconds=st.sampled_from([1, 20, 50]))
    def time_passes(self, seconds: int) -> None:
        self.stage.advance(seconds * 1000)

    @rule()
    def restart(self) -> None:
        self.stage.restart()

    def group(self) -> ShareGroup | None:
        group = self.stage.machine.view.state.groups.get(GROUP)
        assert group is None or isinstance(group, ShareGroup)
        return group

    @invariant()
    def only_initialised_partitions_are_given_out(self) -> None:
        group = self.group()
        for target in group.targets.values() if group else ():
            assert {(topic_id, each) for topic_id, some in target.items() for each in some} <= self.initialized

    @invariant()
    def members_have_what_the_group_says(self) -> None:
        group = self.group()
        for member_id, beat in self.told.items():
            if group is not None and member_id in group.members and group.members[member_id].epoch == beat.epoch:
                assert group.members[member_id].assigned == beat.assigned

    @invariant()
    def everybody_has_work_when_all_is_settled(self) -> None:
        """With the targets of the newest epoch, every initialised partition of a topic that is read has a reader."""
        group = self.group()
        if group is None or group.state_partitions is None or not group.members or group.assignment_epoch < group.epoch:
            return
        if group.metadata_stale:
            return
        given = {(topic, each) for target in group.targets.values() for topic, some in target.items() for each in some}
        for name in group.subscribed_names() & self.topics.sizes.keys():
            shares = group.state_partitions.initialized.get(id_of(name))
            missing = {(id_of(name), each) for each in shares.partitions} - given if shares else set()
            if missing:  # the next heartbeat sees to what was initialised a moment ago
                member = next(iter(group.members))
                found = self.beat(member, 0, None)
                assert found is not None
                self.told[member] = found

    @invariant()
    def the_epoch_never_goes_back(self) -> None:
        group = self.group()
        if group is not None:
            assert group.epoch >= self.epoch and group.assignment_epoch <= group.epoch
            self.epoch = group.epoch

    @invariant()
    def the_journal_gives_it_back(self) -> None:
        live, again = self.group(), self.stage.replayed().view.state.groups.get(GROUP)
        assert (live is None) == (again is None)
        if live is not None:
            assert isinstance(again, ShareGroup)
            for name in (
                "epoch",
                "metadata_hash",
                "assignment_epoch",
                "assigned_ms",
                "members",
                "targets",
                "state_partitions",
            ):
                assert getattr(again, name) == getattr(live, name), name


TestShares = Shares.TestCase
TestShares.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
