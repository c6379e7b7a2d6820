"""Electing the preferred leaders: the first replica of each partition leads again."""

from __future__ import annotations

from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import path_to
from ottla.console.pages.brokers.parts import BROKERS
from ottla.console.parts.forms import form
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import card, link, notice, told
from ottla.console.routing import action, page
from ottla.model import limits
from ottla.operations.cluster.view import PartitionView, look


@page("/brokers/leaders")
async def leaders(call: PageCall) -> Page:
    view = await call.access.aside(look)
    alive = {each.id for each in view.brokers if not each.broker.is_fenced}
    elsewhere = [each for each in view.partitions if each.leader != each.target[0]]
    possible = sum(each.target[0] in alive for each in elsewhere)
    content = plain_table(
        _COLUMNS, elsewhere[: limits.CONSOLE_PLAN_MOVES], empty="The preferred replicas lead everywhere."
    )
    elect = form(call, "/brokers/leaders", submit=f"Elect {possible:,} leaders") if possible else None
    about = notice("Nothing is copied. Clients find the new leaders by themselves.")
    return Page(
        "Preferred leaders", [about, card(f"{len(elsewhere):,} led by another", content, elect)], trail=(BROKERS,)
    )


@action("/brokers/leaders")
async def elect(call: PageCall) -> Answer:
    outcomes = await call.admin.replicas.elect_each()
    elected = sum(outcomes.found.values())
    done = f"{elected:,} leader{'' if elected == 1 else 's'} elected"
    if outcomes.failed:
        done += f"; {len(outcomes.failed):,} could not be, because the preferred replica is away or not in sync"
    return Redirect("/brokers", done=done)


_COLUMNS: tuple[Column[PartitionView], ...] = (
    Column("Topic", lambda row: link(told(row.at.topic), path_to("topics", row.at.topic))),
    Column("Partition", lambda row: row.at.partition, is_number=True),
    Column("Leader", lambda row: "none" if row.is_offline else row.leader, is_number=True),
    Column("Preferred", lambda row: row.target[0], is_number=True),
    Column("In sync", lambda row: ", ".join(map(str, row.isr))),
)
