"""One group as it is now: its state, its lag over time, its members."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from ottla.client.admin.group_descriptions import GroupDescription, GroupMember
from ottla.console.answers import Fragment, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, markup_of
from ottla.console.named import name_in, named_path
from ottla.console.pages.groups.deliveries import deliveries_part
from ottla.console.pages.groups.history import LagHistories, LagPoint, LagSeries
from ottla.console.pages.groups.words import (
    SHARE,
    STREAMS,
    count_text,
    is_spark,
    kind_text,
    lag_mood,
    of_group,
    state_badge,
    waited_text,
)
from ottla.console.parts.charts import Line, line_chart
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import badge, card, cards, code, facts, figure, figures, live, notice, told
from ottla.console.routing import page
from ottla.model import limits

_SPARK_NOTE = (
    "A Spark query has no members: it commits what each finished batch has read, and goes on from its own checkpoint."
)


@page("/groups/{group}")
async def group_now(call: PageCall) -> Page:
    group_id = name_in(call, "group")
    described = await call.admin.groups.describe(group_id)
    series = LagHistories.of(call.access).look(group_id, described.kind)
    part = live(
        named_path("groups", group_id, "now", kind=described.kind),
        limits.CONSOLE_LAG_EVERY_S,
        _charts(described, series),
    )
    note = notice(_SPARK_NOTE) if is_spark(group_id, described.kind) and not described.members else None
    members = card(
        "Members",
        listing(call, _columns(described), described.members, text=_text, noun="member", empty=_empty(described)),
    )
    deliveries = await deliveries_part(call, described)
    return of_group(group_id, "", group_id, note, _facts(described), part, deliveries, members)


@page("/groups/{group}/now")
async def group_now_part(call: PageCall) -> Fragment:
    group_id = name_in(call, "group")
    described = await call.admin.groups.describe_as(group_id, call.text("kind", "classic"))
    return Fragment(_charts(described, LagHistories.of(call.access).look(group_id, described.kind)))


def _facts(described: GroupDescription) -> Markup:
    subscribed = Counter(topic for each in described.members for topic in each.subscribed)
    regexes = sorted({each.regex for each in described.members if each.regex})
    pairs: list[tuple[Content, Content]] = [("Kind", kind_text(described.group_id, described.kind))]
    if described.epoch is not None:
        pairs.append(("Epoch", described.epoch))
    if described.assignor:
        pairs.append(("Assignor", told(described.assignor)))
    if subscribed:
        pairs.append(("Subscribed topics", _some(sorted(subscribed))))
    if regexes:
        pairs.append(("Subscribed pattern", _some(regexes)))
    for name, topics in described.subtopologies:
        pairs.append((["Subtopology ", told(name)], ["reads ", _some(topics)]))
    return card("Group", facts(pairs))


def _some(names: Sequence[str], most: int = 20) -> Content:
    shown: list[Content] = []
    for each in names[:most]:
        shown += [", " if shown else "", code(each)]
    return [*shown, f" and {len(names) - most} more"] if len(names) > most else shown


def _charts(described: GroupDescription, series: LagSeries) -> Markup:
    now_s = asyncio.get_running_loop().time()
    points = list(series.points)
    last = points[-1] if points else LagPoint(now_s, {})
    problem = notice("The lag could not be read.", "bad", told(series.problem)) if series.problem else None
    first = [
        figure("state", state_badge(described.state)),
        figure("members", len(described.members)),
        figure("records behind", count_text(last.records)),
    ]
    is_share = described.kind == SHARE
    if not is_share:
        first.append(figure("the oldest unread waits", waited_text(last.seconds), mood=lag_mood(last.seconds)))
    topics = list(dict.fromkeys(topic for point in points for topic in point.by_topic))[
        -limits.CONSOLE_LAG_TOPICS_MAX - 1 :
    ]
    behind = line_chart(
        "Records behind",
        [Line(topic, [(each.at_s, _of(each, topic)) for each in points]) for topic in topics],
        lambda value: f"{value:,.0f}",
        now_s=now_s,
    )
    waiting = line_chart(
        "Age of the oldest unread record",
        [Line("longest", [(each.at_s, each.seconds) for each in points])],
        waited_text,
        now_s=now_s,
    )
    speed = line_chart(
        "Records per second",
        [
            Line("written", [(each.at_s, each.written_per_s) for each in points]),
            Line("finished" if is_share else "read", [(each.at_s, each.read_per_s) for each in points]),
        ],
        lambda value: f"{value:,.1f}" if value < 10 else f"{value:,.0f}",
        now_s=now_s,
    )
    drawn = [card("Lag", behind), None if is_share else card("Freshness", waiting), card("Speed", speed)]
    return markup_of([figures(*first), problem, cards(*drawn)])


def _of(point: LagPoint, topic: str) -> float | None:
    return None if point.records is None else float(point.by_topic.get(topic, 0))


def _empty(described: GroupDescription) -> str:
    return "no members: nobody reads for this group now" if described.kind != STREAMS else "no members"


def _text(member: GroupMember) -> str:
    return f"{member.member_id} {member.instance_id or ''} {member.client_id} {member.host}"


def _columns(described: GroupDescription) -> tuple[Column[GroupMember], ...]:
    columns: list[Column[GroupMember]] = [
        Column("Client", lambda each: told(each.client_id), lambda each: each.client_id),
        Column("Host", lambda each: told(each.host.removeprefix("/")), lambda each: each.host),
        Column("Member", _member, lambda each: each.instance_id or each.member_id),
    ]
    if any(each.rack for each in described.members):
        columns.append(Column("Rack", lambda each: told(each.rack or ""), lambda each: each.rack or ""))
    if any(each.epoch is not None for each in described.members):
        columns.append(Column("Epoch", lambda each: _epoch(described, each), lambda each: each.epoch, is_number=True))
    if described.kind == STREAMS:
        columns.extend(map(_tasks, ("active", "standby", "warmup")))
    else:
        columns.append(
            Column("Partitions", lambda each: len(each.partitions), lambda each: len(each.partitions), is_number=True)
        )
        columns.append(Column("Topics", lambda each: _some(sorted({at.topic for at in each.partitions}), 5)))
    return tuple(columns)


def _tasks(role: str) -> Column[GroupMember]:
    def tasks(member: GroupMember) -> str:
        found = [f"{each.subtopology}_{each.partition}" for each in member.tasks if each.role == role]
        return ", ".join(found[:20]) + (f" and {len(found) - 20} more" if len(found) > 20 else "")

    return Column(f"{role.capitalize()} tasks", lambda each: told(tasks(each)) if tasks(each) else "-")


def _member(member: GroupMember) -> Content:
    return [badge("static"), " ", code(member.instance_id)] if member.instance_id else code(member.member_id)


def _epoch(described: GroupDescription, member: GroupMember) -> Content:
    is_behind = described.epoch is not None and member.epoch != described.epoch
    return [member.epoch, " ", badge("behind the group", "fair")] if is_behind else member.epoch
