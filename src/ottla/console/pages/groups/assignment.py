"""The assignment of a group, drawn: who has which partition. Large ones are summarised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ottla.client.admin.group_descriptions import GroupDescription, GroupMember
from ottla.client.metadata import TopicInfo
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, markup_of, path_to, tag
from ottla.console.named import name_in
from ottla.console.pages.groups.words import SHARE, STREAMS, of_group
from ottla.console.parts.charts import Bar, bars
from ottla.console.parts.words import card, link, notice, told
from ottla.console.routing import page
from ottla.model import limits

_COLOURS = 8


@page("/groups/{group}/assignment")
async def group_assignment(call: PageCall) -> Page:
    group_id = name_in(call, "group")
    described = await call.admin.groups.describe(group_id)
    title = "Assignment"
    if not described.members:
        return of_group(group_id, "assignment", title, notice("The group has no members: nothing is assigned."))
    if described.kind == STREAMS:
        return of_group(group_id, "assignment", title, *_tasks(described))
    names = sorted(
        {at.topic for each in described.members for at in (*each.partitions, *(each.target or ()))}
        | {topic for each in described.members for topic in each.subscribed}
    )
    shown = names[: limits.CONSOLE_MATRIX_TOPICS_MAX]
    topics = (await call.admin.topics.describe_each(shown)).found if shown else {}
    drawn = [_topic(described, name, topics.get(name)) for name in shown]
    more = f"Only the first {len(shown)} of {len(names)} topics are drawn." if len(names) > len(shown) else ""
    empty = notice(
        "No member has a partition.", "fair", "members of an assignor of their own do not tell what they have"
    )
    return of_group(group_id, "assignment", title, _fairness(described), drawn or empty, notice(more) if more else None)


def _fairness(described: GroupDescription) -> Markup:
    """How many partitions each member has."""
    counted = sorted(described.members, key=lambda each: -len(each.partitions))[: limits.CONSOLE_MATRIX_MEMBERS_MAX]
    drawn = [Bar(_name(each), len(each.partitions), mood="" if each.partitions else "fair") for each in counted]
    idle = sum(not each.partitions for each in described.members)
    told_idle = None
    if idle and described.kind != SHARE:
        told_idle = notice(
            f"{idle} of {len(described.members)} members have no partitions and do nothing.",
            "fair",
            "more members than partitions help only when one fails",
        )
    return card("Partitions of each member", told_idle, bars("", drawn, lambda value: f"{value:.0f}"))


def _topic(described: GroupDescription, name: str, info: TopicInfo | None) -> Markup:
    count = 0 if info is None else info.partition_count
    known = [
        at.partition
        for each in described.members
        for at in (*each.partitions, *(each.target or ()))
        if at.topic == name
    ]
    count = max([count, *(index + 1 for index in known)])
    heading = link(told(name), path_to("topics", name))
    if count > limits.CONSOLE_MATRIX_PARTITIONS_MAX or len(described.members) > limits.CONSOLE_MATRIX_MEMBERS_MAX:
        return card(heading, _summary(described.members, name, count))
    return card(heading, _matrix(described, name, count))


def _matrix(described: GroupDescription, name: str, count: int) -> Markup:
    """A row for each member, a column for each partition."""
    head = tag(
        "tr",
        tag("th", "Member", scope="col"),
        [tag("th", index, scope="col", class_="number") for index in range(count)],
    )
    rows = [_row(index, each, name, count) for index, each in enumerate(described.members) if _has(each, name)]
    owned = {at.partition for each in described.members for at in each.partitions if at.topic == name}
    nobody = [index for index in range(count) if index not in owned]
    if nobody:
        cells = [
            tag("td", "!" if index in nobody else "", class_="lost" if index in nobody else None)
            for index in range(count)
        ]
        rows.append(tag("tr", tag("th", "nobody", scope="row"), cells))
    moving = any(each.target is not None and set(each.target) != set(each.partitions) for each in described.members)
    legend = tag("p", "● has it, → is to get it, x is to give it up", class_="note") if moving else None
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="matrix")
    return markup_of([tag("div", table, class_="scroll", tabindex="0"), legend])


def _row(number: int, member: GroupMember, name: str, count: int) -> Markup:
    now = {at.partition for at in member.partitions if at.topic == name}
    target = now if member.target is None else {at.partition for at in member.target if at.topic == name}
    cells = []
    for index in range(count):
        if index in now:
            mark, said = ("●", "has it") if index in target else ("x", "is to give it up")
            cells.append(tag("td", mark, class_=f"s{number % _COLOURS} held", title=f"{name}-{index}: {said}"))
        else:
            cells.append(tag("td", "→" if index in target else "", title="is to get it" if index in target else None))
    return tag("tr", tag("th", told(_name(member)), scope="row"), cells)


def _has(member: GroupMember, name: str) -> bool:
    return any(at.topic == name for at in (*member.partitions, *(member.target or ()))) or name in member.subscribed


def _summary(members: Sequence[GroupMember], name: str, count: int) -> Content:
    """The numbers of the partitions of each member, as ranges."""
    owned: Mapping[str, list[int]] = {
        each.member_id: [at.partition for at in each.partitions if at.topic == name] for each in members
    }
    having = [each for each in members if owned[each.member_id]]
    everybody = {index for found in owned.values() for index in found}
    rows = [
        tag(
            "tr",
            tag("th", told(_name(each)), scope="row"),
            tag("td", len(owned[each.member_id]), class_="number"),
            tag("td", ranges(owned[each.member_id])),
        )
        for each in having[: limits.CONSOLE_ROWS_MAX]
    ]
    lost = count - len(everybody)
    said = f"{count:,} partitions, {len(having):,} of {len(members):,} members have some."
    nobody = (
        notice(f"Nobody has {lost:,} of the partitions: {ranges(set(range(count)) - everybody)}", "bad")
        if lost
        else None
    )
    head = tag("tr", [tag("th", each, scope="col") for each in ("Member", "Partitions", "Which")])
    return [tag("p", said), nobody, tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll")]


def ranges(numbers: Iterable[int], most: int = 20) -> str:
    """Numbers as `0-3, 7`; of many ranges the first ones."""
    found: list[list[int]] = []
    for each in sorted(numbers):
        if found and found[-1][1] == each - 1:
            found[-1][1] = each
        else:
            found.append([each, each])
    text = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in found[:most])
    return text + (f" and {len(found) - most} more ranges" if len(found) > most else "")


def _tasks(described: GroupDescription) -> list[Content]:
    """The tasks of a streams group, a matrix for each subtopology."""
    drawn: list[Content] = []
    names = [name for name, _ in described.subtopologies] or sorted(
        {task.subtopology for each in described.members for task in each.tasks}
    )
    roles = {"active": "●", "standby": "s", "warmup": "w"}
    for name in names[: limits.CONSOLE_MATRIX_TOPICS_MAX]:
        held = [task for each in described.members for task in each.tasks if task.subtopology == name]
        count = min(max((task.partition for task in held), default=-1) + 1, limits.CONSOLE_MATRIX_PARTITIONS_MAX)
        head = tag("tr", tag("th", "Member", scope="col"), [tag("th", index, scope="col") for index in range(count)])
        rows = []
        for number, member in enumerate(described.members[: limits.CONSOLE_MATRIX_MEMBERS_MAX]):
            own = {task.partition: task.role for task in member.tasks if task.subtopology == name}
            cells = [
                tag(
                    "td",
                    roles[own[index]] if index in own else "",
                    class_=f"s{number % _COLOURS} held" if own.get(index) == "active" else None,
                )
                for index in range(count)
            ]
            rows.append(tag("tr", tag("th", told(_name(member)), scope="row"), cells))
        table = tag("table", tag("thead", head), tag("tbody", rows), class_="matrix")
        drawn.append(card(["Subtopology ", told(name)], tag("div", table, class_="scroll", tabindex="0")))
    return [*drawn, tag("p", "● active task, s standby task, w task that warms up", class_="note")]


def _name(member: GroupMember) -> str:
    return member.instance_id or f"{member.client_id or member.member_id} ({member.member_id[-6:]})"
