"""SCRAM users: adding them, changing their passwords, removing them."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.admin.new_users import checked_password, checked_user
from ottla.client.admin.users import ScramInfo
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.failures import REFUSALS
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.access.tab import again, below_access, of_access
from ottla.console.parts.forms import choice, field, form, hidden
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.typed import TypedForm
from ottla.console.parts.words import card, link, notice, told
from ottla.console.refusals import WrongInput, typed_in
from ottla.console.routing import action, page
from ottla.security.development import NODE
from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS, ScramMechanism

_PATH = "/access/users"
_ALL = "all"


class UserRow(NamedTuple):
    """A user, and how the user's passwords are stored."""

    name: str
    infos: tuple[ScramInfo, ...]


def _change(user: str) -> str:
    return path_to("access", "users", "change", user=user)


_COLUMNS: tuple[Column[UserRow], ...] = (
    Column("User", lambda each: link(told(each.name), _change(each.name)), key=lambda each: each.name),
    Column("Passwords", lambda each: ", ".join(_info_text(info) for info in each.infos)),
)


@page("/access/users")
async def users(call: PageCall) -> Page:
    rows = [UserRow(name, infos) for name, infos in (await call.admin.users.all()).items()]
    table = listing(call, _COLUMNS, rows, text=lambda each: each.name, sort="user", noun="user")
    note = "A new user may do nothing until a rule allows it. Only users with a SCRAM password are kept by the cluster."
    adding = _adding(call, TypedForm(call))
    return of_access(_PATH, "Users", card("Users", table), card("Add a user", tag("p", note), adding))


@action("/access/users/add")
async def add_user(call: PageCall) -> Answer:
    user = call.form.get("user", "")
    try:
        if user in await call.admin.users.all():
            raise WrongInput(f"there is a user {user} already", "its page changes the password", field="user")
        await _set(call, user, _mechanisms(call))
    except REFUSALS as error:
        typed = TypedForm(call, error)
        return again(_PATH, "Add a user", typed, _adding(call, typed))
    return Redirect(_PATH, done=f"User {user} was added")


@page("/access/users/change")
async def change_user(call: PageCall) -> Page:
    return await _change_page(call, TypedForm(call))


async def _change_page(call: PageCall, typed: TypedForm) -> Page:
    user, infos = await _known(call)
    names = [each.mechanism.sasl_name for each in infos]
    own = [notice(f"This console is signed in as {user}.", "fair")] if user == call.access.user else []
    if user == NODE:
        own.append(notice("Brokers of `ottla up --secure` log in to each other as this user.", "bad"))
    password = form(
        call,
        "/access/users/password",
        hidden("user", user),
        _password(typed),
        _mechanism(" and ".join(names), typed),
        submit="Change the password",
    )
    removal = form(
        call,
        "/access/users/remove",
        hidden("user", user),
        field("name", "Type the name of the user", required=True, typed=typed),
        submit="Remove the user",
        is_dangerous=True,
    )
    rules = link("its rules", path_to("access", "rules", q=f"User:{user}"))
    parts: list[Content] = [
        tag("p", "Stored: ", ", ".join(map(_info_text, infos)), ". See ", rules, "."),
        card("Password", tag("p", "Connections that are open stay open."), password),
        card("Remove", tag("p", "Rules and quotas of the user stay."), removal),
    ]
    return below_access(_PATH, f"User {user}", typed.said, *own, *parts, status=typed.status)


@action("/access/users/password")
async def change_password(call: PageCall) -> Answer:
    user, infos = await _known(call)
    known = [each.mechanism for each in infos]
    try:
        chosen = _mechanisms(call)
        await _set(call, user, known if len(chosen) > 1 else chosen)
    except REFUSALS as error:
        return await _change_page(call, TypedForm(call, error))
    return Redirect(_change(user), done=f"The password of user {user} was changed")


@action("/access/users/remove")
async def remove_user(call: PageCall) -> Answer:
    user, infos = await _known(call)
    if call.form.get("name", "") != user:
        wrong = WrongInput("the typed name is not that of the user", "nothing was removed", field="name")
        return await _change_page(call, TypedForm(call, wrong))
    for each in infos:
        await call.admin.users.remove(user, each.mechanism)
    return Redirect(_PATH, done=f"User {user} was removed")


async def _known(call: PageCall) -> tuple[str, tuple[ScramInfo, ...]]:
    user = call.form.get("user") or call.query.get("user", "")
    return user, await call.admin.users.describe(user)


async def _set(call: PageCall, user: str, mechanisms: list[ScramMechanism]) -> None:
    password = call.form.get("password", "")
    with typed_in("user"):
        checked_user(user)
    with typed_in("password"):
        checked_password(password)
        for each in mechanisms:
            await call.admin.users.set_password(user, password, mechanism=each)


def _mechanisms(call: PageCall) -> list[ScramMechanism]:
    given = call.form.get("mechanism", _ALL)
    if given == _ALL:
        return list(SCRAM_MECHANISMS.values())
    if given not in SCRAM_MECHANISMS:
        known = ", ".join(SCRAM_MECHANISMS)
        raise WrongInput(f"the mechanism is one of {known}, not {given[:40]!r}", field="mechanism")
    return [SCRAM_MECHANISMS[given]]


def _adding(call: PageCall, typed: TypedForm) -> Markup:
    return form(
        call,
        "/access/users/add",
        field("user", "User", required=True, typed=typed),
        _password(typed),
        _mechanism("SCRAM-SHA-256 and SCRAM-SHA-512", typed),
        submit="Add user",
    )


def _mechanism(all_of_them: str, typed: TypedForm) -> Content:
    return choice("mechanism", "Mechanism", [(_ALL, all_of_them), *SCRAM_MECHANISMS], _ALL, typed=typed)


def _password(typed: TypedForm) -> Content:
    hint = "The cluster stores keys that follow from it, not the password."
    return field(
        "password", "Password", type_="password", required=True, autocomplete="new-password", hint=hint, typed=typed
    )


def _info_text(info: ScramInfo) -> str:
    return f"{info.mechanism.sasl_name} ({info.iterations:,} iterations)"
