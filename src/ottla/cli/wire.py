"""`ottla wire`: show the byte layout of messages."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ottla.cli.options import Json
from ottla.operations.errors import CommandError

app = typer.Typer(help="Show the messages of Kafka's protocol.", no_args_is_help=True)


class Direction(StrEnum):
    """Request or response."""

    request = "request"
    response = "response"


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The API: Produce, list-offsets, ...")],
    version: Annotated[int | None, typer.Argument(help="Version of the message; the newest unless given.")] = None,
    direction: Annotated[Direction, typer.Argument(help="Request or response.")] = Direction.request,
) -> None:
    """Show the declaration, byte layout and generated codec of a message."""
    from ottla.cli.terminal.output import out
    from ottla.wire.show import show as describe

    try:
        text = describe(name, version, direction.value)
    except LookupError as error:
        raise CommandError(str(error), "`ottla wire list` shows all names") from None
    console = out()
    if console.is_terminal:
        from rich.syntax import Syntax

        console.print(Syntax(text, "python", background_color="default"))
    else:
        print(text)


@app.command("list")
def list_messages(as_json: Json = False) -> None:
    """List the APIs of the protocol, with their versions."""
    from ottla.cli.terminal.output import print_rows
    from ottla.wire.api import API_NAMES, request_class

    rows = []
    for key, name in sorted(API_NAMES.items()):
        message = request_class(key)
        low, high = message.versions
        flexible = f"{message.flexible.low}+" if message.flexible.low <= high and message.flexible.high >= 0 else "-"
        versions = str(low) if low == high else f"{low}-{high}"
        rows.append({"key": key, "api": name, "versions": versions, "flexible": flexible})
    print_rows(rows, ["key", "api", "versions", "flexible"], as_json=as_json, right=["key"])
