"""What classic groups rely on is asserted when a command is decided."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import pytest

from ottla.groups.classic.group import NEXT, ClassicGroup, ClassicMember, ClassicState, MemberProtocol
from ottla.groups.classic.journal import group_of
from ottla.groups.classic.turn import Turn
from ottla.groups.view import GroupsView
from ottla.wire.journal.consumer_offsets import GroupMetadataValue

ANNA = ClassicMember("anna", None, "c", "/h", 10_000, 60_000, (MemberProtocol("range", b""),))
STABLE = ClassicGroup(
    "g", ClassicState.STABLE, 3, "consumer", "range", "anna", MappingProxyType({ANNA.member_id: ANNA})
)


def result(after: ClassicGroup, before: ClassicGroup = STABLE) -> Any:
    turn: Turn[None] = Turn(cast("GroupsView", None), before, 0)
    turn.group = after
    return turn.result()


@pytest.mark.parametrize("before", ClassicState)
@pytest.mark.parametrize("after", ClassicState)
def test_only_the_transitions_of_the_picture(before: ClassicState, after: ClassicState) -> None:
    group = replace(STABLE, state=before)
    if after in NEXT[before]:
        assert group.to(after).state is after
    else:
        with pytest.raises(AssertionError, match=f"{before.value} → {after.value}"):
            group.to(after)


def test_a_generation_does_not_fall() -> None:
    assert result(replace(STABLE, generation=4)).notes
    with pytest.raises(AssertionError, match="3 → 2"):
        result(replace(STABLE, generation=2))


def test_an_empty_group_has_no_members() -> None:
    with pytest.raises(AssertionError, match="has members"):
        result(replace(STABLE, state=ClassicState.EMPTY))


def test_the_leader_is_a_member_unless_the_journal_says_otherwise() -> None:
    with pytest.raises(AssertionError, match="bert is no member"):
        result(replace(STABLE, leader="bert"))
    odd = replace(STABLE, leader="bert")
    assert not result(odd, odd).notes


def test_a_leader_that_the_journal_names_but_does_not_hold_is_replaced() -> None:
    member = GroupMetadataValue.MemberMetadata(
        member_id="anna", client_id="c", client_host="/h", session_timeout=10_000, subscription=b"", assignment=b""
    )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="gone", members=[member]
    )
    assert group_of("g", value, 3).leader == "anna"
    value.members = []
    assert group_of("g", value, 3).leader is None
