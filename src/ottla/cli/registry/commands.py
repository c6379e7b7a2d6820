"""`ottla registry`: a schema registry without a node, for any Kafka-compatible broker."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.nodes.addresses import host_and_port
from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, client_options, parse_duration_ms
from ottla.cli.terminal.plain import CommandError
from ottla.model.hosts import is_host

if TYPE_CHECKING:
    from ottla.registry.service import Service, ServiceOptions

DEFAULT_LISTEN = "127.0.0.1:8081"
_DEFAULT_FACTOR = -1  # the broker's default


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Nodes")(registry)


def _checked_factor(factor: int) -> int:
    if factor < 1 and factor != _DEFAULT_FACTOR:
        raise typer.BadParameter(f"{factor} is neither 1 or more nor {_DEFAULT_FACTOR}, the broker's default")
    return factor


def _checked_host(host: str | None) -> str | None:
    if host is not None and not is_host(host):
        raise typer.BadParameter(f"{host!r} is not the name of a host; --listen has the port")
    return host


def _checked_peers(urls: list[str] | None) -> list[str] | None:
    from ottla.client.registry_url import parse_registry_url

    for url in urls or ():
        try:
            parse_registry_url(url)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return urls


def registry(
    listen: Annotated[str, typer.Option("--listen", "-l", help="HOST:PORT; port 0 takes a free one.")] = DEFAULT_LISTEN,
    advertise: Annotated[
        str | None,
        typer.Option(
            "--advertise", help="Host name under which other registries reach this one.", callback=_checked_host
        ),
    ] = None,
    topic: Annotated[str, typer.Option("--topic", help="The topic that schemas are kept in.")] = "_schemas",
    replication_factor: Annotated[
        int,
        typer.Option(
            "--replication-factor",
            help="Replication factor of that topic when it is created; -1 is the broker's default.",
            callback=_checked_factor,
        ),
    ] = 3,
    group: Annotated[
        str, typer.Option("--group", help="The group in which registries elect their leader.")
    ] = "schema-registry",
    session_timeout: Annotated[
        str, typer.Option("--session-timeout", help="A registry that is silent for this long loses the lead.")
    ] = "6s",
    peer: Annotated[
        list[str] | None,
        typer.Option(
            "--peer",
            help="URL of a registry that may be sent changes although the topic does not name it; may be repeated.",
            callback=_checked_peers,
        ),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Start a schema registry and serve until Ctrl-C. Several registries of one cluster elect a leader.

    When it serves, it prints one line: `ready` and its URL.
    """
    from ottla.registry.leader import ElectionOptions
    from ottla.registry.service import ServiceOptions
    from ottla.registry.store import StoreOptions

    try:
        host, port = host_and_port(listen)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--listen") from None
    client_options(bootstrap)  # report a bad address before anything is started
    options = ServiceOptions(
        bootstrap,
        host,
        port,
        advertise,
        StoreOptions(topic, replication_factor, peers=tuple(each.rstrip("/") for each in peer or ())),
        ElectionOptions(group, parse_duration_ms(session_timeout, "--session-timeout")),
    )
    _serve(options)


def _serve(options: ServiceOptions) -> None:
    from ottla.observe import logs
    from ottla.registry.leader import ElectionRefused
    from ottla.registry.process import run
    from ottla.registry.topic import WrongTopic

    handler = logs.set_up(sys.stderr, level="INFO")
    try:
        run(options, _announce)
    except WrongTopic as wrong:
        raise CommandError(str(wrong), "--topic names another topic") from None
    except ElectionRefused:
        raise typer.Exit(1) from None
    except OSError as error:
        hint = "--listen HOST:PORT takes another address" if error.errno == errno.EADDRINUSE else None
        raise CommandError(error.strerror or str(error), hint) from None
    finally:
        logs.tear_down(handler)


def _announce(service: Service) -> None:
    print("ready", service.url, flush=True)
