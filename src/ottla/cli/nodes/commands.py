"""`ottla up` and `ottla start`: nodes in the foreground."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import LogFormatOption, not_empty
from ottla.model.limits import LOCAL_NODES_MAX
from ottla.operations.addresses import DEFAULT_HOST, host_and_port, metrics_url
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ottla.cli.beside.services import RunningServices, Services
    from ottla.cli.nodes.start import LogFormat
    from ottla.model.ids import TopicPartition
    from ottla.server.node import Node

DEFAULT_LISTEN = "127.0.0.1:9092"
DEFAULT_DATA = Path("ottla-data")
_SERVICES_DELAY_S = 0.2

Listen = Annotated[
    str | None,
    typer.Option(
        "--listen",
        "-l",
        help=f"Address for clients, HOST:PORT; port 0 takes a free one. Default: {DEFAULT_LISTEN}. "
        "A cluster that exists listens where its property files say.",
    ),
]
RegistryAt = Annotated[
    str | None,
    typer.Option(
        "--registry",
        "-r",
        help="Address of the schema registry, HOST:PORT, or `off`. Default: port 8081 of the node's host.",
    ),
]
ConsoleAt = Annotated[
    str | None,
    typer.Option("--console", help="Address of the console's web pages, HOST:PORT, or `off`. Default: 127.0.0.1:8090."),
]
Controllers = Annotated[
    int | None,
    typer.Option(
        "--controllers",
        min=1,
        max=LOCAL_NODES_MAX,
        help="Number of dedicated controllers; without it, the brokers are controllers, too.",
    ),
]
Secure = Annotated[
    bool,
    typer.Option(
        "--secure", help="Make a cluster without a plaintext port: certificates, a user `admin`, access control."
    ),
]
SaveProfile = Annotated[
    str | None,
    typer.Option(
        "--save-profile",
        metavar="NAME",
        callback=not_empty("profile"),
        help="With --secure: add a profile of this name to ~/.config/ottla/profiles.toml.",
    ),
]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Nodes")(up)
    app.command(rich_help_panel="Nodes")(start)


def up(
    listen: Listen = None,
    data: Annotated[Path, typer.Option("--data", "-d", help="Data directory.")] = DEFAULT_DATA,
    ephemeral: Annotated[
        bool, typer.Option("--ephemeral", "-e", help="Keep data in a temporary directory, deleted at the end.")
    ] = False,
    settings: Annotated[
        list[str], typer.Option("--set", "-s", help="A setting of server.properties, NAME=VALUE; may be repeated.")
    ] = [],  # noqa: B006
    registry: RegistryAt = None,
    console: ConsoleAt = None,
    brokers: Annotated[
        int | None,
        typer.Option(
            "--brokers",
            "-n",
            min=1,
            max=LOCAL_NODES_MAX,
            help="Start a replicated cluster of this many brokers, on ports from PORT on.",
        ),
    ] = None,
    controllers: Controllers = None,
    secure: Secure = False,
    save_profile: SaveProfile = None,
    log_format: LogFormatOption = "plain",
) -> None:
    """Start a node with a schema registry and a console (web pages) beside it, and serve until Ctrl-C.

    `--brokers 3` starts a replicated cluster, each node in its own process. The property files of its nodes are kept in
    the data directory: the same command starts the same cluster again, and `ottla start FILE` starts one node of it.

    `--secure` encrypts and authenticates everything, also between nodes. Certificates, the password of `admin` and
    settings for clients are made once, and kept in the folder `secure` of the data directory. The registry serves
    HTTPS to the same users, with the same rights; it listens on loopback unless `--registry` says otherwise. The same
    goes for the console, where these users sign in.

    `group.initial.rebalance.delay.ms` is 0 unless set, so that a new group does not wait for more members.
    """
    from ottla.cli.beside.services import services_at
    from ottla.cli.nodes.start import LOG_FORMATS, sets_data

    style = LOG_FORMATS[log_format]
    host, port = _place(DEFAULT_LISTEN if listen is None else listen)
    beside = services_at(registry, console, (DEFAULT_HOST if secure else host, port), _place, style)
    if save_profile is not None and not secure:
        raise typer.BadParameter("--save-profile needs --secure")
    security = secure, save_profile
    if ephemeral and data != DEFAULT_DATA:
        raise typer.BadParameter("--ephemeral keeps nothing, --data says where: give one of them")
    if sets_data(settings):
        raise typer.BadParameter("--data says where the data is, not --set log.dirs=...")
    if ephemeral:
        with tempfile.TemporaryDirectory(prefix="ottla-") as directory:
            where = "a temporary directory, deleted at the end"
            code = _up_any(listen, Path(directory), settings, where, beside, brokers, controllers, security, style)
    else:
        code = _up_any(listen, data, settings, str(data.absolute()), beside, brokers, controllers, security, style)
    raise typer.Exit(code)


def _up_any(
    listen: str | None,
    data: Path,
    settings: list[str],
    where: str,
    beside: Services,
    brokers: int | None,
    controllers: int | None,
    security: tuple[bool, str | None],
    log_format: LogFormat,
) -> int:
    from ottla.cli.nodes.intact import check_files

    secure, profile = security
    check_files(data)
    is_cluster = secure or any(data.glob("node-*.properties"))
    if brokers in (None, 1) and controllers is None and not is_cluster:
        return _up(DEFAULT_LISTEN if listen is None else listen, data, settings, where, beside, log_format)
    from ottla.cli.nodes.up_cluster import UpCluster, not_secure

    if (data / "meta.properties").exists():
        if secure:
            raise not_secure(data, "the data of a node")
        raise CommandError(f"{data} holds the data of a single node", "--data DIR names another directory")
    place = _place(DEFAULT_LISTEN if listen is None else listen)
    cluster = UpCluster(
        data,
        brokers,
        controllers,
        place,
        settings,
        where,
        beside,
        secure=secure,
        profile=profile,
        log_format=log_format,
    )
    if listen is not None:
        cluster.check_listen(listen)
    return cluster.run()


def _place(text: str) -> tuple[str, int]:
    try:
        return host_and_port(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _up(listen: str, data: Path, settings: list[str], where: str, beside: Services, log_format: LogFormat) -> int:
    import asyncio

    from ottla.cli.nodes.local_cluster import LAPTOP_SETTINGS, metrics_on
    from ottla.cli.nodes.start import StartOptions, UsageError, node_values, serve
    from ottla.cli.terminal.output import literal, out

    try:
        values = (
            LAPTOP_SETTINGS
            | metrics_on()
            | node_values(StartOptions(data=str(data), listen=listen, settings=tuple(settings)))
        )
    except UsageError as error:
        raise typer.BadParameter(str(error)) from None

    def ready(node: Node) -> None:
        address = f"{node.addresses[0][0]}:{node.addresses[0][1]}"
        console = out()
        console.print(f"[bold green]Ottla is up[/bold green] at [bold cyan]{literal(address)}[/bold cyan]")
        console.print(f"[dim]data in {literal(where)}[/dim]")
        if node.metrics_place is not None:
            console.print(f"[dim]metrics at {literal(metrics_url(*node.metrics_place))}[/dim]")
        suffix = "" if address == DEFAULT_LISTEN else f" -b {address}"
        for command in (f"ottla produce hello 'first record'{suffix}", f"ottla consume hello --from-beginning{suffix}"):
            console.print(f"  [dim]try[/dim] {literal(command)}")
        console.print("[dim]Ctrl-C stops it[/dim]")

    running: RunningServices | None = None
    with RecoveryBar() as recovery:

        def up_and_ready(node: Node) -> None:
            recovery.stop()
            ready(node)
            # After a delay, so that clients that waited for the node need not share the processor with the start of
            # the registry.
            asyncio.get_running_loop().call_later(_SERVICES_DELAY_S, start_services, node)

        def start_services(node: Node) -> None:
            nonlocal running
            running = _start_services(node, beside)

        try:
            code = serve(values, up_and_ready, recovery.advance, log_level="WARNING", log_format=log_format)
        finally:
            if running is not None:
                running.stop()
    if code == 0:
        out().print("[dim]stopped cleanly[/dim]")
    return code


def _start_services(node: Node, beside: Services) -> RunningServices:
    """Start the registry and the console, and have them stopped as soon as the node is asked to stop."""
    import asyncio
    import signal

    running = beside.start(f"{node.addresses[0][0]}:{node.addresses[0][1]}")

    def stop() -> None:
        running.ask_to_stop()
        node.request_stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    return running


class RecoveryBar:
    """Shows the progress of the scan after an unclean stop, which all scanning threads report; nothing is shown without
    a scan or without a terminal.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bar: Progress | None = None
        self._tasks: dict[TopicPartition, TaskID] = {}

    def __enter__(self) -> RecoveryBar:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def advance(self, partition: TopicPartition, done_bytes: int, total_bytes: int) -> None:
        with self._lock:
            if partition not in self._tasks and done_bytes >= total_bytes:
                return  # an empty log, or one that was read at once
            if self._bar is None:
                from rich.progress import Progress

                from ottla.cli.terminal.output import err

                self._bar = Progress(console=err(), transient=True, disable=not err().is_terminal)
                self._bar.start()
            task = self._tasks.get(partition)
            if task is None:
                task = self._tasks[partition] = self._bar.add_task(f"recovering {partition}", total=total_bytes)
            self._bar.update(task, completed=done_bytes, visible=done_bytes < total_bytes)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def start(
    file: Annotated[Path | None, typer.Argument(help="Kafka's server.properties.", show_default=False)] = None,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="The same file, given as an option.")] = None,
    data: Annotated[Path | None, typer.Option("--data", "-d", help="Data directory (log.dirs).")] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", "-l", help="Address for clients, HOST:PORT (listeners).")
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", help="A setting, NAME=VALUE; overrides the file; may be repeated.")
    ] = [],  # noqa: B006
    log_level: Annotated[str, typer.Option("--log-level", help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
    log_format: LogFormatOption = "plain",
    until_eof: Annotated[bool, typer.Option("--until-eof", help="Also stop when standard input ends.")] = False,
) -> None:
    """Start a node from a server.properties file or from options.

    When it serves, it prints one line: `ready` and its addresses. SIGTERM and SIGINT stop it cleanly.
    """
    from ottla.cli.nodes.start import main

    words = [str(file)] if file else []
    options = {"--config": config, "--data": data, "--listen": listen, "--log-level": log_level}
    for name, value in (options | {"--log-format": log_format}).items():
        words += [name, str(value)] if value is not None else []
    words += [word for each in settings for word in ("--set", each)]
    raise typer.Exit(main([*words, *(["--until-eof"] if until_eof else [])]))
