"""`ottla topic`: create, list, describe, alter, delete, add partitions, delete records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ottla.cli.options import (
    DEFAULT_BOOTSTRAP,
    Append,
    Bootstrap,
    Json,
    Settings,
    Subtract,
    Unset,
    Yes,
    parse_pairs,
    parse_timestamp_ms,
    with_admin,
)
from ottla.cli.terminal import consent
from ottla.model.limits import INT16_MAX, INT32_MAX, INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.admin import Admin
    from ottla.client.metadata import PartitionInfo, TopicInfo
    from ottla.client.outcomes import Outcomes

app = typer.Typer(help="Create, look at and change topics.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The topic.")]
_INTERNAL_PREFIX = "__"
_SCHEMAS = "_schemas"  # the topic in which schema registries store schemas


@app.command()
def create(
    name: Name,
    partitions: Annotated[
        int,
        typer.Option(
            "--partitions", "-p", min=-1, max=INT32_MAX, help="Number of partitions; -1 is the broker's default."
        ),
    ] = -1,
    replication_factor: Annotated[
        int,
        typer.Option(
            "--replication-factor", "-r", min=-1, max=INT16_MAX, help="Number of replicas; -1 is the broker's default."
        ),
    ] = -1,
    config: Annotated[
        list[str], typer.Option("--config", "-c", help="A setting of the topic, NAME=VALUE; may be repeated.")
    ] = [],  # noqa: B006
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Do nothing if the topic exists.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Create a topic."""
    from ottla.cli.terminal.output import done
    from ottla.model.errors import ApiError, ErrorCode

    async def work(admin: Admin) -> None:
        try:
            made = await admin.topics.create(name, partitions, replication_factor, parse_pairs(config, "--config"))
        except ApiError as error:
            if if_not_exists and error.code == ErrorCode.TOPIC_ALREADY_EXISTS:
                done(f"topic {name} exists already")
                return
            raise
        done(f"created topic {name} with {_count(made.partitions, 'partition')}")

    with_admin(bootstrap, work)


@app.command("list")
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", "-i", help="Show internal topics as well.")] = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """List topics."""
    from ottla.cli.terminal.output import print_rows
    from ottla.model.ids import uuid_text

    rows = [
        {
            "topic": topic.name,
            "partitions": topic.partition_count,
            "replicas": max((len(each.replicas) for each in topic.partitions), default=0),
            "id": uuid_text(topic.topic_id),
            "internal": topic.is_internal,
        }
        for topic in with_admin(bootstrap, lambda admin: admin.topics.all())
        if internal or not topic.name.startswith(_INTERNAL_PREFIX)
    ]
    print_rows(rows, ["topic", "partitions", "replicas", "id"], as_json=as_json, right=["partitions", "replicas"])


@app.command()
def describe(
    names: Annotated[list[str], typer.Argument(help="The topics.")],
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Show partitions, offsets, sizes and settings of topics."""
    from ottla.cli.terminal.each import end_with
    from ottla.cli.terminal.output import out, print_json, print_table, print_text
    from ottla.operations.formats import size_text

    async def work(admin: Admin) -> tuple[Outcomes[str, TopicInfo], list[dict[str, Any]]]:
        topics = await admin.topics.describe_each(names)
        return topics, await _describe(admin, topics.found) if topics.found else []

    topics, found = with_admin(bootstrap, work)
    if as_json:
        print_json(found)
    for topic in found if not as_json else ():
        out().print(f"[bold]{topic['topic']}[/bold]  [dim]id {topic['id']}[/dim]")
        for name, value in topic["settings"].items():
            print_text(f"  {name} = {value}")
        columns = ["partition", "leader", "epoch", "replicas", "isr", "start", "end", "records", "size"]
        rows = [
            [*(row[column] for column in columns[:-1]), size_text(row["size_bytes"])] for row in topic["partitions"]
        ]
        print_table(columns, rows, right=["partition", "leader", "epoch", "start", "end", "records", "size"])
    end_with(topics, "topic")


async def _describe(admin: Admin, topics: Mapping[str, TopicInfo]) -> list[dict[str, Any]]:
    """The descriptions of topics, as far as they are available: partitions without a leader have no offsets, and
    replicas on brokers that are away have no sizes.
    """
    from ottla.client.metadata import NO_LEADER
    from ottla.model.ids import TopicPartition, uuid_text
    from ottla.model.resources import ConfigSource, Resource

    led = [
        TopicPartition(name, each.index)
        for name, topic in topics.items()
        for each in topic.partitions
        if each.leader != NO_LEADER
    ]
    bounds = (await admin.topics.bounds_each(led)).found
    settings = (await admin.configs.describe_each(map(Resource.topic, topics))).found
    sizes: dict[TopicPartition, int] = {}
    for directory in [each for found in (await admin.nodes.log_dirs_each()).found.values() for each in found]:
        for replica in directory.replicas:
            at = TopicPartition(replica.topic, replica.partition)
            if not replica.is_future:
                sizes[at] = max(sizes.get(at, 0), replica.size_bytes)

    def row(name: str, each: PartitionInfo) -> dict[str, Any]:
        at = TopicPartition(name, each.index)
        known = bounds.get(at)
        return {
            "partition": each.index,
            "leader": each.leader,
            "epoch": each.leader_epoch,
            "replicas": list(each.replicas),
            "isr": list(each.isr),
            "start": known.start if known else None,
            "end": known.end if known else None,
            "records": known.end - known.start if known else None,
            "size_bytes": sizes.get(at, -1),
        }

    return [
        {
            "topic": name,
            "id": uuid_text(topic.topic_id),
            "internal": topic.is_internal,
            "settings": {
                each.name: each.value
                for each in settings.get(Resource.topic(name), ())
                if each.source == ConfigSource.TOPIC
            },
            "partitions": [row(name, each) for each in topic.partitions],
        }
        for name, topic in topics.items()
    ]


