"""Signing in with a user of the cluster, and out again. The cluster itself checks the password."""

from __future__ import annotations

from ottla.client.errors import AuthenticationError
from ottla.console.access import Access
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.parts.forms import any_form, field, hidden
from ottla.console.parts.words import notice
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import action, page
from ottla.console.security.gate import COOKIE
from ottla.web.password_turns import TooBusy


@page("/sign-in", is_open=True)
async def sign_in_page(call: PageCall) -> Answer:
    if call.session is not None:
        return Redirect("/")
    return _form(call)


@action("/sign-in", is_open=True, in_read_only=True)
async def sign_in(call: PageCall) -> Answer:
    if not call.options.signs_in:
        return Redirect("/")
    user, password = call.text("user"), call.form.get("password", "")
    if not password:
        return _form(call, "the password is missing")
    try:
        async with call.sessions.password_turns.turn(call.host, user):
            access = await _accepted(call, user, password)
    except TooBusy:
        raise RefusedRequest(503, "too many users are signing in", "try again in a moment") from None
    if access is None:
        return _form(call, "the cluster refuses this user or password")
    if call.session is not None:
        call.sessions.end(call.session)  # whoever signs in again means to be somebody else from here on
    return Redirect(_target(call), cookies={COOKIE: call.sessions.begin(access).id})


@action("/sign-out", in_read_only=True)
async def sign_out(call: PageCall) -> Answer:
    assert call.session is not None, "the route is not open"
    call.sessions.end(call.session)
    return Redirect("/sign-in", cookies={COOKIE: ""})


async def _accepted(call: PageCall, user: str, password: str) -> Access | None:
    """Return the clients of a user; None if the cluster refuses the password."""
    access = Access(call.options, user, password)
    try:
        await access.check()
    except (AuthenticationError, ValueError):
        await access.close()
        return None
    except BaseException:
        await access.close()
        raise
    return access


def _form(call: PageCall, wrong: str = "") -> Page:
    content = any_form(
        call,
        "/sign-in",
        field("user", "User", call.form.get("user", ""), required=True, autocomplete="username"),
        field("password", "Password", type_="password", required=True, autocomplete="current-password"),
        hidden("to", _target(call)),
        submit="Sign in",
    )
    told = notice(wrong, "bad") if wrong else notice("Sign in with a user of the cluster: its rights are yours here.")
    return Page("Sign in", [told, content], status=403 if wrong else 200)


def _target(call: PageCall) -> str:
    """Where to go after signing in: a path of the console, never another site."""
    to = call.form.get("to") or call.query.get("to") or "/"
    return to if to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable() else "/"
