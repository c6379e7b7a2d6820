"""`ottla registry`: a schema registry without a node, for any Kafka-compatible broker."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, LogFormatOption, client_options, parse_duration_ms
from ottla.cli.registry.settings import read_registry_settings
from ottla.model.hosts import is_host
from ottla.operations.addresses import host_and_port
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.registry.security.settings import RegistrySettings
    from ottla.registry.service import Service, ServiceOptions

DEFAULT_LISTEN = "127.0.0.1:8081"
_LOGIN = "the settings kafkastore.* of --config say who the registry is and whom it trusts (docs/schemas.md)"
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
    context: typer.Context,
    listen: Annotated[
        str, typer.Option("--listen", "-l", help="HOST:PORT, or https://HOST:PORT; port 0 takes a free one.")
    ] = DEFAULT_LISTEN,
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
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="File of the registry's settings (properties); options count first."),
    ] = None,
    log_format: LogFormatOption = "plain",
) -> None:
    """Start a schema registry and serve until Ctrl-C. Several registries of one cluster elect a leader.

    When it serves, it prints one line: `ready` and its URL.
    """
    try:
        host_and_port(listen)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--listen") from None
    options = {
        "listen": ("listeners", listen),
        "advertise": ("host.name", advertise),
        "topic": ("kafkastore.topic", topic),
        "replication_factor": ("kafkastore.topic.replication.factor", str(replication_factor)),
        "group": ("schema.registry.group.id", group),
        "bootstrap": ("kafkastore.bootstrap.servers", bootstrap),
    }
    peers = tuple(each.rstrip("/") for each in peer or ())
    session_timeout_ms = parse_duration_ms(session_timeout, "--session-timeout")
    _serve(_options(read_registry_settings(context, config, options), peers, session_timeout_ms), log_format)


def _options(settings: RegistrySettings, peers: tuple[str, ...], session_timeout_ms: int) -> ServiceOptions:
    from ottla.client.options import ClientOptions, parse_bootstrap
    from ottla.model.settings import registry as names
    from ottla.registry.leader import ElectionOptions
    from ottla.registry.security.settings import InvalidRegistrySettings, listener_of
    from ottla.registry.service import ServiceOptions
    from ottla.registry.store import StoreOptions

    config = settings.config
    bootstrap = config[names.KAFKASTORE_BOOTSTRAP_SERVERS] or DEFAULT_BOOTSTRAP
    security = client_options(bootstrap).security  # report a bad address before anything is started
    try:
        listener = listener_of(config)
        if settings.store:
            security = ClientOptions(parse_bootstrap(bootstrap), security=settings.store).security
    except InvalidRegistrySettings as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        raise CommandError(f"kafkastore.*: {error}") from None
    return ServiceOptions(
        bootstrap,
        listener.host,
        listener.port,
        config[names.HOST_NAME],
        StoreOptions(config[names.KAFKASTORE_TOPIC], config[names.KAFKASTORE_TOPIC_REPLICATION_FACTOR], peers=peers),
        ElectionOptions(config[names.SCHEMA_REGISTRY_GROUP_ID], session_timeout_ms),
        security,
        listener.scheme,
        config,
    )


def _serve(options: ServiceOptions, log_format: str) -> None:
    from ottla.cli.nodes.start import LOG_FORMATS
    from ottla.client.errors import AuthenticationError
    from ottla.model.errors import ApiError
    from ottla.observe import logs
    from ottla.registry.leader import ElectionRefused
    from ottla.registry.process import run
    from ottla.registry.security.settings import InvalidRegistrySettings
    from ottla.registry.topic import WrongTopic

    handler = logs.set_up(sys.stderr, level="INFO", style=LOG_FORMATS[log_format])
    try:
        run(options, _announce)
    except WrongTopic as wrong:
        raise CommandError(str(wrong), "--topic names another topic") from None
    except InvalidRegistrySettings as invalid:
        raise CommandError(str(invalid)) from None
    except ApiError as invalid:
        raise CommandError(invalid.text) from None
    except AuthenticationError as refused:
        raise CommandError(f"the cluster refuses the registry's user: {refused}", _LOGIN) from None
    except ElectionRefused:
        raise typer.Exit(1) from None
    except OSError as error:
        hint = "--listen HOST:PORT takes another address" if error.errno == errno.EADDRINUSE else None
        raise CommandError(error.strerror or str(error), hint) from None
    finally:
        logs.tear_down(handler)


def _announce(service: Service) -> None:
    print("ready", service.url, flush=True)
