"""Deleting: the offsets of a topic, or the whole group. Each shows first what would be gone."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.admin.group_descriptions import GroupDescription
from ottla.client.explain.words import some
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, tag
from ottla.console.named import name_in, named_path
from ottla.console.pages.groups.words import SHARE, at_text, count_text, failures, of_group
from ottla.console.parts.forms import field, form, hidden
from ottla.console.parts.tables import Column, listing, plain_table
from ottla.console.parts.words import badge, card, code, link, notice, told, visible
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.offset_resets import offsets_of


class TopicOfGroup(NamedTuple):
    """A topic for which a group has offsets; `readers` are the members that read it."""

    topic: str
    partitions: int
    readers: tuple[str, ...]


@page("/groups/{group}/delete")
async def group_delete(call: PageCall) -> Page:
    described = await call.admin.groups.describe(name_in(call, "group"))
    group_id = described.group_id
    offsets = await _offsets(call, described)
    topics = sorted({at.topic for at in offsets})
    rows = [
        TopicOfGroup(name, sum(at.topic == name for at in offsets), tuple(_readers(described, name))) for name in topics
    ]
    table = listing(
        call, _columns(group_id), rows, text=lambda each: each.topic, sort="topic", noun="topic", empty="no offsets"
    )
    return of_group(
        group_id,
        "delete",
        "Delete",
        card("Delete the offsets of a topic", tag("p", "The group itself stays."), table),
        card("Delete the group", *_deletion(call, described, len(offsets))),
    )


def _deletion(call: PageCall, described: GroupDescription, count: int) -> list[Content]:
    group_id = described.group_id
    if described.members:
        who = some(each.client_id or each.member_id for each in described.members)
        return [notice(f"The group has members: {who}.", "fair", "only a group without members can be deleted")]
    said = (
        f"The group and its {count:,} committed offsets are deleted. A consumer that starts with this group id begins "
        "where its auto.offset.reset says."
    )
    deletion = form(
        call,
        named_path("groups", group_id, "delete"),
        field("name", "Type the name of the group", required=True, hint=code(group_id)),
        submit="Delete the group",
        is_dangerous=True,
    )
    return [tag("p", said), deletion]


@action("/groups/{group}/delete")
async def delete_group(call: PageCall) -> Answer:
    group_id = name_in(call, "group")
    # Names may begin and end with blanks, and have characters that nobody can type: those may be typed as shown.
    if call.form.get("name", "") not in (group_id, group_id.strip(), visible(group_id)):
        raise WrongInput("the typed name is not that of the group", "nothing was deleted")
    await call.admin.groups.delete(group_id)
    return Redirect("/groups", done=f"Group {group_id} was deleted")


@page("/groups/{group}/forget")
async def forget_topic(call: PageCall) -> Page:
    described = await call.admin.groups.describe(name_in(call, "group"))
    group_id, topic = described.group_id, call.text("topic")
    offsets = {at: offset for at, offset in (await _offsets(call, described)).items() if at.topic == topic}
    if not offsets:
        raise WrongInput(f"the group has no offsets for {topic!r}")
    readers = _readers(described, topic)
    if described.kind == SHARE and described.members:
        refused = f"The share group has members: {some(_names(described))}."
    else:
        refused = f"Members read the topic: {some(readers)}." if readers else ""
    shown = sorted(offsets.items())[: limits.CONSOLE_ROWS_MAX]
    table = plain_table(_OFFSETS, shown)
    deletion = form(
        call,
        named_path("groups", group_id, "forget"),
        hidden("topic", topic),
        submit=f"Delete {len(offsets):,} offset{'' if len(offsets) == 1 else 's'}",
        is_dangerous=True,
    )
    said = tag(
        "p", "The group forgets where it is in ", code(topic), ": its members begin where auto.offset.reset says."
    )
    return of_group(
        group_id,
        "delete",
        "Delete offsets: what would happen",
        said,
        notice(refused, "bad", "stop them first, or let them unsubscribe") if refused else deletion,
        card("Offsets that would be deleted", table),
    )


@action("/groups/{group}/forget")
async def forget_offsets(call: PageCall) -> Answer:
    described = await call.admin.groups.describe(name_in(call, "group"))
    group_id, topic = described.group_id, call.text("topic")
    if described.kind == SHARE:
        (await call.admin.shares.forget_each(group_id, [topic])).all()
    else:
        partitions = [at for at in await _offsets(call, described) if at.topic == topic]
        problem = failures(await call.admin.groups.delete_offsets_each(group_id, partitions), "deleted")
        if problem is not None:
            return of_group(group_id, "delete", "Delete offsets: not all", problem, status=400)
    return Redirect(named_path("groups", group_id, "delete"), done=f"Group {group_id} has forgotten topic {topic}")


async def _offsets(call: PageCall, described: GroupDescription) -> dict[TopicPartition, int]:
    return await offsets_of(call.admin, described.group_id, share=described.kind == SHARE)


def _names(described: GroupDescription) -> list[str]:
    return [each.client_id or each.member_id for each in described.members]


def _readers(described: GroupDescription, topic: str) -> list[str]:
    return [
        each.client_id or each.member_id
        for each in described.members
        if topic in each.subscribed or any(at.topic == topic for at in each.partitions)
    ]


def _columns(group_id: str) -> tuple[Column[TopicOfGroup], ...]:
    return (
        Column("Topic", lambda each: told(each.topic), lambda each: each.topic),
        Column("Partitions", lambda each: each.partitions, lambda each: each.partitions, is_number=True),
        Column("Read by", lambda each: badge(told(some(each.readers)), "good") if each.readers else "nobody"),
        Column("", lambda each: link("Delete its offsets", named_path("groups", group_id, "forget", topic=each.topic))),
    )


_OFFSETS: tuple[Column[tuple[TopicPartition, int]], ...] = (
    Column("Partition", lambda each: told(at_text(each[0]))),
    Column("Offset", lambda each: count_text(each[1]), is_number=True),
)