@app.command()
def alter(
    name: Name,
    settings: Settings = None,
    unset: Unset = [],  # noqa: B006
    append: Append = [],  # noqa: B006
    subtract: Subtract = [],  # noqa: B006
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Change settings of a topic."""
    from ottla.cli.config import apply_changes
    from ottla.model.resources import Resource

    apply_changes(bootstrap, Resource.topic(name), settings or [], unset, append, subtract)


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(help="The topics.")],
    yes: Yes = False,
    internal: Annotated[bool, typer.Option("--internal", help="Also delete internal topics (__*, _schemas).")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete topics and all their records.

    Asks before it deletes. Where standard input is not a terminal, --yes is required.
    """
    from ottla.cli.terminal.each import tell

    kept = [name for name in names if name.startswith(_INTERNAL_PREFIX) or name == _SCHEMAS]
    if kept and not internal:
        raise typer.BadParameter(
            f"{', '.join(kept)}: groups, transactions or registries keep their state there; --internal deletes it"
        )
    consent.ask(f"Delete {', '.join(names)} with all records?", yes=yes)

    tell(
        with_admin(bootstrap, lambda admin: admin.topics.delete_each(names)),
        lambda name: f"deleted topic {name}",
        "topic",
    )


@app.command("add-partitions")
def add_partitions(
    name: Name,
    total: Annotated[int, typer.Argument(min=1, max=INT32_MAX, help="New number of partitions of the topic.")],
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Add partitions to a topic. Keys are distributed anew: older records of a key stay in their partition."""
    from ottla.cli.terminal.output import done

    with_admin(bootstrap, lambda admin: admin.topics.add_partitions(name, total))
    done(f"topic {name} now has {_count(total, 'partition')}")


@app.command("delete-records")
def delete_records(
    name: Name,
    before_offset: Annotated[
        int | None, typer.Option("--before-offset", min=0, max=INT64_MAX, help="Keep this offset and all later ones.")
    ] = None,
    before_time: Annotated[
        str | None,
        typer.Option(
            "--before-time", help="Keep records since this time: milliseconds since 1970, or 2026-01-31T12:00:00."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete every record.")] = False,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, max=INT32_MAX, help="Only this partition.")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Delete the records before an offset or a time.

    With --all it asks before it deletes. Where standard input is not a terminal, --all requires --yes.
    """
    from ottla.cli.terminal.each import end_with
    from ottla.cli.terminal.output import print_rows
    from ottla.client.admin.topics import ALL_RECORDS
    from ottla.client.consumer.offsets import NOT_FOUND, Time
    from ottla.client.outcomes import Outcomes
    from ottla.model.ids import TopicPartition

    if sum([before_offset is not None, before_time is not None, everything]) != 1:
        raise typer.BadParameter("give one of --before-offset, --before-time and --all")
    time_ms = None if before_time is None else parse_timestamp_ms(before_time, "--before-time")
    if everything:
        of = name if partition is None else f"partition {partition} of {name}"
        consent.ask(f"Delete all records of {of}?", yes=yes)

    async def work(admin: Admin) -> Outcomes[TopicPartition, int]:
        indexes = [each.index for each in (await admin.topics.describe(name)).partitions]
        wanted = [TopicPartition(name, each) for each in (indexes if partition is None else [partition])]
        if time_ms is None:
            before = dict.fromkeys(wanted, ALL_RECORDS if before_offset is None else before_offset)
            return await admin.topics.delete_records_each(before)
        times = await admin.topics.offsets_each(dict.fromkeys(wanted, Time(time_ms)))
        before = {at: ALL_RECORDS if each.offset == NOT_FOUND else each.offset for at, each in times.found.items()}
        deleted = await admin.topics.delete_records_each(before)
        return Outcomes(deleted.found, times.failed | deleted.failed)

    outcomes = with_admin(bootstrap, work)
    rows = [{"partition": at.partition, "start": offset} for at, offset in sorted(outcomes.found.items())]
    if rows or as_json:
        print_rows(rows, ["partition", "start"], as_json=as_json, right=["partition", "start"])
    end_with(outcomes, "partition")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
