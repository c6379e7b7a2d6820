"""`ottla quota`: what users, client ids and addresses may use of the brokers."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, not_empty, parse_pairs, with_admin
from ottla.cli.terminal.plain import print_warning
from ottla.operations.errors import CommandError, WrongUsage
from ottla.operations.tenants import warn_of_idle_limit
from ottla.security.quotas.limits_of_clients import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE
from ottla.security.quotas.numbers import NUMBERS_OF_ADDRESSES, NUMBERS_OF_CLIENTS

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.quotas import Name, QuotaEntity

app = typer.Typer(help="Set, list and remove quotas of users, client ids and addresses.", no_args_is_help=True)

_BYTE_RATES = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE)
KEYS = (*NUMBERS_OF_CLIENTS, *NUMBERS_OF_ADDRESSES)

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
    _check_address(entity.ip)
    wanted = {key: _value(entity, key, text) for key, text in parse_pairs(quotas, "QUOTA=VALUE").items()}
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


def _check_address(ip: Name) -> None:
    """Refuse a name: brokers compare addresses, and do not look up names. (`list` and `remove` take what there is:
    Kafka keeps names, too.)
    """
    from ipaddress import ip_address

    if isinstance(ip, str):
        try:
            ip_address(ip)
        except ValueError:
            raise WrongUsage(
                f"--ip: {ip} is not an IP address; quotas do not look up host names",
                "give the address that the clients connect from, such as --ip 10.0.0.7",
            ) from None


def _value(entity: QuotaEntity, key: str, text: str) -> float:
    if key not in KEYS:
        raise typer.BadParameter(f"there is no quota {key}: they are {', '.join(KEYS)}")
    numbers = NUMBERS_OF_CLIENTS if entity.ip is None else NUMBERS_OF_ADDRESSES
    if key not in numbers:
        _refuse_key(entity, key)
    value = _number(key, text)
    if not isfinite(value):
        raise WrongUsage(f"{key} must be a finite number, not {text}", "`ottla quota remove` lifts a limit")
    if value <= 0:
        raise WrongUsage(f"{key} must be above 0, not {text}", "`ottla quota remove` lifts a limit")
    if numbers[key].is_too_large(value):
        raise WrongUsage(f"{key}: {text} is more than a quota can be", "`ottla quota remove` lifts a limit")
    if numbers[key].is_fractional(value):
        raise WrongUsage(f"{key} must be a whole number, not {text}", f"{key}={max(1, round(value))} for example")
    if key == REQUEST_PERCENTAGE:
        warn_of_idle_limit(value, print_warning)
    return value


def _refuse_key(entity: QuotaEntity, key: str) -> NoReturn:
    if entity.ip is None:
        raise WrongUsage(
            f"{key} is a quota of addresses, not of users and client ids",
            "--ip ADDRESS or --default-ip says whose it is",
        )
    raise WrongUsage(
        f"{key} is a quota of users and client ids; an address has {' and '.join(NUMBERS_OF_ADDRESSES)} only",
        "--user or --client-id says whose it is",
    )


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        if key not in _BYTE_RATES:
            raise typer.BadParameter(f"{text!r} is not a number", param_hint=key) from None
        from ottla.operations.formats import parse_rate

        return parse_rate(text)


def _shown(name: Name) -> str | None:
    return name if name is None or isinstance(name, str) else "(default)"


def _names(entity: QuotaEntity) -> dict[str, str | None]:
    """Names for JSON: null stands for the default, as in Kafka's requests."""
    return {kind: name if isinstance(name, str) else None for kind, name in entity.names()}
