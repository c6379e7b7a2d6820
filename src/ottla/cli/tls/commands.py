"""`ottla tls`: make a development authority and certificates, and look at certificates."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.options import Json
from ottla.cli.terminal.plain import print_warning
from ottla.model.hosts import is_host
from ottla.model.limits import AUTHORITY_DAYS, CERTIFICATE_DAYS

app = typer.Typer(help="Make certificates for development, and look at certificates.", no_args_is_help=True)

DEFAULT_DIRECTORY = Path("tls")
_DAYS_MAX = 36_500

Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Days = Annotated[int, typer.Option("--days", min=1, max=_DAYS_MAX, help="Days for which it is valid.")]


def _checked_hosts(hosts: list[str] | None) -> list[str] | None:
    for host in hosts or ():
        if ":" in host and not _is_address(host):
            raise typer.BadParameter(f"{host!r} is not the name or the address of a host: certificates have no port")
        if not host.isascii() or not is_host(host.removeprefix("*.")):
            raise typer.BadParameter(f"{host!r} is not the name or the address of a host")
        if host.rpartition(".")[2].isdecimal() and not _is_address(host):
            raise typer.BadParameter(f"{host!r} looks like an address, and is none")
    return hosts


def _is_address(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return bool(ip_address(host))
    except ValueError:
        return False


@app.command()
def init(
    directory: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Directory for the files.", show_default=True)
    ] = DEFAULT_DIRECTORY,
    name: Annotated[str, typer.Option("--name", help="Common name of the authority.")] = "Ottla development CA",
    days: Days = AUTHORITY_DAYS,
    force: Force = False,
) -> None:
    """Make a development authority (CA): `ca.pem`, which clients trust, and `ca.key`, which signs certificates.

    Whoever has `ca.key` can make certificates that your clients trust. Only you can read the file.
    """
    from ottla.cli.terminal.output import done
    from ottla.cli.tls.files import AUTHORITY_FILE, AUTHORITY_KEY, new_authority

    replaces = (directory / AUTHORITY_FILE).exists()
    path = new_authority(directory, name, timedelta(days=days), force=force)
    done(f"made {path} and {directory / AUTHORITY_KEY}")
    if replaces:
        print_warning(
            "clients of the new authority do not trust certificates of the former one: `ottla tls issue --force` makes "
            "each anew"
        )


@app.command()
def issue(
    name: Annotated[str, typer.Argument(help="Common name, and the name of the file NAME.pem.")],
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", help="Name or address of the server; may be repeated.", callback=_checked_hosts, metavar="HOST"
        ),
    ] = None,
    client: Annotated[
        bool, typer.Option("--client", help="For a client; with --host, for a server that is a client, too.")
    ] = False,
    directory: Annotated[
        Path, typer.Option("--dir", "-d", help="Directory of the authority, in which the certificate is written.")
    ] = DEFAULT_DIRECTORY,
    days: Days = CERTIFICATE_DAYS,
    force: Force = False,
) -> None:
    """Issue a certificate: `NAME.pem` holds the chain and the private key, as `ssl.keystore.location` takes it.

    Nodes of a cluster need `--host` and `--client`. The principal of a client is `User:CN=NAME`.
    """
    from ottla.cli.terminal.output import done
    from ottla.cli.tls.files import new_certificate

    if not host and not client:
        raise typer.BadParameter("give --host HOST for a server, or --client for a client")
    valid_for = timedelta(days=days)
    path = new_certificate(directory, name, host or [], client=client, valid_for=valid_for, force=force)
    done(f"made {path}")


@app.command()
def show(
    place: Annotated[str, typer.Argument(metavar="FILE|HOST:PORT", help="PEM file, or address of a TLS listener.")],
    as_json: Json = False,
) -> None:
    """Show the certificates in a file, or the one that a listener shows: names, issuer, time, key."""
    from datetime import UTC, datetime

    from ottla.cli.terminal.output import print_json, print_table
    from ottla.operations.security.certificates import certificates_at

    now = datetime.now(UTC)
    rows = [
        {
            "subject": each.subject,
            "issuer": each.issuer,
            "hosts": list(each.hosts),
            "for": "authority" if each.is_authority else ",".join(each.uses) or "anything",
            "key": each.key,
            "valid from": each.begins.isoformat(),
            "valid until": each.ends.isoformat(),
            "days left": each.days_left(now),
            "problem": each.problem(now),
        }
        for each in certificates_at(place)
    ]
    if as_json:
        print_json([{name.replace(" ", "_"): value for name, value in row.items()} for row in rows])
        return
    lines = [(name, value) for row in rows for name, value in row.items() if value or name == "days left"]
    print_table(["certificate", "value"], lines)
