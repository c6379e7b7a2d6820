"""The metadata quorum: who leads, who votes, who follows, and how far behind each is."""

from __future__ import annotations

import time
from typing import NamedTuple

from ottla.client.admin.voters import QuorumReplica, QuorumState
from ottla.console.answers import Fragment, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, tag
from ottla.console.pages.brokers.parts import broker_tabs
from ottla.console.pages.brokers.voters import FIXED, HOW_DYNAMIC, change_path
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.times import ago
from ottla.console.parts.words import badge, card, code, figure, figures, link, live, notice, told
from ottla.console.routing import page
from ottla.model import limits
from ottla.model.ids import uuid_text
from ottla.operations.cluster.view import quorum_of
from ottla.operations.cluster.voter_changes import is_dynamic
from ottla.operations.cluster.voters import advice, in_doubt


class _Member(NamedTuple):
    replica: QuorumReplica
    role: str
    behind: int
    address: str
    is_in_doubt: bool


@page("/brokers/quorum")
async def quorum(call: PageCall) -> Page:
    content = live("/brokers/quorum/now", limits.CONSOLE_SAMPLE_S, await _content(call))
    return Page("Metadata quorum", [broker_tabs("/brokers/quorum"), content])


@page("/brokers/quorum/now")
async def quorum_now(call: PageCall) -> Fragment:
    return Fragment(await _content(call))


async def _content(call: PageCall) -> Content:
    found = await quorum_of(call.admin)
    doubtful = await in_doubt(call.admin, found)
    members = _members(found, doubtful)
    may_change = await is_dynamic(call.admin)
    columns = (*_COLUMNS, _CHANGE) if may_change and call.may_change else _COLUMNS
    return [
        figures(
            figure("leads", f"node {found.leader_id}", mood="good"),
            figure("epoch", f"{found.leader_epoch:,}"),
            figure("committed up to offset", f"{found.high_watermark:,}"),
            figure(
                "voters",
                len(found.voters),
                note=f"{len(found.voters) // 2} may fail" if len(found.voters) > 2 else None,
            ),
        ),
        notice(advice(doubtful), "bad") if doubtful else None,
        card("Voters", plain_table(columns, [each for each in members if each.role != "observer"])),
        card(
            "Observers",
            plain_table(columns, [each for each in members if each.role == "observer"], empty="nobody else follows"),
        ),
        None if may_change else tag("p", FIXED, " ", HOW_DYNAMIC.capitalize(), ".", class_="hint"),
    ]


def _members(found: QuorumState, doubtful: tuple[int, ...]) -> list[_Member]:
    end = max((each.log_end_offset for each in found.voters), default=0)

    def member(each: QuorumReplica, role: str) -> _Member:
        places = found.endpoints.get(each.node_id, ())
        address = ", ".join(str(place.address) for place in places)
        is_leader = each.node_id == found.leader_id
        behind = max(0, end - each.log_end_offset)
        return _Member(each, "leader" if is_leader else role, behind, address, each.node_id in doubtful)

    return [
        *(member(each, "voter") for each in found.voters),
        *(member(each, "observer") for each in found.observers),
    ]


def _role(row: _Member) -> Content:
    doubt = badge("in doubt", "bad") if row.is_in_doubt else None
    return [badge(row.role, "good" if row.role == "leader" else "plain"), " ", doubt]


def _directory(row: _Member) -> Content:
    directory = row.replica.directory_id
    return code(uuid_text(directory)) if any(directory) else ""


def _caught_up(row: _Member) -> str:
    at_ms = row.replica.last_caught_up_timestamp
    return "" if at_ms < 0 else f"{ago(max(time.time() - at_ms / 1000, 0))} ago"


def _change(row: _Member) -> Content:
    node_id = row.replica.node_id
    if row.role == "observer":
        return link("let it vote", change_path(node_id, "add"))
    return link("take its vote away", change_path(node_id, "remove"))


_CHANGE = Column("Change", _change)
_COLUMNS: tuple[Column[_Member], ...] = (
    Column("Node", lambda row: row.replica.node_id, is_number=True),
    Column("Role", _role),
    Column("Behind", lambda row: f"{row.behind:,}", is_number=True),
    Column("End", lambda row: f"{row.replica.log_end_offset:,}", is_number=True),
    Column("Caught up", _caught_up),
    Column("Address", lambda row: told(row.address)),
    Column("Directory", _directory),
)
