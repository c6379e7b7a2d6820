"""`ottla registry`: a schema registry alone, for any Kafka-compatible broker."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, parse_duration_ms

if TYPE_CHECKING:
    from ottla.registry.service import Service

DEFAULT_LISTEN = "127.0.0.1:8081"
_DEFAULT_FACTOR = -1  # as the broker would choose


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Nodes")(registry)


def _checked_factor(factor: int) -> int:
    if factor < 1 and factor != _DEFAULT_FACTOR:
        raise typer.BadParameter(f"{factor} is neither 1 or more nor {_DEFAULT_FACTOR}, the broker's default")
    return factor


def registry(
    listen: Annotated[str, typer.Option("--listen", "-l", help="HOST:PORT; port 0 takes a free one.")] = DEFAULT_LISTEN,
    advertise: Annotated[
        str | None, typer.Option("--advertise", help="Host by which other registries reach it.")
    ] = None,
    topic: Annotated[str, typer.Option("--topic", help="Where schemas are kept.")] = "_schemas",
    replication_factor: Annotated[
        int,
        typer.Option("--replication-factor", help="Of that topic, when it is made.", callback=_checked_factor),
    ] = 3,
    group: Annotated[str, typer.Option("--group", help="The group that elects the leader.")] = "schema-registry",
    session_timeout: Annotated[str, typer.Option("--session-timeout", help="Silent so long, it is given up.")] = "6s",
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", help="URL of a registry that may be sent changes though the topic does not name it."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Start a schema registry and serve until Ctrl-C; several with one broker share the work.

    Prints one `ready` line with its URL when it has read its topic.
    """
    from ottla.cli.terminal.plain import CommandError
    from ottla.client.options import parse_bootstrap
    from ottla.observe import logs
    from ottla.registry.leader import ElectionOptions, ElectionRefused
    from ottla.registry.process import run
    from ottla.registry.service import ServiceOptions
    from ottla.registry.store import StoreOptions
    from ottla.registry.topic import WrongTopic

    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal():
        raise typer.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen")
    try:
        parse_bootstrap(bootstrap)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap") from None
    options = ServiceOptions(
        bootstrap,
        host or "127.0.0.1",
        int(port),
        advertise,
        StoreOptions(topic, replication_factor, peers=tuple(each.rstrip("/") for each in peer or ())),
        ElectionOptions(group, parse_duration_ms(session_timeout, "--session-timeout")),
    )
    handler = logs.set_up(sys.stderr, level="INFO")
    try:
        run(options, _announce)
    except WrongTopic as wrong:
        raise CommandError(str(wrong)) from None
    except ElectionRefused:
        raise typer.Exit(1) from None
    except OSError as error:
        hint = "--listen HOST:PORT takes another address" if error.errno == errno.EADDRINUSE else None
        raise CommandError(error.strerror or str(error), hint) from None
    finally:
        logs.tear_down(handler)


def _announce(service: Service) -> None:
    print("ready", service.url, flush=True)
