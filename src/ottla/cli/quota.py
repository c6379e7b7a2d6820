"""`ottla quota`: what users, client ids and addresses may use of the brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, not_empty, parse_pairs, with_admin
from ottla.cli.terminal.plain import print_warning
from ottla.operations.errors import CommandError
from ottla.operations.tenants import warn_of_idle_limit
from ottla.security.quotas.limits_of_clients import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.quotas import Name, QuotaEntity

app = typer.Typer(help="Set, list and remove quotas of users, client ids and addresses.", no_args_is_help=True)

_BYTE_RATES = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
KEYS = (*_BYTE_RATES, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE, CONNECTION_CREATION_RATE)

User = Annotated[str | None, typer.Option("--user", "-u", help="A user.", callback=not_empty("user"))]
AllUsers = Annotated[bool, typer.Option("--default-user", help="Every user without a quota of its own.")]
ClientId = Annotated[
    str | None, typer.Option("--client-id", "-c", help="A client id.", callback=not_empty("client id"))
]
AllClientIds = Annotated[bool, typer.Option("--default-client-id", help="Every client id without a quota of its own.")]
Address = Annotated[str | None, typer.Option("--ip", help="An IP address.", callback=not_empty("address"))]
AllAddresses = Annotated[bool, typer.Option("--default-ip", help="Every address without a quota of its own.")]


@app.command("set")
def set_quotas(
    quotas: Annotated[
        list[str],
        typer.Argument(
            help="QUOTA=VALUE: producer_byte_rate or consumer_byte_rate (bytes per second, 10MiB too), "
            "request_percentage (of one thread), controller_mutation_rate (partitions per second) or, for addresses, "
            "connection_creation_rate (per second).",
            show_default=False,
        ),
    ],
    user: User = None,
    default_user: AllUsers = False,
    client_id: ClientId = None,
    default_client_id: AllClientIds = False,
    ip: Address = None,
    default_ip: AllAddresses = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Set quotas of a user, a client id, a client id of a user, or an address; other quotas of it stay."""
    from ottla.cli.terminal.output import done

    entity = _entity(user, default_user, client_id, default_client_id, ip, default_ip)
    wanted = {key: _value(key, text) for key, text in parse_pairs(quotas, "QUOTA=VALUE").items()}
    with_admin(bootstrap, lambda admin: admin.quotas.alter(entity, wanted))
    done(f"set {', '.join(wanted)} of {entity}")


@app.command("list")
def list_quotas(
    user: User = None,
    default_user: AllUsers = False,
    client_id: ClientId = None,
    default_client_id: AllClientIds = False,
    ip: Address = None,
    default_ip: AllAddresses = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List quotas: all, or those that belong to this user, client id or address."""
    from ottla.cli.terminal.output import print_json, print_table

    matching = _entity(user, default_user, client_id, default_client_id, ip, default_ip, needed=False)
    found = sorted(with_admin(bootstrap, lambda admin: admin.quotas.describe(matching)).items(), key=str)
    if as_json:
        print_json([{**_names(entity), "quotas": quotas} for entity, quotas in found])
        return
    rows = [
        (*(shown or "-" for shown in map(_shown, (entity.user, entity.client_id, entity.ip))), key, f"{value:.12g}")
        for entity, quotas in found
        for key, value in quotas.items()
    ]
    print_table(["user", "client-id", "ip", "quota", "value"], rows, right=["value"])


@app.command()
def remove(
    keys: Annotated[
        list[str] | None, typer.Argument(help="Quotas to remove; all unless given.", show_default=False)
    ] = None,
    user: User = None,
    default_user: AllUsers = False,
    client_id: ClientId = None,
    default_client_id: AllClientIds = False,
    ip: Address = None,
    default_ip: AllAddresses = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Remove quotas of a user, a client id, a client id of a user, or an address."""
    from ottla.cli.terminal.output import done

    entity = _entity(user, default_user, client_id, default_client_id, ip, default_ip)

    async def work(admin: Admin) -> list[str]:
        found = (await admin.quotas.describe(entity, strict=True)).get(entity, {})
        doomed = list(keys or found)
        missing = [key for key in doomed if key not in found]
        if missing or not doomed:
            what = f"no quota {missing[0]}" if missing else "no quotas"
            raise CommandError(f"{entity} has {what}", "`ottla quota list` shows what there is")
        await admin.quotas.alter(entity, dict.fromkeys(doomed))
        return doomed

    done(f"removed {', '.join(with_admin(bootstrap, work))} of {entity}")


def _entity(
    user: str | None,
    every_user: bool,
    client_id: str | None,
    every_client_id: bool,
    ip: str | None,
    every_ip: bool,
    *,
    needed: bool = True,
) -> QuotaEntity:
    from ottla.client.admin.quotas import QuotaEntity

    entity = QuotaEntity(
        _name(user, every_user, "user"), _name(client_id, every_client_id, "client-id"), _name(ip, every_ip, "ip")
    )
    if needed and entity == QuotaEntity():
        raise typer.BadParameter("say whose quota: --user, --client-id, --ip, or one of them with --default-")
    if entity.ip is not None and (entity.user is not None or entity.client_id is not None):
        raise typer.BadParameter("a quota of an address cannot also be that of a user or client id")
    return entity


def _name(name: str | None, default: bool, option: str) -> Name:
    from ottla.client.admin.quotas import DEFAULT

    if default and name is not None:
        raise typer.BadParameter(f"--{option} and --default-{option} exclude each other")
    return DEFAULT if default else name


def _value(key: str, text: str) -> float:
    if key not in KEYS:
        raise typer.BadParameter(f"there is no quota {key}: they are {', '.join(KEYS)}")
    try:
        value = float(text)
    except ValueError:
        if key not in _BYTE_RATES:
            raise typer.BadParameter(f"{text!r} is not a number", param_hint=key) from None
        from ottla.operations.formats import parse_rate

        value = parse_rate(text)
    if not value > 0:
        raise typer.BadParameter(f"{key} must be above 0, not {text}")
    if key == REQUEST_PERCENTAGE:
        warn_of_idle_limit(value, print_warning)
    return value


def _shown(name: Name) -> str | None:
    return name if name is None or isinstance(name, str) else "(default)"


def _names(entity: QuotaEntity) -> dict[str, str | None]:
    """Names for JSON: null stands for the default, as in Kafka's requests."""
    return {kind: name if isinstance(name, str) else None for kind, name in entity.names()}
