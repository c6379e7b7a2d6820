"""What is forgotten, and when."""

import pytest

from ottla.groups.events.event import GroupEvent, Happening, short
from ottla.groups.events.log import EventBudget, GroupEvents
from ottla.model import limits


def event(at_ms: int, kind: Happening = Happening.JOINED) -> GroupEvent:
    return GroupEvent(at_ms, kind, epoch=at_ms)


def times(events: GroupEvents, group_id: str, now_ms: int = 0) -> list[int]:
    return [each.at_ms for each in events.of(group_id, now_ms)]


def test_oldest_of_a_group_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GROUP_EVENTS_PER_GROUP_MAX", 3)
    budget = EventBudget()
    events = GroupEvents(budget)
    for at_ms in range(5):
        events.add("a", event(at_ms))
    events.add("b", event(9))
    assert times(events, "a") == [2, 3, 4]
    assert times(events, "b") == [9]
    assert len(budget) == 4


def test_oldest_of_the_node_is_forgotten_whichever_machine_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "GROUP_EVENTS_PER_NODE_MAX", 4)
    budget = EventBudget()
    one, other = GroupEvents(budget), GroupEvents(budget)
    for at_ms in range(4):
        (one if at_ms % 2 else other).add(f"g{at_ms}", event(at_ms))
    one.add("g9", event(9))
    one.add("g9", event(10))
    assert [times(other, "g0"), times(one, "g1"), times(other, "g2"), times(one, "g3")] == [[], [], [2], [3]]
    assert len(budget) == 4
    assert "g1" not in one._rings, "nothing is left of a group that was forgotten"


def test_old_events_are_forgotten() -> None:
    events = GroupEvents()
    events.add("a", event(1_000))
    events.add("a", event(2_000))
    assert times(events, "a", 1_500 + limits.GROUP_EVENTS_KEPT_MS) == [2_000]
    events.add("b", event(3_000 + limits.GROUP_EVENTS_KEPT_MS))
    assert times(events, "a") == []


def test_one_that_is_repeated_keeps_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is refused in a loop: its event is always young, and the events before it get old all the same."""
    events = GroupEvents()
    refused = GroupEvent(1_000, Happening.REFUSED)
    events.add("a", refused)
    events.add("b", event(2_000))
    now_ms = 3_000 + limits.GROUP_EVENTS_KEPT_MS
    events.add("a", refused._replace(at_ms=now_ms))
    assert (times(events, "a", now_ms), times(events, "b", now_ms)) == ([now_ms], [])
    assert [each.times for each in events.of("a", now_ms)] == [2]
    monkeypatch.setattr(limits, "GROUP_EVENTS_PER_NODE_MAX", 1)
    events.add("c", event(now_ms))
    assert (times(events, "a", now_ms), times(events, "c", now_ms)) == ([], [now_ms])


def test_rebalance_that_is_interrupted_lasts_from_its_beginning() -> None:
    events = GroupEvents()
    events.add("a", event(10, Happening.REBALANCE_BEGAN))
    events.add("a", event(20, Happening.REBALANCE_BEGAN))
    events.add("a", event(50, Happening.REBALANCE_ENDED))
    assert events.of("a", 50)[-1].duration_ms == 40


def test_end_without_a_beginning_is_not_told() -> None:
    """The coordinator took over in the middle."""
    events = GroupEvents()
    events.add("a", event(50, Happening.REBALANCE_ENDED))
    assert events.of("a", 50) == []


def test_rebalance_ends_with_the_last_member() -> None:
    events = GroupEvents()
    end = event(50, Happening.REBALANCE_ENDED)
    events.add("a", event(10, Happening.REBALANCE_BEGAN))
    events.reached("a", "m1", end)
    assert len(events.of("a", 50)) == 1, "there are no targets yet"
    events.expect("a", ["m1", "m2"])
    events.reached("a", "m1", end)
    assert len(events.of("a", 50)) == 1
    events.reached("a", "m2", end)
    assert events.of("a", 50)[-1].duration_ms == 40


def test_texts_of_clients_are_cut() -> None:
    assert short("x" * limits.GROUP_EVENT_TEXT_MAX) == "x" * limits.GROUP_EVENT_TEXT_MAX
    assert len(short("x" * 100_000)) == limits.GROUP_EVENT_TEXT_MAX


def test_nothing_is_kept_of_groups_with_long_ids() -> None:
    """The ids would be kept for a day, also those of groups that are gone."""
    budget = EventBudget()
    events = GroupEvents(budget)
    longest = "\N{GRINNING FACE}" * limits.GROUP_EVENTS_ID_CHARS_MAX
    for group_id in (longest, longest + "x"):
        for kind in (Happening.REBALANCE_BEGAN, Happening.REBALANCE_ENDED, Happening.EMPTY):
            events.add(group_id, event(1, kind))
    assert (len(events.of(longest, 1)), len(events.of(longest + "x", 1)), len(budget)) == (3, 0, 3)
    assert budget.rebalances == 2, "they are counted all the same"
