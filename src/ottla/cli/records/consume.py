"""`ottla consume`: print records of a topic, from an offset, a time or the beginning, to the end or without end."""

from __future__ import annotations

import asyncio
import sys
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.cli.options import (
    DEFAULT_BOOTSTRAP,
    Bootstrap,
    Topic,
    client_options,
    parse_duration_ms,
    parse_timestamp_ms,
)
from ottla.cli.records.payloads import RegistryUrl, registry_at
from ottla.cli.terminal.outlet import stop_when_unread
from ottla.cli.terminal.plain import is_coloured, print_warning
from ottla.model.limits import INT64_MAX
from ottla.operations.errors import CommandError
from ottla.operations.payloads import PayloadDecoder, PayloadType

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ottla.client.cluster import Cluster
    from ottla.client.consumer.offsets import Time
    from ottla.client.consumer.ranges import ConsumedRecord, Span


class OutputFormat(StrEnum):
    """The formats of `--format`."""

    text = "text"
    json = "json"
    pretty = "pretty"
    hex = "hex"
    raw = "raw"
    template = "template"


ValueType = Annotated[
    PayloadType | None,
    typer.Option("--value", help="Decode values by the registry's schemas; auto: of whichever type they are."),
]
KeyType = Annotated[PayloadType | None, typer.Option("--key", help="Decode keys, in the same way.")]

Template = Annotated[
    str | None,
    typer.Option("--template", "-t", help="Pattern of a record, such as '{partition} {offset} {key} {value}\\n'."),
]


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel="Topics and records")(consume)


