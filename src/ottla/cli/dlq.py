"""`ottla dlq`: list dead letters, and send them back to the topics they came from."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, client_options, one_of, wrong_values
from ottla.operations.dead_letters import (
    PREFIX,
    REASONS,
    ChosenLetters,
    Selection,
    letter_row,
    places_of,
    select_letters,
)

if TYPE_CHECKING:
    pass

app = typer.Typer(
    help="Dead letters: records that a share group, a contract or a Spark reader could not take.", no_args_is_help=True
)

_COLUMNS = ("letter", "topic", "partition", "offset", "group", "deliveries", "reason", "time", "key", "value")

Topic = Annotated[str, typer.Argument(help="The dead-letter topic.")]
Group = Annotated[str | None, typer.Option("--group", "-g", help="Only letters that this share group wrote.")]
Origin = Annotated[str | None, typer.Option("--from", help="Only letters that come from this topic.")]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        help="Only letters of this reason: rejected or delivery-limit (share groups), schema (contracts of topics), "
        "decoding (typed columns of Spark).",
        callback=one_of(*REASONS),
    ),
]
Letters = Annotated[
    list[str],
    typer.Option(
        "--letter", "-l", help="Only this letter: PARTITION:OFFSET in the dead-letter topic; may be repeated."
    ),
]
Max = Annotated[int, typer.Option("--max", "-n", min=1, help="At most this many letters.")]


@app.command("list")
def list_letters(
    topic: Topic,
    group: Group = None,
    origin: Origin = None,
    reason: Reason = None,
    letter: Letters = [],  # noqa: B006
    max_letters: Max = 1_000,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List dead letters: where each comes from, and why it could not be taken."""
    from ottla.cli.terminal.output import note, print_rows

    with wrong_values("--letter"):
        wanted = Selection(group, origin, reason, places_of(letter), max_letters)
    chosen = asyncio.run(_list(bootstrap, topic, wanted))
    right = ("partition", "offset", "deliveries")
    print_rows([letter_row(each, short=not as_json) for each in chosen.letters], _COLUMNS, as_json=as_json, right=right)
    if chosen.others:
        note(f"{chosen.others} of the records of {topic} are not dead letters: they have no headers {PREFIX}*")
    if chosen.is_cut:
        note(f"there are more than {max_letters}: --max shows more")


@app.command()
def redrive(
    topic: Topic,
    group: Group = None,
    origin: Origin = None,
    reason: Reason = None,
    letter: Letters = [],  # noqa: B006
    everything: Annotated[bool, typer.Option("--all", help="All letters that are there now.")] = False,
    max_letters: Max = 1_000,
    to: Annotated[
        str | None, typer.Option("--to", help="Send them to this topic instead of the one they come from.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many would be sent.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Send dead letters back to where they came from: same topic, partition and key, without the headers of a letter.

    Exactly the selected letters are sent, and none that arrive meanwhile. They also stay in the dead-letter topic. A
    record that was sent has a header ottla.dlq.redriven-from that names its letter.
    """
    from ottla.cli.terminal.output import done, note

    if not (everything or group or origin or reason or letter):
        raise typer.BadParameter("say which letters: --letter, --group, --from, --reason or --all")
    with wrong_values("--letter"):
        wanted = Selection(group, origin, reason, places_of(letter), max_letters)
    count, left = asyncio.run(_redrive(bootstrap, topic, wanted, to, dry_run=dry_run))
    if dry_run:
        note(f"{count} would be sent")
    else:
        done(f"{count} {'letter' if count == 1 else 'letters'} sent")
    if left:
        note(f"there are more than {max_letters}: a larger --max sends them, too")


async def _list(bootstrap: str, topic: str, wanted: Selection) -> ChosenLetters:
    from ottla.client.cluster import Cluster

    async with Cluster(client_options(bootstrap)) as cluster:
        return await select_letters(cluster, topic, wanted)


async def _redrive(bootstrap: str, topic: str, wanted: Selection, to: str | None, *, dry_run: bool) -> tuple[int, bool]:
    from ottla.client.cluster import Cluster
    from ottla.operations.redriving import redrive_letters

    async with Cluster(client_options(bootstrap)) as cluster:
        return await redrive_letters(cluster, topic, wanted, to, dry_run=dry_run)
