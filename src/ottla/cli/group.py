"""`ottla group`: list, describe with lag in records and seconds, reset offsets, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Json,
    parse_duration_ms,
    parse_timestamp_ms,
    with_admin,
    wrong_values,
)
from ottla.operations.errors import CommandError
from ottla.operations.groups import check_empty, described_group, is_share_group

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.client.admin import Admin
    from ottla.client.admin.groups import GroupListing, PartitionLag
    from ottla.client.outcomes import Outcomes
    from ottla.model.ids import TopicPartition

app = typer.Typer(help="Show groups and their lag, reset and delete their offsets.", no_args_is_help=True)

_TYPES = ("classic", "consumer", "share", "streams")
_STATES = (
    "Empty",
    "Stable",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
)

Group = Annotated[str, typer.Argument(help="The group.")]
ToTime = Annotated[str | None, typer.Option("--to-time", help="To the first record since this time.")]
Back = Annotated[str | None, typer.Option("--back", help="To the first record since this long ago: 2h, 30m.")]
Shift = Annotated[int | None, typer.Option("--shift", help="Forward by this number of records (back, if negative).")]
Execute = Annotated[bool, typer.Option("--execute", help="Carry it out; without this option it is only shown.")]


@app.command("list")
def list_groups(
    state: Annotated[list[str], typer.Option("--state", help="Only groups in this state; may be repeated.")] = [],  # noqa: B006
    kind: Annotated[
        list[str],
        typer.Option("--type", help="Only groups of this type: classic, consumer, share or streams; may be repeated."),
    ] = [],  # noqa: B006
    lag: Annotated[
        bool, typer.Option("--lag", help="Show the lag of each group; this takes a moment per group.")
    ] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List groups."""
    from ottla.cli.terminal.each import end_with
    from ottla.cli.terminal.output import print_rows

    for option, words, known in (("--type", kind, _TYPES), ("--state", state, _STATES)):
        strange = [each for each in words if each.lower() not in (every.lower() for every in known)]
        if strange:
            raise typer.BadParameter(f"{strange[0]!r} is none of {', '.join(known)}", param_hint=option)

    async def work(admin: Admin) -> tuple[list[dict[str, Any]], Outcomes[int, list[GroupListing]]]:
        listed = await admin.groups.all_each(state, kind)
        groups = {each.group_id: each for found in listed.found.values() for each in found}
        rows: list[dict[str, Any]] = [
            {"group": each.group_id, "type": each.kind, "state": each.state, "protocol": each.protocol_type}
            for _, each in sorted(groups.items())
        ]
        for row in rows if lag else ():
            if row["type"] == "share":
                behind = [each.lag for each in (await admin.shares.places_each(row["group"])).found.values()]
                row.update(lag=_sum(behind), lag_seconds=None)  # brokers tell no times of share groups
            else:
                row.update(_total((await admin.groups.lag_each(row["group"])).found.values()))
        return rows, listed

    columns = ["group", "type", "state", "protocol", *(["lag", "lag_seconds"] if lag else [])]
    rows, listed = with_admin(bootstrap, work)
    print_rows(rows, columns, as_json=as_json, right=["lag", "lag_seconds"])
    end_with(listed, "broker", " (the groups that it coordinates are missing)")


def _sum(lags: Iterable[int | None]) -> int | None:
    """The sum of what is known; None if something was asked for and nothing is known."""
    asked = list(lags)
    known = [each for each in asked if each is not None]
    return sum(known) if known or not asked else None


def _total(lags: Iterable[PartitionLag]) -> dict[str, Any]:
    """The sum of the lag in records, and the longest lag in seconds."""
    lags = list(lags)
    seconds = [each.seconds for each in lags if each.seconds is not None]
    return {
        "lag": _sum(each.records for each in lags),
        "lag_seconds": round(max(seconds), 3) if seconds else None,
    }


