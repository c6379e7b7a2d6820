"""`ottla console`: the web pages of a cluster, served by this process until Ctrl-C."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.beside.services import CONSOLE_PORT, OFF
from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, LogFormatOption
from ottla.cli.records.payloads import RegistryUrl, registry_at
from ottla.operations.addresses import host_and_port
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.client.security.security import Security
    from ottla.console.options import ConsoleOptions
    from ottla.console.service import ConsoleService

DEFAULT_CONSOLE = f"127.0.0.1:{CONSOLE_PORT}"


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Nodes")(console)


def console(
    listen: Annotated[
        str, typer.Option("--listen", "-l", help="HOST:PORT of the pages; port 0 takes a free one.")
    ] = DEFAULT_CONSOLE,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    registry: RegistryUrl = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Show everything, change nothing.")] = False,
    as_me: Annotated[
        bool,
        typer.Option(
            "--as-me",
            help="Let everybody who reaches the pages act as the user of the profile, without signing in.",
        ),
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A host name under which browsers reach it; may be repeated.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="PEM file of a certificate: serve HTTPS.")
    ] = None,
    key: Annotated[Path | None, typer.Option("--key", help="PEM file of its key.")] = None,
    log_format: LogFormatOption = "plain",
    with_parent: Annotated[
        bool, typer.Option("--with-parent", hidden=True, help="End when standard input ends.")
    ] = False,
) -> None:
    """Serve web pages that show and steer a cluster: topics, records, groups, schemas, brokers, access.

    Where the cluster asks for a user and a password, so do the pages: each visitor has the rights of the user who
    signed in, and changes nothing else. It works with a real Kafka, too; what only Ottla tells is said on the pages.

    When it serves, it prints one line: `ready` and its URL. It serves also while no broker or registry answers: a
    warning says which of them cannot be reached.
    """
    try:
        options = _options(listen, bootstrap, registry, read_only, as_me, tuple(name or ()), certificate, key)
        _serve(options, log_format, with_parent=with_parent)
    except (OSError, CommandError) as error:
        failed = _failure(error, listen)
        if not with_parent:
            raise failed from None
        print("failed", failed, flush=True)
        raise typer.Exit(1) from None


def _failure(error: OSError | CommandError, listen: str) -> CommandError:
    if isinstance(error, CommandError):
        return error
    if error.errno == errno.EADDRINUSE:
        port = listen.rpartition(":")[2]
        return CommandError(f"port {port} is taken", "--listen HOST:PORT takes another address")
    return CommandError(error.strerror or str(error))


def _options(
    listen: str,
    bootstrap: str,
    registry: str | None,
    read_only: bool,
    as_me: bool,
    names: tuple[str, ...],
    certificate: Path | None,
    key: Path | None,
) -> ConsoleOptions:
    from ottla.cli.options import client_options
    from ottla.console.options import WITH_PASSWORD, ConsoleOptions

    try:
        host, port = host_and_port(listen)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--listen") from None
    if (certificate is None) != (key is None):
        raise typer.BadParameter("--certificate and --key belong together")
    if certificate is not None:
        _check_certificate(certificate, key)
    security = client_options(bootstrap).known_security
    mechanism = None if security is None or security.sasl is None else security.sasl.mechanism
    signs_in = mechanism in WITH_PASSWORD and not as_me
    if security is not None and not (signs_in or as_me) and _has_credentials(security):
        raise CommandError(
            "nobody can sign in with this profile's way to log in, so everybody would act as its user",
            "--as-me lets everybody who reaches the pages do so; a profile with SCRAM or PLAIN makes visitors sign in",
        )
    options = ConsoleOptions(
        bootstrap,
        host,
        port,
        security,
        None if registry == OFF else registry_at(registry, bootstrap).options,
        signs_in,
        read_only,
        names,
        None if certificate is None else str(certificate),
        None if key is None else str(key),
    )
    if not options.is_loopback and not signs_in:
        raise CommandError(
            f"{host} is reached from other machines, and nobody would have to sign in",
            "--listen 127.0.0.1:PORT serves this machine; with a profile that has a SASL user, visitors sign in",
        )
    return options


def _has_credentials(security: Security) -> bool:
    """Whether connections with this security are somebody's."""
    return security.sasl is not None or (security.tls is not None and security.tls.certificate is not None)


def _check_certificate(certificate: Path, key: Path | None) -> None:
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, lambda: "")
    except ssl.SSLError:
        raise CommandError(
            f"{certificate} and {key} are no certificate and its key in PEM, without a password",
            "`ottla tls issue` makes a file that holds both: give it twice",
        ) from None
    except OSError as error:
        raise CommandError(f"{certificate} or {key} cannot be read: {error.strerror}", "is the path right?") from None


def _serve(options: ConsoleOptions, log_format: str, *, with_parent: bool) -> None:
    import asyncio

    from ottla.cli.nodes.start import LOG_FORMATS
    from ottla.cli.terminal.plain import print_warning
    from ottla.console.process import run
    from ottla.observe import logs

    if options.signs_in and options.registry is not None and any(map(_is_in_clear, options.registry.urls)):
        print_warning("the schema registry gets the passwords of visitors unencrypted: give its https:// address")
    if not options.is_loopback and options.certificate is None:
        print_warning("passwords travel unencrypted: --certificate and --key serve HTTPS")
    handler = logs.set_up(sys.stderr, level="WARNING" if with_parent else "INFO", style=LOG_FORMATS[log_format])
    looks: list[asyncio.Task[None]] = []

    def announce(service: ConsoleService) -> None:
        print("ready", service.url, flush=True)
        if not with_parent:  # `ottla up` tells of its nodes and its registry itself
            looks.append(asyncio.get_running_loop().create_task(_tell_unreachable(options)))

    try:
        run(options, announce, with_parent=with_parent)
    finally:
        logs.tear_down(handler)


def _is_in_clear(url: str) -> bool:
    """Whether what is sent to this registry can be read on its way."""
    from urllib.parse import urlsplit

    from ottla.security.host import is_loopback

    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


async def _tell_unreachable(options: ConsoleOptions) -> None:
    from ottla.cli.terminal.plain import print_warning
    from ottla.console.reaching import unreachable

    for what, hint in await unreachable(options):
        print_warning(what, hint)
