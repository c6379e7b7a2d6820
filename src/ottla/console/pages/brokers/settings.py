"""The settings of a broker: values, where each comes from, what it means; those that may change are changed here."""

from __future__ import annotations

from ottla.client.admin.configs import ConfigEntry, Synonym
from ottla.client.metadata import AdvertisedBroker
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.brokers.one import broker_of
from ottla.console.pages.brokers.parts import BROKERS
from ottla.console.parts.forms import choice, field, form
from ottla.console.parts.tables import Column, listing, plain_table
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import badge, card, code, facts, link, tabs, told
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import action, page
from ottla.model.resources import ConfigSource, Resource

_SOURCES = {
    ConfigSource.DYNAMIC_BROKER: "set for this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "set for all brokers",
    ConfigSource.STATIC_BROKER: "its file",
    ConfigSource.DEFAULT: "default",
}
_ALL = "all"


@page("/brokers/{broker}/settings")
async def settings(call: PageCall) -> Page:
    broker = await broker_of(call)
    entries = await call.admin.configs.describe(Resource.broker(broker.node_id))
    here = path_to("brokers", broker.node_id, "settings")
    only_set = "set" in call.query
    shown = [each for each in entries if not only_set or not each.is_default]
    views = tabs((("All", here), ("Not the default", f"{here}?set=1")), f"{here}?set=1" if only_set else here)
    columns: tuple[Column[ConfigEntry], ...] = (
        Column(
            "Setting",
            lambda row: link(row.name, path_to("brokers", broker.node_id, "settings", row.name)),
            lambda row: row.name,
        ),
        Column("Value", _value),
        Column("From", lambda row: source_text(row.source), lambda row: source_text(row.source)),
        Column("May change", lambda row: "" if row.is_read_only else badge("while it runs", "good")),
    )
    table = listing(call, columns, shown, text=lambda row: f"{row.name} {row.value or ''}", noun="setting")
    return Page("Settings", [views, table], trail=_trail(broker))


@page("/brokers/{broker}/settings/{setting}")
async def setting(call: PageCall) -> Page:
    return await _setting(call, TypedForm(call))


async def _setting(call: PageCall, typed: TypedForm) -> Page:
    broker = await broker_of(call)
    entry = await _entry(call, broker)
    about = facts(
        [
            ("value", _value(entry)),
            ("from", source_text(entry.source)),
            ("type", entry.type.name.lower()),
            ("may change", "only with a restart" if entry.is_read_only else "while the broker runs"),
        ]
    )
    said = tag("p", told(entry.documentation or "There is no text about it."))
    trail = (*_trail(broker), ("Settings", path_to("brokers", broker.node_id, "settings")))
    changing = None if entry.is_read_only else card("Change it", _forms(call, broker, entry, typed))
    others = card("Where values come from, the first counts", plain_table(_SYNONYMS, entry.synonyms))
    content = [typed.said, card("Now", said, about), changing, others if entry.synonyms else None]
    return Page(entry.name, content, trail, typed.status)


@action("/brokers/{broker}/settings/{setting}/set")
async def set_setting(call: PageCall) -> Answer:
    broker = await broker_of(call)
    entry = await _entry(call, broker)
    scope = call.text("scope", str(broker.node_id))
    resource = Resource.broker(None if scope == _ALL else broker.node_id)
    value = None if "reset" in call.form else call.form.get("value", "")
    try:
        await call.admin.configs.set(resource, {entry.name: value})
    except REFUSALS as error:
        return await _setting(call, TypedForm(call, error))
    where = "all brokers" if scope == _ALL else f"broker {broker.node_id}"
    done = f"{entry.name} of {where} is {'no longer set' if value is None else 'set'}"
    return Redirect(path_to("brokers", broker.node_id, "settings", entry.name), done=done)


def source_text(source: ConfigSource) -> str:
    return _SOURCES.get(source, source.name.lower().replace("_", " "))


def _forms(call: PageCall, broker: AdvertisedBroker, entry: ConfigEntry, typed: TypedForm) -> Content:
    to = path_to("brokers", broker.node_id, "settings", entry.name, "set")
    scopes = [(str(broker.node_id), f"broker {broker.node_id}"), (_ALL, "all brokers")]
    kind = "password" if entry.is_sensitive else "text"
    given = field("value", "Value", "" if entry.is_sensitive else entry.value, type_=kind, typed=typed)
    set_it = form(call, to, given, choice("scope", "For", scopes, typed=typed), submit="Set")
    reset = form(
        call,
        to,
        tag("input", type="hidden", name="reset", value="on"),
        choice("scope", "For", scopes),
        submit="Back to the default",
    )
    is_set = entry.source in (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER)
    return [set_it, tag("hr") if is_set else None, reset if is_set else None]


async def _entry(call: PageCall, broker: AdvertisedBroker) -> ConfigEntry:
    name = call.params["setting"]
    found = await call.admin.configs.describe(Resource.broker(broker.node_id), [name], documentation=True)
    for each in found:
        if each.name == name:
            return each
    raise RefusedRequest(404, "there is no such setting")


def _trail(broker: AdvertisedBroker) -> tuple[tuple[str, str], ...]:
    return (BROKERS, (f"Broker {broker.node_id}", path_to("brokers", broker.node_id)))


def _value(entry: ConfigEntry) -> Markup:
    if entry.is_sensitive:
        return tag("i", "hidden")
    return tag("i", "not set") if entry.value is None else code(entry.value)


_SYNONYMS: tuple[Column[Synonym], ...] = (
    Column("Setting", lambda row: told(row.name)),
    Column("Value", lambda row: tag("i", "not told") if row.value is None else code(row.value)),
    Column("From", lambda row: source_text(row.source)),
)
