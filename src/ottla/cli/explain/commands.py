"""`ottla group explain`, `ottla group lag`, `ottla topic hot`."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, Topic, not_empty, with_admin

if TYPE_CHECKING:
    from ottla.client.admin import Admin

_SECONDS_MAX = 3_600
_EVENTS_MAX = 200
_RECORDS_MAX = 1_000_000

GroupName = Annotated[str, typer.Argument(help="The group.", callback=not_empty("group"))]


def register(groups: typer.Typer, topics: typer.Typer) -> None:
    """Add the commands to `ottla group` and `ottla topic`."""
    groups.command("explain")(explain_group)
    groups.command("lag")(group_lag)
    topics.command("hot")(hot_topic)


def explain_group(
    group: GroupName,
    seconds: Annotated[
        float, typer.Option("--seconds", "-s", min=0.1, max=_SECONDS_MAX, help="Watch the group for this many seconds.")
    ] = 5.0,
    last: Annotated[
        int, typer.Option("--last", "-n", min=0, max=_EVENTS_MAX, help="Show this many of the last events.")
    ] = 20,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Say why a group is behind, and why it rebalanced, with the command or setting to change.

    The group is watched for some seconds, and for up to three times as long if its members seem to stand still: many
    commit only every five seconds. Only Ottla's brokers remember why a group rebalanced; for a group of a real
    Kafka, only the first part is shown.
    """
    from ottla.cli.explain.shown import group_json, show_group
    from ottla.cli.terminal.output import print_json
    from ottla.client.explain.gather import gather_group

    found = with_admin(bootstrap, lambda admin: gather_group(admin, group, seconds))
    if as_json:
        print_json(group_json(found, last))
    else:
        show_group(found, last)


def group_lag(
    group: GroupName,
    watch: Annotated[
        bool, typer.Option("--watch/--once", "-w", help="Show it again and again until Ctrl-C, or once.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.1, max=_SECONDS_MAX, help="Seconds between two looks.")
    ] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON for each look.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Show the lag of each partition in records and seconds, and how fast it is written and read."""
    from ottla.cli.explain.shown import LagScreen

    async def work(admin: Admin) -> None:
        from ottla.client.explain.gather import watch_group

        with LagScreen(as_json=as_json, live=watch) as screen:
            async with aclosing(watch_group(admin, group, interval)) as states:
                async for state in states:
                    screen.show(state)
                    if not watch:
                        return

    with suppress(KeyboardInterrupt, asyncio.CancelledError):
        with_admin(bootstrap, work)


def hot_topic(
    topic: Topic,
    seconds: Annotated[
        float, typer.Option("--seconds", "-s", min=0.1, max=_SECONDS_MAX, help="Measure rates for this many seconds.")
    ] = 5.0,
    records: Annotated[
        int,
        typer.Option(
            "--records", "-r", min=0, max=_RECORDS_MAX, help="Sample the keys of this many of the last records."
        ),
    ] = 10_000,
    keys: Annotated[int, typer.Option("--keys", "-k", min=0, max=1_000, help="Show this many keys.")] = 10,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Show how even a topic is: partitions by size and rate, its most frequent keys, and whether more partitions help.

    Rates are measured for some seconds; keys are counted in the last records of all partitions, in bounded memory.
    """
    from ottla.cli.explain.shown import heat_json, show_heat
    from ottla.cli.terminal.output import print_json
    from ottla.client.explain.hot import topic_heat

    heat = with_admin(bootstrap, lambda admin: topic_heat(admin, topic, seconds=seconds, records=records, keys=keys))
    if as_json:
        print_json(heat_json(heat))
    else:
        show_heat(heat)
