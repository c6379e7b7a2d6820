"""`ottla share`: look at share groups and their places, move and delete them, take records from their queues."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from ottla.cli import group
from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json
from ottla.cli.records.consume import OutputFormat, formatter
from ottla.cli.terminal.outlet import stop_when_unread

app = typer.Typer(help="Look at share groups, take from their queues, move where they go on.", no_args_is_help=True)

# A share group is a group: the commands are the same, and find out by themselves what kind it is.
app.command("describe")(group.describe)
app.command("reset-offsets")(group.reset_offsets)
app.command("delete")(group.delete)
app.command("delete-offsets")(group.delete_offsets)


@app.command("list")
def list_groups(
    state: Annotated[list[str], typer.Option("--state", help="Only groups in this state; may be repeated.")] = [],  # noqa: B006
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List share groups."""
    group.list_groups(state, ["share"], lag=False, as_json=as_json, bootstrap=bootstrap)


@app.command()
def consume(
    topic: Annotated[str, typer.Argument(help="The topic.")],
    group: Annotated[str, typer.Option("--group", "-g", help="The share group.")],
    accept: Annotated[bool, typer.Option("--accept", help="They are dealt with (unless told otherwise).")] = False,
    release: Annotated[bool, typer.Option("--release", help="Only look: give all back at the end.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Nobody is to get them any more.")] = False,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="A group that is new begins at the first record.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on when nothing is left.")] = False,
    max_records: Annotated[int | None, typer.Option("--max", "-n", help="Stop after so many records.")] = None,
    fmt: Annotated[OutputFormat, typer.Option("--format", "-F", help="How to show records.")] = OutputFormat.text,
    pattern: Annotated[
        str | None, typer.Option("--template", "-t", help="'{partition} {offset} {key} {value}\\n'")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Take records from a share group's queue, print them, and acknowledge them.

    Ends when nothing has come for three seconds, unless it is to --follow.
    """
    from ottla.cli.records.group_reading import Reading, print_share

    if accept + release + reject > 1:
        raise typer.BadParameter("give only one of --accept, --release and --reject")
    stop_when_unread()
    acknowledgement = "release" if release else "reject" if reject else "accept"
    reading = Reading(bootstrap, topic, group, from_beginning, follow, max_records, formatter(fmt, pattern))
    try:
        asyncio.run(print_share(reading, acknowledgement))
    except KeyboardInterrupt:
        raise typer.Exit(0) from None  # the usual way to end --follow
