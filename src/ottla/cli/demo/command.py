"""`ottla demo`: what `make run` shows. A node, a topic, records in, records out, and a look at the bytes they became.

Rules:
- Everything it claims it has checked; the exit code is 0 only when all checks held.
- At a terminal the node goes on serving after the demo until Ctrl-C; elsewhere (or with ONCE=1) it stops.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.server import DEFAULT_LISTEN

if TYPE_CHECKING:
    from ottla.server.node import Node


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Nodes")(demo)


def demo(
    data: Annotated[Path | None, typer.Option("--data", "-d", help="Keep the log here (else temporary).")] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", "-l", help="HOST:PORT; else 127.0.0.1:9092, or a free port.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", envvar="ONCE", help="Stop the node after the demo.")] = False,
) -> None:
    """Start a node, write, read, look at the log; then keep serving."""
    from ottla.server.node import loop_factory

    stay = sys.stdout.isatty() and not once
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        if data is not None:
            runner.run(_demo(data, listen, stay))
        else:
            with tempfile.TemporaryDirectory(prefix="ottla-demo-") as directory:
                runner.run(_demo(Path(directory), listen, stay))


async def _demo(data: Path, listen: str | None, stay: bool) -> None:
    from ottla.cli import demo_steps
    from ottla.cli.output import out

    loop = asyncio.get_running_loop()
    started_s = loop.time()
    node = await _start(data, listen)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        host, port = node.addresses[0]
        show = asyncio.create_task(
            demo_steps.run(f"{host}:{port}", data, started_in_ms=(loop.time() - started_s) * 1000)
        )
        interrupted = asyncio.create_task(stop.wait())
        await asyncio.wait([show, interrupted], return_when=asyncio.FIRST_COMPLETED)
        if not show.done():
            show.cancel()
            raise typer.Exit(130)
        show.result()
        if stay:
            out().print(f"\nThe node goes on serving at [bold cyan]{host}:{port}[/bold cyan]; Ctrl-C stops it.")
            await interrupted
    finally:
        await node.stop()


async def _start(data: Path, listen: str | None) -> Node:
    """The embedded node at the usual address, or at a free port when that one is taken."""
    from ottla.cli.start import StartOptions, node_values
    from ottla.server.node import Node, system_ports

    listen = listen or (DEFAULT_LISTEN if _is_free(DEFAULT_LISTEN) else "127.0.0.1:0")
    node = Node(node_values(StartOptions(data=str(data), listen=listen)), system_ports())
    await node.start()
    return node


def _is_free(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_server((host, int(port))):
            return True
    except OSError:
        return False
