"""Delegation tokens: which there are, and ending them."""

from __future__ import annotations

from ottla.client.admin.tokens import DelegationToken
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content
from ottla.console.pages.access.tab import of_access
from ottla.console.parts.forms import form, hidden
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import card, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import action, page
from ottla.model.errors import ApiError, ErrorCode
from ottla.operations.formats import time_text

_PATH = "/access/tokens"
_OFF = (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


@page("/access/tokens")
async def tokens(call: PageCall) -> Page:
    try:
        found = await call.admin.tokens.all()
    except ApiError as error:
        if error.code not in _OFF:
            raise
        said = "There are no delegation tokens: this cluster, or this connection, does not use them."
        return of_access(_PATH, "Tokens", notice(said, "plain", "delegation.token.secret.key turns them on"))
    columns: tuple[Column[DelegationToken], ...] = (
        Column("Id", lambda each: told(each.token_id)),
        Column("Owner", lambda each: told(str(each.owner)), key=lambda each: str(each.owner)),
        Column("Renewers", lambda each: told(", ".join(map(str, each.renewers)))),
        Column("Issued", lambda each: time_text(each.issued_ms), key=lambda each: each.issued_ms),
        Column("Expires", lambda each: time_text(each.expires_ms), key=lambda each: each.expires_ms),
        Column("At the latest", lambda each: time_text(each.max_ms), key=lambda each: each.max_ms),
        Column("", lambda each: _ending(call, each)),
    )
    table = listing(
        call, columns, found, text=lambda each: f"{each.token_id} {each.owner}", sort="expires", noun="token"
    )
    return of_access(_PATH, "Tokens", card("Delegation tokens", table))


@action("/access/tokens/end")
async def end_token(call: PageCall) -> Answer:
    token_id = call.text("id")
    found = next((each for each in await call.admin.tokens.all() if each.token_id == token_id), None)
    if found is None:
        raise WrongInput("there is no such token any more")
    await call.admin.tokens.expire(found.hmac)
    return Redirect(_PATH, done=f"The token {token_id} was ended")


def _ending(call: PageCall, token: DelegationToken) -> Content:
    if not call.may_change:
        return None
    return form(
        call, "/access/tokens/end", hidden("id", token.token_id), submit="End", class_="inline", is_dangerous=True
    )
