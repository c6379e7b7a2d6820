"""`ottla demo`, which `make run` runs: a shop, a node, a registry, a console and a Spark pipeline, which is killed once
on the way.

Rules:
- The demo checks everything that it prints; the exit code is 0 only if all checks succeeded.
- At a terminal the node, the registry and the console go on serving after the demo until Ctrl-C; elsewhere (or with
  ONCE=1) they stop.
"""

from __future__ import annotations

import socket
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ottla.cli.console import DEFAULT_CONSOLE
from ottla.cli.nodes.commands import DEFAULT_LISTEN
from ottla.cli.registry.commands import DEFAULT_LISTEN as DEFAULT_REGISTRY
from ottla.operations.addresses import host_and_port


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Nodes")(demo)


def demo(
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="Directory for everything; temporary unless given.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", "-l", help="HOST:PORT of the node; 127.0.0.1:9092 or a free port unless given."),
    ] = None,
    registry: Annotated[
        str | None,
        typer.Option(
            "--registry", help="HOST:PORT of the schema registry; 127.0.0.1:8081 or a free port unless given."
        ),
    ] = None,
    console: Annotated[
        str | None,
        typer.Option("--console", help="HOST:PORT of the console; 127.0.0.1:8090 or a free port unless given."),
    ] = None,
    orders: Annotated[int, typer.Option("--orders", help="Number of orders that the shop gets.", min=1_000)] = 20_000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random shop.")] = 1,
    once: Annotated[
        bool,
        typer.Option(
            "--once", envvar="ONCE", help="Stop the node, the registry and the console when the demo is over."
        ),
    ] = False,
) -> None:
    """Run a shop whose orders a Spark pipeline processes, kill the pipeline once, and check every total."""
    for given in (listen, registry, console):
        if given is not None:
            _check_address(given)
    _need_spark()
    from ottla.cli.demo.running import Demo, DemoPlaces
    from ottla.cli.terminal.safe_files import make_directory

    stay = sys.stdout.isatty() and not once
    usual = ((listen, DEFAULT_LISTEN), (registry, DEFAULT_REGISTRY), (console, DEFAULT_CONSOLE))
    places = DemoPlaces(*(_free_or(given, default) for given, default in usual))
    if data is not None:
        make_directory(data)
        Demo(data, places, orders, seed).run(stay)
    else:
        with tempfile.TemporaryDirectory(prefix="ottla-demo-") as directory:
            Demo(Path(directory), places, orders, seed).run(stay)


def _check_address(text: str) -> None:
    try:
        host_and_port(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _need_spark() -> None:
    """Raise an error that says what is missing, before anything is started."""
    from ottla.operations.errors import CommandError

    try:
        import pyspark  # noqa: F401

        from ottla.spark.runtime.java import NoJava, prepare_java
    except ImportError as error:
        from ottla.observe.installing import install_command

        hint = f"{install_command('spark')} brings it; `ottla up` starts a node without it"
        raise CommandError(f"the demo needs Spark ({error})", hint) from None
    try:
        prepare_java()
    except NoJava as missing:
        raise CommandError(str(missing)) from None


def _free_or(given: str | None, usual: str) -> str:
    """The given address; otherwise the usual address, or a free port if that one is taken."""
    if given is not None:
        return given
    host, _, port = usual.rpartition(":")
    try:
        with socket.create_server((host, int(port))):
            return usual
    except OSError:
        return f"{host}:0"
