"""`ottla token`: delegation tokens, with which programs log in without a user's password."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, not_empty, parse_duration_ms, with_admin
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.tokens import DelegationToken
    from ottla.security.principal import Principal

app = typer.Typer(help="Create, list, renew and expire delegation tokens.", no_args_is_help=True)

TokenId = Annotated[str, typer.Argument(help="Id of the token.", callback=not_empty("token"))]
Owners = Annotated[
    list[str], typer.Option("--owner", help="Only tokens that this principal owns or may renew; may be repeated.")
]


@app.command()
def create(
    owner: Annotated[
        str | None, typer.Option("--owner", help="Principal that the token stands for, User:NAME; you unless given.")
    ] = None,
    renewer: Annotated[
        list[str], typer.Option("--renewer", help="Principal that may renew it, User:NAME; may be repeated.")
    ] = [],  # noqa: B006
    life: Annotated[
        str | None,
        typer.Option("--max-life", help="Longest life, such as 7d; as long as the brokers allow unless given."),
    ] = None,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Create a token and print it with its password. Keep the password secret: it is as good as the owner's."""
    principal = None if owner is None else _principal(owner, "--owner")
    renewers = [_principal(each, "--renewer") for each in renewer]
    life_ms = None if life is None else _duration_ms(life, "--max-life")

    if sys.__stdout__ is None:  # it was closed when the process began
        raise CommandError("standard output is closed, and the token's password is shown only once: nothing was made")

    async def work(admin: Admin) -> DelegationToken:
        return await admin.tokens.create(owner=principal, renewers=renewers, max_lifetime_ms=life_ms)

    _print([with_admin(bootstrap, work)], as_json, secrets=True)


@app.command("list")
def list_tokens(
    owner: Owners = [],  # noqa: B006
    secrets: Annotated[bool, typer.Option("--secrets", help="Show the passwords of the tokens.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List the tokens that you may see, by expiry."""
    owners = [_principal(each, "--owner") for each in owner] or None
    _print(with_admin(bootstrap, lambda admin: admin.tokens.all(owners)), as_json, secrets=secrets)


@app.command()
def renew(
    token_id: TokenId,
    period: Annotated[
        str | None,
        typer.Option("--for", help="Valid for this long from now, such as 12h; as long as allowed unless given."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Prolong a token that you own or may renew."""
    from ottla.cli.terminal.output import done
    from ottla.operations.formats import time_text

    period_ms = None if period is None else _duration_ms(period, "--for")

    async def work(admin: Admin) -> int:
        return await admin.tokens.renew(await _hmac_of(admin, token_id), period_ms)

    done(f"token {token_id} is valid until {time_text(with_admin(bootstrap, work))}")


@app.command()
def expire(
    token_id: TokenId,
    period: Annotated[
        str | None,
        typer.Option("--in", help="Valid for this long from now, such as 10m; removed at once unless given."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Let a token expire sooner, or remove it at once. Connections that use it end when it expires."""
    from ottla.cli.terminal.output import done
    from ottla.operations.formats import time_text

    period_ms = None if period is None else parse_duration_ms(period, "--in")

    async def work(admin: Admin) -> int:
        return await admin.tokens.expire(await _hmac_of(admin, token_id), period_ms)

    expiry_ms = with_admin(bootstrap, work)
    done(f"token {token_id} is removed" if period is None else f"token {token_id} expires {time_text(expiry_ms)}")


async def _hmac_of(admin: Admin, token_id: str) -> bytes:
    """Find a token by its id, so that its secret half need not be an argument, which others can see."""
    for token in await admin.tokens.all():
        if token.token_id == token_id:
            return token.hmac
    raise CommandError(f"there is no token {token_id} that you may see", "`ottla token list` shows them")


def _duration_ms(text: str, option: str) -> int:
    """Parse a duration above 0. Brokers take 0 for "as long as the settings allow", which nobody means by it."""
    duration_ms = parse_duration_ms(text, option)
    if duration_ms <= 0:
        raise typer.BadParameter(f"{text} is no time that a token can last: it must be above 0", param_hint=option)
    return duration_ms


def _principal(text: str, option: str) -> Principal:
    from ottla.security.principal import parse_principal

    try:
        return parse_principal(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _print(tokens: list[DelegationToken], as_json: bool, *, secrets: bool) -> None:
    from ottla.cli.terminal.output import print_json, print_table
    from ottla.operations.formats import time_text

    if as_json:
        print_json([_row(token, secrets) for token in tokens])
        return
    columns = ["id", "owner", "renewers", "expires", "renewable until"]
    rows = [
        [
            token.token_id,
            str(token.owner),
            ", ".join(map(str, token.renewers)) or "-",
            time_text(token.expires_ms),
            time_text(token.max_ms),
        ]
        for token in tokens
    ]
    if secrets:
        columns.append("password")
        rows = [[*row, token.password] for row, token in zip(rows, tokens, strict=True)]
    print_table(columns, rows)


def _row(token: DelegationToken, secrets: bool) -> dict[str, object]:
    row: dict[str, object] = {
        "id": token.token_id,
        "owner": str(token.owner),
        "requester": None if token.requester is None else str(token.requester),
        "renewers": [str(each) for each in token.renewers],
        "issued_ms": token.issued_ms,
        "expires_ms": token.expires_ms,
        "max_ms": token.max_ms,
    }
    return {**row, "password": token.password} if secrets else row
