"""Past events as sentences."""

import pytest

from ottla.client.admin.group_events import GroupPast, PastEvent
from ottla.client.explain.timeline import timeline
from ottla.groups.events.event import Happening


def event(at_ms: int, kind: str, **more: object) -> PastEvent:
    found = PastEvent(at_ms, kind, 4, 2, "anna-1", None, "anna", "10.0.0.1", "", None, "", None, 1)
    return found._replace(**more)  # type: ignore[arg-type]


def texts(*events: PastEvent) -> list[str]:
    return [each.text for each in timeline(GroupPast("shop", 1, 99_000, 0, events))]


def advice(given: PastEvent) -> str:
    return timeline(GroupPast("shop", 1, 99_000, 0, (given,)))[0].advice


def test_rebalance_with_its_cause_and_its_end() -> None:
    nobody = {"member_id": "", "client_id": "", "host": ""}
    assert texts(
        event(1, "timed_out", setting="session.timeout.ms", setting_value=45_000),
        event(1, "rebalance_began", **nobody),
        event(2_600, "rebalance_ended", duration_ms=2_599, **nobody),
        event(9_000, "rebalance_began", detail="the leader's assignment could not be stored", **nobody),
    ) == [
        "member anna of host 10.0.0.1 sent no heartbeat for session.timeout.ms=45000 and was removed "
        "(generation 4, 2 members)",
        "rebalance began because member anna of host 10.0.0.1 timed out (generation 4, 2 members)",
        "rebalance ended after 2.6 s (generation 4, 2 members)",
        "rebalance began because the leader's assignment could not be stored (generation 4, 2 members)",
    ]


def test_changed_topics_are_a_cause_until_the_next_rebalance() -> None:
    changed = event(1, "topics_changed", detail="orders=8")
    assert texts(changed, event(9_000, "rebalance_began"))[1].startswith("rebalance began because a topic changed")
    assert texts(event(1, "joined"), event(9_000, "rebalance_began"))[1].startswith("rebalance began (")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            event(1, "timed_out", setting="session.timeout.ms", setting_value=9),
            "raise session.timeout.ms of the client",
        ),
        (
            event(1, "timed_out", setting="consumer.session.timeout.ms", setting_value=9),
            "ottla config set group shop consumer.session.timeout.ms=",
        ),
        (event(1, "timed_out", setting="max.poll.interval.ms", setting_value=9), "raise max.poll.interval.ms"),
        (event(1, "left", detail="consumer poll timeout has expired."), "raise max.poll.interval.ms"),
        (event(1, "left"), ""),
        (event(1, "refused", setting="group.max.size", setting_value=5), "raise group.max.size"),
        (event(1, "refused", detail="INCONSISTENT_GROUP_PROTOCOL"), "partition.assignment.strategy"),
        (event(1, "refused", detail="UNRELEASED_INSTANCE_ID"), "the same group.instance.id"),
        (event(1, "fenced", detail="FENCED_INSTANCE_ID"), "the same group.instance.id"),
        (event(1, "joined"), ""),
    ],
)
def test_advice(given: PastEvent, expected: str) -> None:
    assert expected in advice(given)
    assert bool(advice(given)) == bool(expected)


@pytest.mark.parametrize("kind", [each.value for each in Happening])
def test_every_kind_has_a_sentence(kind: str) -> None:
    (text,) = texts(event(1, kind, setting="session.timeout.ms", setting_value=9, times=3))
    assert "_" not in text
    assert not text.startswith(kind)


def test_event_of_a_newer_coordinator_is_shown_by_its_name() -> None:
    assert texts(event(1, "danced", detail="a lot")) == ["danced: a lot"]


def test_static_member_is_named_by_its_instance() -> None:
    assert texts(event(1, "replaced", instance_id="till-1", detail="in place of x-1")) == [
        "member till-1 of host 10.0.0.1 came back in place of x-1; the former member is fenced"
    ]
