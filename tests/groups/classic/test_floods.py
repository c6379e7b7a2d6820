"""What one client may ask of a classic group without making everybody else wait."""

from tests.groups.classic.stage import Classics

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState, MemberProtocol
from ottla.model import limits


def test_ids_that_nobody_comes_back_with_are_few(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(limits, "PENDING_MEMBERS_MAX", 3)
    stage = Classics()
    for number in range(10):
        stage.join(f"flood-{number}")
    stage.join("anna")
    assert stage.group is not None
    assert [stage.called(each) for each in stage.group.pending] == ["flood-8", "flood-9", "anna"]
    assert len(stage._runner._timers) <= 4  # theirs, and that of expired offsets
    stage.join("anna")
    assert stage.group.state is ClassicState.PREPARING


def test_members_may_offer_any_number_of_protocols() -> None:
    """Pairwise comparisons would take hours."""

    def member(name: str, count: int) -> ClassicMember:
        offered = (*(MemberProtocol(f"{name}-{number}", b"") for number in range(count)), MemberProtocol("common", b""))
        return ClassicMember(name, None, name, "/", 10_000, 10_000, offered)

    group = ClassicGroup("g", ClassicState.STABLE, 1, "consumer").with_member(member("anna", 200_000))
    bert = member("bert", 200_000)
    assert group.supports("consumer", bert.protocols)
    assert group.with_member(bert).elected_protocol() == "common"
    assert not group.supports("consumer", bert.protocols[:-1])
