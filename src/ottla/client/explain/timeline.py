"""Why a group rebalanced: its past events as sentences. Pure: events in, lines out."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.client.admin.group_events import GroupPast, PastEvent
from ottla.client.explain.words import plural, span

# The reason that the Java client gives when its application has not polled in time (KIP-800).
_POLL_TIMEOUT = "poll timeout"
_GROUP_SETTINGS = ("consumer.session.timeout.ms", "share.session.timeout.ms", "streams.session.timeout.ms")


class TimelineEntry(NamedTuple):
    """One event: what happened, and what to change if it was not wanted."""

    at_ms: int
    kind: str
    text: str
    advice: str = ""


def timeline(past: GroupPast) -> list[TimelineEntry]:
    """Return the events as sentences, the oldest first; rebalances are told with what caused them."""
    told: list[TimelineEntry] = []
    causes: list[PastEvent] = []
    for event in past.events:
        if event.kind == "rebalance_began":
            told.append(TimelineEntry(event.at_ms, event.kind, _began(event, causes)))
            causes = []
        else:
            told.append(TimelineEntry(event.at_ms, event.kind, _text(event), _advice(event, past.group_id)))
            causes.append(event)
        if event.kind == "rebalance_ended":
            causes = []
    return told


def _began(event: PastEvent, causes: Sequence[PastEvent]) -> str:
    """Return the sentence about a rebalance; what happened at the same moment caused it."""
    same = [each for each in causes if each.at_ms == event.at_ms] or [
        each for each in causes[-1:] if each.kind == "topics_changed"
    ]
    why = _causes(same) or event.detail
    return f"rebalance began{f' because {why}' if why else ''}{_size(event)}"


def _causes(events: Iterable[PastEvent]) -> str:
    return " and ".join(dict.fromkeys(_CAUSES[each.kind].format(_who(each)) for each in events if each.kind in _CAUSES))


_CAUSES = {
    "joined": "{} joined",
    "rejoined": "{} joined again",
    "left": "{} left",
    "timed_out": "{} timed out",
    "replaced": "{} took its place",
    "subscription_changed": "{} changed its subscription",
    "topics_changed": "a topic changed",
    "upgraded": "the group was upgraded",
    "downgraded": "the group was downgraded",
}


def _size(event: PastEvent) -> str:
    words = [
        "" if event.epoch is None else f"generation {event.epoch}",
        "" if event.members is None else plural(event.members, "member"),
    ]
    found = ", ".join(filter(None, words))
    return f" ({found})" if found else ""


def _who(event: PastEvent) -> str:
    """Return the member: client id and host; static members by their instance id."""
    if not event.member_id and not event.client_id:
        return "a member"
    name = event.instance_id or event.client_id or event.member_id
    return f"member {name} of host {event.host}" if event.host else f"member {name}"


def _text(event: PastEvent) -> str:
    often = f", {event.times} times" if event.times > 1 else ""
    return f"{_sentence(event)}{often}"


def _sentence(event: PastEvent) -> str:
    who, detail = _who(event), f": {event.detail}" if event.detail else ""
    setting = f"{event.setting}={event.setting_value}" if event.setting else ""
    match event.kind:
        case "joined":
            return f"{who} joined{detail}{_size(event)}"
        case "rejoined":
            return f"{who} joined again{detail}"
        case "left":
            return f"{who} left{detail}{_size(event)}"
        case "away":
            return f"{who} left and is expected back within {setting}"
        case "timed_out" if "session" in event.setting:
            return f"{who} sent no heartbeat for {setting} and was removed{_size(event)}"
        case "timed_out":
            return f"{who} did not take part in the rebalance within {setting} and was removed{_size(event)}"
        case "replaced":
            return f"{who} came back{f' {event.detail}' if event.detail else ''}; the former member is fenced"
        case "fenced":
            return f"{who} was told to give up its partitions and join again ({event.detail})"
        case "refused":
            return f"{who} was refused ({', '.join(filter(None, [event.detail, setting]))})"
        case "subscription_changed":
            return f"{who} changed its subscription{detail}"
        case "topics_changed":
            return f"topics that the group reads changed{detail}"
        case "assigned":
            return f"partitions were assigned{_size(event)}"
        case "rebalance_ended":
            took = "" if event.duration_ms is None else f" after {span(event.duration_ms / 1000)}"
            return f"rebalance ended{took}{_size(event)}"
        case "empty":
            return "the last member is gone: the group is empty"
        case "upgraded":
            return "the classic group became a consumer group"
        case "downgraded":
            return "the consumer group became a classic group"
        case _:
            return f"{event.kind}{detail}"


def _advice(event: PastEvent, group_id: str) -> str:
    if event.kind == "timed_out" and event.setting in _GROUP_SETTINGS:
        return (
            "if the member was only slow (a long pause, a lost network), raise it: ottla config set group "
            f"{group_id} {event.setting}=…"
        )
    if event.kind == "timed_out" and "session" in event.setting:
        return f"if the member was only slow (a long pause, a lost network), raise {event.setting} of the client"
    poll_timed_out = event.kind == "left" and _POLL_TIMEOUT in event.detail
    if event.kind == "timed_out" or poll_timed_out:
        name = event.setting or "max.poll.interval.ms"
        return f"raise {name} of the client, or lower max.poll.records, so that it polls more often"
    if event.kind == "refused" and event.setting:
        return f"raise {event.setting} of the brokers, or start fewer members"
    if event.kind == "refused" and event.detail == "INCONSISTENT_GROUP_PROTOCOL":
        return "let all members have one assignment strategy (partition.assignment.strategy) in common"
    if event.kind == "refused" and event.detail == "UNRELEASED_INSTANCE_ID":
        return "two running clients have the same group.instance.id: give each its own"
    if event.kind == "fenced" and event.detail == "FENCED_INSTANCE_ID":
        return "two running clients have the same group.instance.id: give each its own"
    return ""
