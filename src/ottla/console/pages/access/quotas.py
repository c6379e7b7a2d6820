"""Quotas of clients: what users, client ids and addresses may use."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.admin.quotas import DEFAULT, Name, QuotaEntity
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import Content, Markup, tag
from ottla.console.pages.access.tab import again, of_access
from ottla.console.parts.forms import choice, field, form, hidden
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import card, told
from ottla.console.refusals import WrongInput, typed_in
from ottla.console.routing import action, page
from ottla.operations.formats import parse_rate, size_text
from ottla.security.quotas.limits_of_clients import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

_PATH = "/access/quotas"
_BYTES = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
_UNITS = {
    PRODUCER_BYTE_RATE: "bytes per second",
    CONSUMER_BYTE_RATE: "bytes per second",
    REQUEST_PERCENTAGE: "percent of one thread",
    CONTROLLER_MUTATION_RATE: "partitions per second",
    CONNECTION_CREATION_RATE: "connections per second, of an address",
}
_DEFAULT_WORD = "*default*"
_MOST = 1e18


class QuotaRow(NamedTuple):
    """One quota of one entity."""

    entity: QuotaEntity
    key: str
    value: float


@page("/access/quotas")
async def quotas(call: PageCall) -> Page:
    found = await call.admin.quotas.describe()
    rows = [QuotaRow(entity, key, value) for entity, values in found.items() for key, value in values.items()]
    columns: tuple[Column[QuotaRow], ...] = (
        Column("Of", lambda each: told(str(each.entity)), key=lambda each: str(each.entity)),
        Column("Quota", lambda each: each.key, key=lambda each: each.key),
        Column("Value", _value, key=lambda each: each.value, is_number=True),
        Column("", lambda each: _removal(call, each)),
    )
    table = listing(call, columns, rows, text=lambda each: f"{each.entity} {each.key}", sort="of", noun="quota")
    return of_access(_PATH, "Quotas", card("Quotas", table), card("Set a quota", _setting(call, TypedForm(call))))


@action("/access/quotas/set")
async def set_quota(call: PageCall) -> Answer:
    try:
        key, text = call.text("quota"), call.text("value")
        if key not in _UNITS:
            raise WrongInput(f"the quota is one of {', '.join(_UNITS)}, not {key[:40]!r}", field="quota")
        entity = _entity(call)
        with typed_in("value"):
            value = _number(key, text)
        await call.admin.quotas.alter(entity, {key: value})
    except REFUSALS as error:
        typed = TypedForm(call, error)
        return again(_PATH, "Set a quota", typed, _setting(call, typed))
    return Redirect(_PATH, done=f"{key} of {entity} is {text}")


@action("/access/quotas/remove")
async def remove_quota(call: PageCall) -> Answer:
    entity, key = _entity(call), call.text("quota")
    await call.admin.quotas.alter(entity, {key: None})
    return Redirect(_PATH, done=f"{key} of {entity} was removed")


def _entity(call: PageCall) -> QuotaEntity:
    user, client_id, ip = (_name(call.form.get(each, "")) for each in ("user", "client_id", "ip"))
    entity = QuotaEntity(user, client_id, ip)
    if entity == QuotaEntity():
        raise WrongInput("say whose quota: a user, a client id or an address", field="user")
    if ip is not None and (user is not None or client_id is not None):
        raise WrongInput("a quota of an address cannot also be that of a user or client id", field="ip")
    return entity


def _name(text: str) -> Name:
    return None if not text else DEFAULT if text == _DEFAULT_WORD else text


def _words(name: Name) -> str:
    return "" if name is None else name if isinstance(name, str) else _DEFAULT_WORD


def _number(key: str, text: str) -> float:
    """Raises ValueError, or CommandError with a hint."""
    try:
        value = float(text)
    except ValueError:
        if key not in _BYTES:
            raise ValueError(f"{text[:40]!r} is not a number") from None
        value = float(parse_rate(text))
    if not 0 < value < _MOST:
        raise ValueError(f"a quota is a number above 0 and below {_MOST:g}, not {text[:40]}")
    return value


def _value(row: QuotaRow) -> str:
    return f"{size_text(int(row.value))}/s" if row.key in _BYTES else f"{row.value:g}"


def _removal(call: PageCall, row: QuotaRow) -> Content:
    entity = row.entity
    fields = [
        hidden(name, _words(value))
        for name, value in (("user", entity.user), ("client_id", entity.client_id), ("ip", entity.ip))
    ]
    if not call.may_change:
        return None
    removing = form(call, "/access/quotas/remove", *fields, hidden("quota", row.key), submit="Remove", class_="inline")
    return removing


def _setting(call: PageCall, typed: TypedForm) -> Markup:
    said = tag(
        "p", "Leave out what does not matter; ", told(_DEFAULT_WORD), " stands for all without a quota of their own."
    )
    setting = form(
        call,
        "/access/quotas/set",
        field("user", "User", typed=typed),
        field("client_id", "Client id", typed=typed),
        field("ip", "Address", typed=typed),
        choice("quota", "Quota", [(key, f"{key} ({unit})") for key, unit in _UNITS.items()], typed=typed),
        field("value", "Value", hint="10MiB is a rate in bytes, too", required=True, typed=typed),
        submit="Set quota",
    )
    return tag("div", said, setting)
