"""What members say to each other (Java's bytes), and the KIP-848 member's side of the conversation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.membership import blobs
from ottla.client.membership.reconcile import JOIN_EPOCH, ClientMemberState, Held, MemberReport, Subscribed, held_of
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition

A0, A2, B1 = TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)

# Made by kafka-clients 4.3.1.
JAVA_STICKY = "00000002000161000000020000000000000002000162000000010000000100000007"
JAVA_SUBSCRIPTION = "00030000000200016100016200000004000000070000000100016100000002000000000000000200000007000172"
JAVA_ASSIGNMENT = "0003000000020001610000000200000000000000020001620000000100000001ffffffff"


def test_the_bytes_are_javas() -> None:
    assert blobs.user_data_of("sticky", [B1, A0, A2], 7) == bytes.fromhex(JAVA_STICKY)
    generation = blobs.user_data_of("cooperative-sticky", [], 7)
    assert generation == bytes.fromhex("00000007")
    written = blobs.write_subscription(["b", "a"], [A2, A0], 7, user_data=generation, rack_id="r")
    assert written == bytes.fromhex(JAVA_SUBSCRIPTION)
    assert blobs.write_assignment([B1, A0, A2]) == bytes.fromhex(JAVA_ASSIGNMENT)


def test_what_java_wrote_is_read() -> None:
    assert blobs.read_assignment(bytes.fromhex(JAVA_ASSIGNMENT)) == [A0, A2, B1]
    member = blobs.read_member("cooperative-sticky", bytes.fromhex(JAVA_SUBSCRIPTION), "i")
    assert (member.topics, member.owned, member.generation, member.instance_id) == (("a", "b"), (A0, A2), 7, "i")
    sticky = blobs.write_subscription(["a"], [], -1, user_data=bytes.fromhex(JAVA_STICKY))
    assert blobs.read_member("sticky", sticky, None).owned == (A0, A2, B1)
    assert blobs.read_member("sticky", sticky, None).generation == 7


def test_older_and_newer_versions() -> None:
    # Version 0, as old clients write it: topics and user data only; here with sticky user data of version 0.
    old = bytes.fromhex("0000000000010001610000001300000001000161000000020000000000000002")
    member = blobs.read_member("sticky", old, None)
    assert (member.topics, member.owned, member.generation) == (("a",), (A0, A2), -1)
    assert blobs.read_member("range", old, None).owned == ()
    # Version 9, with a field that we do not know at the end.
    newer = bytes.fromhex("0009") + bytes.fromhex(JAVA_SUBSCRIPTION)[2:] + b"\x00\x07"
    assert blobs.read_member("range", newer, None).topics == ("a", "b")
    # The generation of a cooperative member that cannot say it in its subscription (versions 0 and 1).
    first = bytes.fromhex("0001000000010001610000000400000005000000010001610000000100000002")
    member = blobs.read_member("cooperative-sticky", first, None)
    assert (member.owned, member.generation) == ((A2,), 5)
    assert blobs.read_assignment(b"") == []


@pytest.mark.parametrize("blob", [b"", b"\x00", b"\x00\x01\x00\x00", bytes.fromhex(JAVA_SUBSCRIPTION)[:-5]])
def test_bytes_that_make_no_sense(blob: bytes) -> None:
    with pytest.raises(ApiError, match="cannot be read"):
        blobs.read_member("range", blob, None)


# --- KIP-848 ----------------------------------------------------------------------------------------------------------

TOPIC = bytes(15) + b"\x09"


class Server:
    """As much of a coordinator as the members need: it gives a partition away only when nobody may hold it."""

    def __init__(self, members: int) -> None:
        self.target: list[set[int]] = [set() for _ in range(members)]
        self.sent: list[set[int]] = [set() for _ in range(members)]
        self.may_hold: list[set[int]] = [set() for _ in range(members)]
        self.epoch = 1

    def heartbeat(self, member: int, beat: MemberReport) -> tuple[int, Held | None]:
        if beat.held is not None:  # only what a member says itself frees what it was to let go of
            self.may_hold[member] = {*beat.held.get(TOPIC, ())}
        before = self.sent[member]
        kept = self.sent[member] & self.target[member]
        if self.may_hold[member] <= kept:
            others = set().union(*(held for other, held in enumerate(self.may_hold) if other != member))
            kept |= self.target[member] - others
        self.sent[member] = kept
        self.may_hold[member] |= kept
        changed = kept != before or beat.full
        return self.epoch, held_of((TOPIC, index) for index in kept) if changed else None


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_a_partition_never_has_two_readers(data: st.DataObject) -> None:
    """Any order of new targets, heartbeats (answered, or the answer lost) and reconciliations."""
    count, partitions = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    server = Server(count)
    members = [ClientMemberState() for _ in range(count)]

    def beat(number: int, answered: bool) -> None:
        member = members[number]
        said = member.next_report()
        epoch, target = server.heartbeat(number, said)
        if answered:
            member.answered(said, epoch, target)
        else:
            member.unanswered()

    def check() -> None:
        held = [index for member in members for index in member.held.get(TOPIC, ())]
        assert len(held) == len(set(held))

    for _ in range(data.draw(st.integers(0, 30))):
        step = data.draw(st.sampled_from(["target", "beat", "beat", "lost", "reconcile", "reconcile"]))
        number = data.draw(st.integers(0, count - 1))
        if step == "target":
            owners = [data.draw(st.integers(0, count - 1)) for _ in range(partitions)]
            server.target = [{index for index, owner in enumerate(owners) if owner == each} for each in range(count)]
            server.epoch += 1
        elif step == "reconcile" and members[number].must_reconcile:
            members[number].took(members[number].target)
        elif step in ("beat", "lost"):
            beat(number, step == "beat")
        check()
    for _ in range(4):  # no more trouble: everybody gets what the server wants
        for number, member in enumerate(members):
            beat(number, True)
            member.took(member.target)
            check()
            beat(number, True)
    assert [{*member.held.get(TOPIC, ())} for member in members] == server.target
    assert not any(member.must_report or member.must_reconcile for member in members)


def test_a_target_is_void_once_the_server_may_have_heard_otherwise() -> None:
    """A full heartbeat says that nothing is held; a target that is taken afterwards may be another's by then."""
    member = ClientMemberState()
    member.answered(member.next_report(), 2, held_of([(TOPIC, 0)]))
    assert member.must_reconcile
    member.unanswered()
    assert not member.must_reconcile
    full = member.next_report()
    assert full.full and full.held == {}
    member.answered(full, 3, held_of([(TOPIC, 0)]))
    assert member.must_reconcile


