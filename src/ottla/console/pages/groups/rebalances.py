"""Explain my rebalance: who joined, left, timed out or changed, and which setting to change."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ottla.client.admin.group_events import GroupPast, PastEvent
from ottla.client.explain.gather import past_of
from ottla.client.explain.timeline import TimelineEntry, timeline
from ottla.client.explain.words import plural, span
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, tag
from ottla.console.named import name_in
from ottla.console.pages.groups.words import of_group
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import Mood, badge, card, code, figure, figures, notice, told
from ottla.console.routing import page
from ottla.operations.formats import time_text

_NEEDS_OTTLA = "The brokers of this cluster do not remember why groups rebalance: only Ottla's do."
_MOODS: dict[str, Mood] = {
    "timed_out": "bad",
    "refused": "bad",
    "fenced": "bad",
    "left": "fair",
    "away": "fair",
    "empty": "fair",
    "rebalance_began": "fair",
    "rebalance_ended": "good",
    "joined": "good",
    "assigned": "good",
}


class MomentOfGroup(NamedTuple):
    """One event with its sentence; `number` is its place in the timeline."""

    number: int
    event: PastEvent
    entry: TimelineEntry
    ago_s: float


@page("/groups/{group}/rebalances")
async def explain_rebalances(call: PageCall) -> Page:
    group_id = name_in(call, "group")
    title = "Explain rebalances"
    past = await past_of(call.admin, group_id)
    if past is None:
        described = await call.admin.groups.describe(group_id)
        now = f"The group is {described.state} with {plural(len(described.members), 'member')} now."
        hint = "the lag is explained here all the same; the log of the coordinator says more of its rebalances"
        return of_group(group_id, "rebalances", title, notice(_NEEDS_OTTLA, "fair", hint), tag("p", now))
    rows = [
        MomentOfGroup(number, event, entry, max(past.now_ms - event.at_ms, 0) / 1000)
        for number, (event, entry) in enumerate(zip(past.events, timeline(past), strict=True))
    ]
    since = (
        f"Broker {past.node_id} coordinates the group. It remembers the latest events in memory, and nothing from "
        f"before {time_text(past.since_ms)}."
    )
    table = listing(
        call,
        _COLUMNS,
        rows,
        text=_text,
        sort="-time",
        noun="event",
        empty="nothing has happened to the group since then",
    )
    return of_group(group_id, "rebalances", title, _summary(past), tag("p", since, class_="note"), _advice(rows), table)


def _summary(past: GroupPast) -> Markup:
    counts = Counter(event.kind for event in past.events for _ in range(max(event.times, 1)))
    took = [event.duration_ms for event in past.events if event.duration_ms is not None]
    longest = span(max(took) / 1000) if took else "-"
    return figures(
        figure("rebalances", counts["rebalance_began"] or counts["assigned"]),
        figure("longest rebalance", longest),
        figure("members joined", counts["joined"]),
        figure("members left", counts["left"]),
        figure("members timed out", counts["timed_out"], mood="bad" if counts["timed_out"] else "plain"),
    )


def _advice(rows: list[MomentOfGroup]) -> Content:
    """What to change, most often advised first."""
    counted = Counter(row.entry.advice for row in rows if row.entry.advice)
    if not counted:
        return None
    items = [tag("li", told(text), f" ({plural(count, 'event')})") for text, count in counted.most_common(5)]
    return card("What to change, if these events were not wanted", tag("ul", items))


def _text(row: MomentOfGroup) -> str:
    event = row.event
    kind = event.kind.replace("_", " ")
    return f"{row.entry.text} {kind} {event.client_id} {event.host} {event.member_id} {event.setting}"


def _what(row: MomentOfGroup) -> Content:
    advice = tag("p", told(row.entry.advice), class_="hint") if row.entry.advice else None
    return [told(row.entry.text), advice]


def _host(row: MomentOfGroup) -> Content:
    return told(row.event.host.removeprefix("/")) if row.event.host else "-"


def _who(row: MomentOfGroup) -> Content:
    event = row.event
    if not (event.client_id or event.member_id):
        return "-"
    name = told(event.instance_id or event.client_id or event.member_id)
    return [name, tag("br"), tag("small", told(event.member_id))]


def _setting(row: MomentOfGroup) -> Content:
    event = row.event
    return code(f"{event.setting}={event.setting_value}") if event.setting else "-"


_COLUMNS: tuple[Column[MomentOfGroup], ...] = (
    Column(
        "Time",
        lambda each: [time_text(each.event.at_ms), tag("br"), tag("small", f"{span(each.ago_s)} ago")],
        lambda each: each.number,
    ),
    Column(
        "Event",
        lambda each: badge(each.event.kind.replace("_", " "), _MOODS.get(each.event.kind, "plain")),
        lambda each: each.event.kind,
    ),
    Column(
        "What happened",
        lambda each: [
            told(each.entry.text),
            tag("p", told(each.entry.advice), class_="hint") if each.entry.advice else None,
        ],
    ),
    Column("Member", _who, lambda each: each.event.client_id),
    Column(
        "Host",
        lambda each: told(each.event.host.removeprefix("/")) if each.event.host else "-",
        lambda each: each.event.host,
    ),
    Column("Setting", _setting, lambda each: each.event.setting),
)