@app.command()
def describe(group: Group, as_json: Json = False, bootstrap: Bootstrap = DEFAULT_BOOTSTRAP) -> None:
    """Show members, offsets and lag of a group.

    In a share group, all records before `start` are finished; its lag counts the unfinished ones from there on.
    """
    from ottla.cli.terminal.output import literal, out, print_json, print_table

    found = with_admin(bootstrap, lambda admin: described_group(admin, group))
    if as_json:
        print_json(found)
        return
    epoch = "" if found["epoch"] is None else f"  epoch {found['epoch']}"
    console = out()
    console.print(f"[bold]{literal(group)}[/bold]  {found['type']}  {found['state']}{epoch}", highlight=False)
    if found["members"]:
        columns = ["member", "instance", "client", "host", "partitions"]
        print_table(columns, [[each[name] for name in columns] for each in found["members"]])
    if found["partitions"]:
        columns = list(found["partitions"][0])
        rows = [[each[name] for name in columns] for each in found["partitions"]]
        print_table(columns, rows, right=columns[1:-1])


@app.command("reset-offsets")
def reset_offsets(
    group: Group,
    topic: Annotated[list[str], typer.Option("--topic", "-t", help="TOPIC or TOPIC:PARTITION; may be repeated.")] = [],  # noqa: B006
    to: Annotated[str | None, typer.Option("--to", help="To earliest, latest, or an offset.")] = None,
    to_time: ToTime = None,
    back: Back = None,
    shift: Shift = None,
    execute: Execute = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Change the offsets of a group without members. Without --execute the change is only shown."""
    from ottla.cli.terminal.each import end_with
    from ottla.cli.terminal.output import done, note, print_rows
    from ottla.cli.terminal.plain import print_warning
    from ottla.client.outcomes import Outcomes
    from ottla.operations.offset_resets import OffsetMove, Target, new_offsets

    chosen = [option for option in (to, to_time, back, shift) if option is not None]
    if len(chosen) != 1:
        raise typer.BadParameter("say where to: one of --to, --to-time, --back and --shift")
    time_ms = None if to_time is None else parse_timestamp_ms(to_time, "--to-time")
    back_ms = None if back is None else parse_duration_ms(back, "--back")
    with wrong_values():
        target = Target.of(to, time_ms, back_ms, shift)

    async def work(admin: Admin) -> tuple[list[OffsetMove], Outcomes[TopicPartition, Any]]:
        share = await is_share_group(admin, group)
        rows = await new_offsets(admin, group, topic, target, share=share)
        if not rows:
            raise CommandError(f"group {group} has no offsets to reset", "name topics with --topic")
        stored: Outcomes[TopicPartition, Any] = Outcomes()
        if execute:
            await check_empty(admin, group)
            offsets = {row.partition: row.new for row in rows}
            stored = await (admin.shares.move_each if share else admin.groups.set_offsets_each)(group, offsets)
        for row in rows:
            if row.new != row.wanted:
                edge = "ends" if row.wanted > row.new else "begins"
                print_warning(f"{row.partition} {edge} at {row.new}: there is no offset {row.wanted}")
        return [row for row in rows if row.partition not in stored.failed], stored

    moves, stored = with_admin(bootstrap, work)
    rows = [
        {"topic": each.partition.topic, "partition": each.partition.partition, "from": each.old, "to": each.new}
        for each in moves
    ]
    if rows or as_json:
        print_rows(rows, ["topic", "partition", "from", "to"], as_json=as_json, right=["partition", "from", "to"])
    if not execute:
        note("Nothing was changed: add --execute.")
    elif rows:
        done(f"group {group} goes on from there")
    end_with(stored, "partition")


@app.command()
def delete(
    groups: Annotated[list[str], typer.Argument(help="The groups.")], bootstrap: Bootstrap = DEFAULT_BOOTSTRAP
) -> None:
    """Delete groups that have no members, and their offsets."""
    from ottla.cli.terminal.each import tell

    tell(
        with_admin(bootstrap, lambda admin: admin.groups.delete_each(groups)),
        lambda name: f"deleted group {name}",
        "group",
    )


@app.command("delete-offsets")
def delete_offsets(
    group: Group,
    topic: Annotated[list[str], typer.Option("--topic", "-t", help="TOPIC or TOPIC:PARTITION; may be repeated.")],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete the offsets of a group for topics that none of its members reads."""
    from ottla.cli.terminal.each import tell
    from ottla.operations.offset_resets import chosen_partitions

    async def work(admin: Admin) -> Outcomes[str, None] | Outcomes[TopicPartition, None]:
        if await is_share_group(admin, group):
            return await admin.shares.forget_each(group, topic)
        return await admin.groups.delete_offsets_each(group, await chosen_partitions(admin, topic))

    tell(with_admin(bootstrap, work), lambda part: f"group {group} has forgotten {part}")