def consume(
    topic: Topic,
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="Start at the first record.")] = False,
    from_offset: Annotated[
        int | None, typer.Option("--from-offset", "-o", min=0, max=INT64_MAX, help="Start at this offset.")
    ] = None,
    from_timestamp: Annotated[
        str | None,
        typer.Option("--from-timestamp", help="Start at this time: milliseconds since 1970, or 2026-01-31T12:00:00."),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", "-s", help="Start this long ago: 10m, 2h30m, 1d.")] = None,
    last: Annotated[
        int | None,
        typer.Option("--last", "-l", min=0, help="Start this many records before the end of each partition."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more records at the end.")] = False,
    max_records: Annotated[int | None, typer.Option("--max", "-n", min=0, help="Stop after this many records.")] = None,
    partition: Annotated[
        list[int], typer.Option("--partition", "-p", help="Only this partition; may be repeated.")
    ] = [],  # noqa: B006
    fmt: Annotated[OutputFormat, typer.Option("--format", "-F", help="How to show records.")] = OutputFormat.text,
    pattern: Template = None,
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Leave out records of aborted and open transactions.")
    ] = False,
    group: Annotated[
        str | None, typer.Option("--group", "-g", help="Read as a member of this group, and commit what was printed.")
    ] = None,
    value_type: ValueType = None,
    key_type: KeyType = None,
    registry: RegistryUrl = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Print records of a topic.

    Without a place to start, the records from the beginning to the present end are printed; with --follow those that
    come from now on. With --group the group's committed offsets are the start, also with --from-beginning; a group that
    has none begins at the present end without --from-beginning. It ends when nothing has come for three seconds.

    `--value avro` (or json, protobuf, auto) shows values as JSON, decoded by the schemas that they name.

    On a terminal, control characters in records (but newline and tab) are shown as escapes such as `\\x1b`; only
    `--format raw` writes them as they are. In a pipe or file nothing is escaped.
    """
    if group is not None and (partition or last is not None or from_offset is not None or from_timestamp or since):
        raise typer.BadParameter("a group decides where its members read: --group goes with --from-beginning at most")
    start = _start(from_beginning, from_offset, from_timestamp, since, last, follow)
    stop_when_unread()
    show = _decoding(formatter(fmt, pattern), key_type, value_type, registry, bootstrap)
    try:
        if group is not None:
            from ottla.cli.records.group_reading import Reading, print_group

            reading = Reading(bootstrap, topic, group, from_beginning, follow, max_records, show)
            asyncio.run(print_group(reading, read_committed=read_committed))
            return
        places = partial(_spans, topic=topic, partitions=partition, start=start, last=last, follow=follow)
        asyncio.run(_consume(bootstrap, places, max_records, show, read_committed=read_committed))
    except KeyboardInterrupt:
        raise typer.Exit(0) from None  # the usual way to end --follow


def _start(
    from_beginning: bool,
    from_offset: int | None,
    from_timestamp: str | None,
    since: str | None,
    last: int | None,
    follow: bool,
) -> int | Time:
    from ottla.client.consumer.offsets import EARLIEST, LATEST, Time
    from ottla.client.options import wall_clock_ms

    if from_beginning + sum(each is not None for each in (from_offset, from_timestamp, since, last)) > 1:
        raise typer.BadParameter(
            "give only one of --from-beginning, --from-offset, --from-timestamp, --since and --last"
        )
    if from_offset is not None:
        return from_offset
    if from_timestamp is not None:
        return Time(parse_timestamp_ms(from_timestamp, "--from-timestamp"))
    if since is not None:
        return Time(max(0, wall_clock_ms() - parse_duration_ms(since, "--since")))
    return LATEST if follow and not from_beginning else EARLIEST


def _decoding(
    show: Callable[[ConsumedRecord], bytes],
    key_type: PayloadType | None,
    value_type: PayloadType | None,
    url: str | None,
    bootstrap: str,
) -> Callable[[ConsumedRecord], bytes]:
    """A formatter that first decodes keys or values by the schemas of a registry, if the options ask for that."""
    if key_type is None and value_type is None:
        return show
    client_options(bootstrap)  # report a bad address before any request
    registry = registry_at(url, bootstrap)
    keys = None if key_type is None else PayloadDecoder(registry, key_type, print_warning, of_key=True)
    values = None if value_type is None else PayloadDecoder(registry, value_type, print_warning, of_key=False)

    def decoded(record: ConsumedRecord) -> bytes:
        key = record.key if keys is None else keys.shown(record)
        value = record.value if values is None else values.shown(record)
        return show(record._replace(key=key, value=value))

    return decoded


def formatter(fmt: OutputFormat, pattern: str | None) -> Callable[[ConsumedRecord], bytes]:
    """The formatter for `--format` and `--template`. On a terminal, all but `raw` write control characters as
    escapes.
    """
    from ottla.cli.records import text as records

    show = _formatter(fmt, pattern)
    if fmt is OutputFormat.raw or not sys.stdout.isatty():
        return show
    if fmt in (OutputFormat.json, OutputFormat.pretty):
        return lambda record: records.visible_output(show(record), in_json=True)
    if fmt is OutputFormat.hex:
        return lambda record: records.visible_output(show(record))
    return lambda record: show(records.visible_record(record))


def _formatter(fmt: OutputFormat, pattern: str | None) -> Callable[[ConsumedRecord], bytes]:
    from ottla.cli.records import text as records

    if pattern is not None:
        if fmt not in (OutputFormat.text, OutputFormat.template):
            raise typer.BadParameter(f"--format {fmt.value} and --template exclude each other")
        return records.template(pattern)
    if fmt is OutputFormat.template:
        raise typer.BadParameter("--format template needs --template")
    if fmt is OutputFormat.json:
        return records.as_json
    if fmt is OutputFormat.pretty:
        return records.as_pretty
    if fmt is OutputFormat.hex:
        return records.as_hex
    if fmt is OutputFormat.raw:
        return records.as_raw
    colour = is_coloured(sys.stdout)
    return lambda record: records.as_text(record, colour=colour)


async def _spans(
    cluster: Cluster, topic: str, partitions: list[int], start: int | Time, last: int | None, follow: bool
) -> list[Span]:
    from ottla.client.consumer.offsets import EARLIEST, LATEST, list_offsets
    from ottla.client.consumer.ranges import Span
    from ottla.model.ids import TopicPartition

    known = [each.index for each in (await cluster.topic(topic)).partitions]
    wanted = list(dict.fromkeys(partitions)) or known
    missing = sorted(set(wanted) - set(known))
    if missing:
        raise CommandError(f"topic {topic} has {len(known)} partitions, there is no {missing[0]}")
    end = None if follow else LATEST
    if last is None:
        return [Span(topic, index, start, end) for index in wanted]
    parts = [TopicPartition(topic, index) for index in wanted]
    starts = await list_offsets(cluster, dict.fromkeys(parts, EARLIEST))
    ends = await list_offsets(cluster, dict.fromkeys(parts, LATEST))
    return [Span(topic, part.partition, max(starts[part].offset, ends[part].offset - last), end) for part in parts]


async def _consume(
    bootstrap: str,
    spans_of: Callable[[Cluster], Awaitable[list[Span]]],
    max_records: int | None,
    show: Callable[[ConsumedRecord], bytes],
    *,
    read_committed: bool,
) -> None:
    from ottla.cli.terminal.output import err, note
    from ottla.client.cluster import Cluster
    from ottla.client.consumer.ranges import RangeReader, ReadOptions, decode_batch

    out = sys.stdout.buffer
    count = 0
    async with Cluster(client_options(bootstrap)) as cluster:
        spans = await spans_of(cluster)
        async with RangeReader(cluster, spans, ReadOptions(read_committed=read_committed)) as reader:
            async for batch in reader.batches():
                for record in decode_batch(batch):
                    if max_records is not None and count >= max_records:
                        break
                    out.write(show(record))
                    count += 1
                out.flush()
                if max_records is not None and count >= max_records:
                    break
    if err().is_terminal:
        note(f"{count} {'record' if count == 1 else 'records'}")
