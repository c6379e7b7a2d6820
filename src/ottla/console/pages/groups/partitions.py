"""The partitions of a group: where it is in each, how far behind, who reads it, what was committed with the offset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.admin import Admin
from ottla.client.admin.group_descriptions import GroupDescription, GroupMember
from ottla.client.explain.words import some
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to
from ottla.console.named import name_in
from ottla.console.pages.groups.words import SHARE, at_text, count_text, lag_mood, of_group, waited_text
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import badge, link, notice, told
from ottla.console.routing import page
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.operations.failures import message_of
from ottla.operations.group_lags import partition_lags


class PartitionOfGroup(NamedTuple):
    """One partition; of a share group, `committed` is the first record that is not finished."""

    at: TopicPartition
    committed: int | None = None
    end: int | None = None
    lag: int | None = None
    seconds: float | None = None
    metadata: str = ""
    owners: tuple[GroupMember, ...] = ()
    problem: str = ""


@page("/groups/{group}/partitions")
async def group_partitions(call: PageCall) -> Page:
    group_id = name_in(call, "group")
    described = await call.admin.groups.describe(group_id)
    rows = await _rows(call.admin, described)
    is_share = described.kind == SHARE
    empty = "the share group has not begun to read" if is_share else "the group has committed no offsets"
    table = listing(call, _columns(is_share), rows, text=_text, sort="partition", noun="partition", empty=empty)
    note = _SHARE_NOTE if is_share else _NOTE
    return of_group(group_id, "partitions", "Partitions", notice(note), table)


_NOTE = "Lag counts the records behind the committed offset. Waiting is the age of the first record that was not read."
_SHARE_NOTE = (
    "All records before the start are finished. The lag counts unfinished records from there on, also those that "
    "members hold now. How many they hold in all is on the page Now, if nodes tell their metrics; of one partition no "
    "API tells it, nor how often a record was delivered."
)


async def _rows(admin: Admin, described: GroupDescription) -> list[PartitionOfGroup]:
    owners: dict[TopicPartition, tuple[GroupMember, ...]] = {}
    for member in described.members:
        for at in member.partitions:
            owners[at] = (*owners.get(at, ()), member)
    if described.kind == SHARE:
        return await _share_rows(admin, described.group_id, owners)
    lags, problems = await partition_lags(admin, described.group_id, owners)
    places = await admin.groups.offsets(described.group_id)
    rows = [
        PartitionOfGroup(
            at,
            each.committed,
            each.end,
            each.records,
            each.seconds,
            places[at].metadata if at in places else "",
            owners.get(at, ()),
            problems.get(at, ""),
        )
        for at, each in lags.items()
    ]
    rows += [
        PartitionOfGroup(at, places[at].offset if at in places else None, problem=problem)
        for at, problem in problems.items()
        if at not in lags
    ]
    gone = [at for at in places if at not in lags and at not in problems]
    return rows + [PartitionOfGroup(at, places[at].offset, problem="the partition does not exist") for at in gone]


async def _share_rows(
    admin: Admin, group_id: str, owners: Mapping[TopicPartition, tuple[GroupMember, ...]]
) -> list[PartitionOfGroup]:
    places = await admin.shares.places_each(group_id)
    ends = (await admin.topics.bounds_each(places.found)).found if places.found else {}
    rows = [
        PartitionOfGroup(at, each.start, ends[at].end if at in ends else None, each.lag, owners=owners.get(at, ()))
        for at, each in places.found.items()
    ]
    return rows + [PartitionOfGroup(at, problem=message_of(error)) for at, error in places.failed.items()]


def _text(row: PartitionOfGroup) -> str:
    return f"{at_text(row.at)} {_owners(row)} {row.metadata} {row.problem}"


def _owners(row: PartitionOfGroup) -> str:
    return some(each.instance_id or each.client_id or each.member_id for each in row.owners)


def _columns(is_share: bool) -> tuple[Column[PartitionOfGroup], ...]:
    columns: list[Column[PartitionOfGroup]] = [
        Column("Partition", _partition, lambda each: each.at),
        Column(
            "Start" if is_share else "Committed",
            lambda each: count_text(each.committed),
            lambda each: each.committed,
            is_number=True,
        ),
        Column("End", lambda each: count_text(each.end), lambda each: each.end, is_number=True),
        Column("Lag", lambda each: count_text(each.lag), lambda each: each.lag, is_number=True),
    ]
    if not is_share:
        columns.append(
            Column(
                "Waiting",
                lambda each: "-" if each.lag is None else badge(waited_text(each.seconds), lag_mood(each.seconds)),
                lambda each: each.seconds,
                is_number=True,
            )
        )
    columns.append(Column("Members" if is_share else "Member", _read_by, _owners))
    columns.append(Column("Metadata", lambda each: told(_cut(each.metadata)) if each.metadata else "-"))
    return tuple(columns[:-1] if is_share else columns)


def _partition(row: PartitionOfGroup) -> Content:
    place = link(told(at_text(row.at)), path_to("topics", row.at.topic))
    return [place, " ", badge(told(row.problem), "bad")] if row.problem else place


def _read_by(row: PartitionOfGroup) -> Content:
    return told(_owners(row)) if row.owners else "-"


def _cut(text: str) -> str:
    most = limits.CONSOLE_CELL_CHARS
    return text if len(text) <= most else f"{text[:most]}…"