def test_a_heartbeat_says_only_what_is_new() -> None:
    member = ClientMemberState()
    member.subscribed = Subscribed(("t",))
    first = member.next_report()
    assert first == MemberReport(JOIN_EPOCH, full=True, subscribed=Subscribed(("t",)), held={})
    target = held_of([(TOPIC, 1), (TOPIC, 0)])
    member.answered(first, 4, target)
    assert member.next_report() == MemberReport(4, full=False, subscribed=None, held=None)
    assert member.must_reconcile
    assert not member.must_report, "nothing is acknowledged before it is done"
    member.took(target)
    assert member.must_report
    ack = member.next_report()
    assert ack == MemberReport(4, full=False, subscribed=None, held={TOPIC: (0, 1)})
    member.unanswered()
    assert member.next_report() == MemberReport(4, full=True, subscribed=Subscribed(("t",)), held={TOPIC: (0, 1)})
    member.answered(ack, 5, None)
    member.subscribed = Subscribed((), "t.*")
    assert member.must_report
    assert member.next_report().subscribed == Subscribed((), "t.*")


def test_a_fenced_member_starts_anew() -> None:
    member = ClientMemberState()
    target = held_of([(TOPIC, 0)])
    member.answered(member.next_report(), 3, target)
    member.took(target)
    late = member.next_report()
    member.fence()
    assert (member.held, member.target, member.must_report, member.must_reconcile) == ({}, {}, False, False)
    member.answered(late, 4, target)
    assert not member.is_joined, "an answer from before the fence counts for nothing"
    member.rejoin()
    assert member.must_report
    assert member.next_report().epoch == JOIN_EPOCH
    assert member.next_report().full
