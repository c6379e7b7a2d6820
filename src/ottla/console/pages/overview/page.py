"""The overview: brokers, and what they tell."""

from __future__ import annotations

from ottla.client.metadata import AdvertisedBroker
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import badge, card, told
from ottla.console.routing import page

_COLUMNS: tuple[Column[AdvertisedBroker], ...] = (
    Column("Broker", lambda each: each.node_id, is_number=True),
    Column("Address", lambda each: told(str(each.address))),
    Column("State", lambda each: badge("fenced", "bad") if each.is_fenced else badge("up", "good")),
)


@page("/")
async def overview(call: PageCall) -> Page:
    described = await call.admin.nodes.describe(fenced=True)
    return Page("Overview", card("Brokers", plain_table(_COLUMNS, described.brokers)))
