"""SCRAM users: adding them, changing their passwords, removing them."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.admin.users import ScramInfo
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.access.tab import below_access, of_access
from ottla.console.parts.forms import choice, field, form, hidden
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import card, link, notice, told
from ottla.console.refusals import WrongInput
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
    adding = form(
        call,
        "/access/users/add",
        field("user", "User", required=True),
        _password(),
        _mechanism("SCRAM-SHA-256 and SCRAM-SHA-512"),
        submit="Add user",
    )
    table = listing(call, _COLUMNS, rows, text=lambda each: each.name, sort="user", noun="user")
    note = "A new user may do nothing until a rule allows it. Only users with a SCRAM password are kept by the cluster."
    return of_access(_PATH, "Users", card("Users", table), card("Add a user", tag("p", note), adding))


@action("/access/users/add")
async def add_user(call: PageCall) -> Answer:
    user = call.form.get("user", "")
    if user in await call.admin.users.all():
        raise WrongInput(f"there is a user {user} already", "its page changes the password")
    await _set(call, user, _mechanisms(call))
    return Redirect(_PATH, done=f"User {user} was added")


@page("/access/users/change")
async def change_user(call: PageCall) -> Page:
    user, infos = await _known(call)
    names = [each.mechanism.sasl_name for each in infos]
    own = [notice(f"This console is signed in as {user}.", "fair")] if user == call.access.user else []
    if user == NODE:
        own.append(notice("Brokers of `ottla up --secure` log in to each other as this user.", "bad"))
    password = form(
        call,
        "/access/users/password",
        hidden("user", user),
        _password(),
        _mechanism(" and ".join(names)),
        submit="Change the password",
    )
    removal = form(
        call,
        "/access/users/remove",
        hidden("user", user),
        field("name", "Type the name of the user", required=True),
        submit="Remove the user",
        is_dangerous=True,
    )
    rules = link("its rules", path_to("access", "rules", q=f"User:{user}"))
    parts: list[Content] = [
        tag("p", "Stored: ", ", ".join(map(_info_text, infos)), ". See ", rules, "."),
        card("Password", tag("p", "Connections that are open stay open."), password),
        card("Remove", tag("p", "Rules and quotas of the user stay."), removal),
    ]
    return below_access(_PATH, f"User {user}", *own, *parts)


@action("/access/users/password")
async def change_password(call: PageCall) -> Answer:
    user, infos = await _known(call)
    chosen = _mechanisms(call)
    known = [each.mechanism for each in infos]
    await _set(call, user, known if len(chosen) > 1 else chosen)
    return Redirect(_change(user), done=f"The password of user {user} was changed")


@action("/access/users/remove")
async def remove_user(call: PageCall) -> Answer:
    user, infos = await _known(call)
    if call.form.get("name", "") != user:
        raise WrongInput("the typed name is not that of the user", "nothing was removed")
    for each in infos:
        await call.admin.users.remove(user, each.mechanism)
    return Redirect(_PATH, done=f"User {user} was removed")


async def _known(call: PageCall) -> tuple[str, tuple[ScramInfo, ...]]:
    user = call.form.get("user") or call.query.get("user", "")
    return user, await call.admin.users.describe(user)


async def _set(call: PageCall, user: str, mechanisms: list[ScramMechanism]) -> None:
    password = call.form.get("password", "")
    try:
        for each in mechanisms:
            await call.admin.users.set_password(user, password, mechanism=each)
    except (TypeError, ValueError) as error:
        raise WrongInput(str(error)) from None


def _mechanisms(call: PageCall) -> list[ScramMechanism]:
    given = call.form.get("mechanism", _ALL)
    if given == _ALL:
        return list(SCRAM_MECHANISMS.values())
    if given not in SCRAM_MECHANISMS:
        raise WrongInput(f"the mechanism is one of {', '.join(SCRAM_MECHANISMS)}, not {given[:40]!r}")
    return [SCRAM_MECHANISMS[given]]


def _mechanism(all_of_them: str) -> Content:
    return choice("mechanism", "Mechanism", [(_ALL, all_of_them), *SCRAM_MECHANISMS], _ALL)


def _password() -> Content:
    hint = "The cluster stores keys that follow from it, not the password."
    return field("password", "Password", type_="password", required=True, autocomplete="new-password", hint=hint)


def _info_text(info: ScramInfo) -> str:
    return f"{info.mechanism.sasl_name} ({info.iterations:,} iterations)"
