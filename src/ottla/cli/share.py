"""`ottla share`: describe share groups, reset their offsets, delete them, and consume records as a member."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from ottla.cli import group
from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Topic
from ottla.cli.records.consume import OutputFormat, Template, formatter
from ottla.cli.terminal.outlet import stop_when_unread

app = typer.Typer(
    help="Show share groups, consume their records, reset and delete their offsets.", no_args_is_help=True
)

# These commands are those of `ottla group`, which find out the type of a group themselves.
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
    topic: Topic,
    group: Annotated[str, typer.Option("--group", "-g", help="The share group.")],
    accept: Annotated[
        bool, typer.Option("--accept", help="Acknowledge the records as processed; this is the default.")
    ] = False,
    release: Annotated[
        bool, typer.Option("--release", help="Give all records back at the end, so that others get them.")
    ] = False,
    reject: Annotated[
        bool, typer.Option("--reject", help="Reject the records, so that nobody gets them again.")
    ] = False,
    from_beginning: Annotated[
        bool,
        typer.Option(
            "--from-beginning",
            help="Set the group's share.auto.offset.reset to earliest: a new group starts at the first record.",
        ),
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more records at the end.")] = False,
    max_records: Annotated[int | None, typer.Option("--max", "-n", min=0, help="Stop after this many records.")] = None,
    fmt: Annotated[OutputFormat, typer.Option("--format", "-F", help="How to show records.")] = OutputFormat.text,
    pattern: Template = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Consume records as a member of a share group, print them, and acknowledge them.

    The command ends when nothing has come for three seconds, except with --follow.
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
