"""All groups: kind and state of each; members and lag of those on the page that is shown, so that thousands of groups
stay quick.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.client.admin.asking import one_by_one
from ottla.client.admin.group_descriptions import GroupDescription
from ottla.client.admin.groups import GroupListing
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, tag
from ottla.console.pages.groups.words import (
    SHARE,
    count_text,
    group_link,
    kind_of,
    kind_text,
    lag_mood,
    state_badge,
    waited_text,
)
from ottla.console.parts.choices import choices
from ottla.console.parts.tables import Column, cut, listed
from ottla.console.parts.words import badge, notice, told
from ottla.console.routing import page
from ottla.model import limits
from ottla.operations.failures import message_of
from ottla.operations.group_lags import LagTotal, lag_totals


class GroupsSeen(NamedTuple):
    """What is asked for the groups of one page only."""

    lags: Mapping[str, LagTotal] = {}
    described: Mapping[str, GroupDescription] = {}


@page("/groups")
async def group_list(call: PageCall) -> Page:
    listed_each = await call.admin.groups.all_each()
    groups = sorted({each.group_id: each for found in listed_each.found.values() for each in found}.values())
    missing = [f"broker {node_id}: {message_of(error)}" for node_id, error in listed_each.failed.items()]
    if missing and not groups:
        listed_each.all()  # raises what is wrong
    chosen = _chosen(call, groups)
    wanted = call.query.get("q", "").strip().lower()
    found = [each for each in chosen if wanted in _text(each).lower()]
    is_whole = len(found) <= limits.CONSOLE_ROWS  # they are all on one page, which can be sorted by their lag, too
    seen = await _seen(call, found) if is_whole else GroupsSeen()
    shown = cut(call, _columns(seen, is_whole=is_whole), chosen, text=_text, sort="group")
    if not is_whole:
        seen = await _seen(call, shown.shown)
    table = listed(call, _columns(seen, is_whole=is_whole), shown, empty="there are no groups", noun="group")
    notices = [notice(f"The groups of {each} are missing.", "fair") for each in missing]
    return Page("Groups", [notices, _filters(call, groups), table])


async def _seen(call: PageCall, groups: Sequence[GroupListing]) -> GroupsSeen:
    kinds = {each.group_id: each.kind for each in groups}
    lags, described = await asyncio.gather(
        lag_totals(call.admin, groups),
        one_by_one(kinds, lambda group: call.admin.groups.describe_as(group, kinds[group])),
    )
    return GroupsSeen(lags, described.found)


def _chosen(call: PageCall, groups: Sequence[GroupListing]) -> list[GroupListing]:
    kind, state = call.query.get("kind"), call.query.get("state")
    return [each for each in groups if kind in (None, kind_of(each)) and state in (None, each.state)]


def _text(group: GroupListing) -> str:
    return f"{group.group_id} {kind_of(group)} {group.state}"


def _columns(seen: GroupsSeen, *, is_whole: bool) -> tuple[Column[GroupListing], ...]:
    """`is_whole`: the lag of all groups is known, and not only of those on this page."""

    def lag(group: GroupListing) -> LagTotal:
        return seen.lags.get(group.group_id, LagTotal())

    def records(group: GroupListing) -> int | None:
        return lag(group).records

    def seconds(group: GroupListing) -> float | None:
        return lag(group).seconds

    return (
        Column("Group", lambda each: group_link(each.group_id), lambda each: each.group_id),
        Column("Kind", lambda each: kind_text(each.group_id, each.kind), kind_of),
        Column("State", lambda each: state_badge(each.state), lambda each: each.state),
        Column("Members", lambda each: _members(seen.described.get(each.group_id)), is_number=True),
        Column("Partitions", lambda each: count_text(lag(each).partitions or None), is_number=True),
        Column("Lag", lambda each: _records(lag(each)), records if is_whole else None, is_number=True),
        Column("Waiting", lambda each: _waiting(each, lag(each)), seconds if is_whole else None, is_number=True),
    )


def _members(described: GroupDescription | None) -> Content:
    return "-" if described is None else len(described.members)


def _records(lag: LagTotal) -> Content:
    return badge("not known", "fair") if lag.problem else count_text(lag.records)


def _waiting(group: GroupListing, lag: LagTotal) -> Content:
    if lag.problem:
        return told(lag.problem)
    if lag.records is None or group.kind == SHARE:
        return "-"
    return badge(waited_text(lag.seconds), lag_mood(lag.seconds))


def _filters(call: PageCall, groups: Sequence[GroupListing]) -> Markup:
    """Links that choose a kind or a state, with how many groups have it."""
    kinds = choices(call, "kind", Counter(map(kind_of, groups)))
    return tag("div", kinds, choices(call, "state", Counter(each.state for each in groups)))
