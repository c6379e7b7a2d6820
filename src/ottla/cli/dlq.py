"""`ottla dlq`: the dead letters of share groups — what they are, and back to where they came from.

A dead-letter topic is a topic like any other; a letter is the record as it was, with headers that say where it comes
from and why it is here. Redriving copies letters back and leaves them where they are: the log is not a mailbox.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, client_options, one_of
from ottla.cli.terminal.plain import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.cluster import Cluster
    from ottla.client.consumer.ranges import ConsumedRecord

app = typer.Typer(help="Dead letters of share groups.", no_args_is_help=True)

PREFIX = "ottla.dlq."
REDRIVEN_FROM = PREFIX + "redriven-from"
_COLUMNS = ("letter", "topic", "partition", "offset", "group", "deliveries", "reason", "time", "key", "value")
_SHOWN_CHARS_MAX = 60

Topic = Annotated[str, typer.Argument(help="The dead-letter topic.")]
Group = Annotated[str | None, typer.Option("--group", "-g", help="Only letters of this share group.")]
Origin = Annotated[str | None, typer.Option("--from", help="Only letters that come from this topic.")]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason", help="Only these: rejected or delivery-limit.", callback=one_of("rejected", "delivery-limit")
    ),
]
Letters = Annotated[
    list[str], typer.Option("--letter", "-l", help="Only this letter, by its place here: PARTITION:OFFSET.")
]
Max = Annotated[int, typer.Option("--max", "-n", min=1, help="At most so many letters.")]


class Letter(NamedTuple):
    """A dead letter and where it comes from."""

    record: ConsumedRecord
    topic: str
    partition: int
    offset: int
    group: str
    deliveries: int
    reason: str
    timestamp: int

    @property
    def place(self) -> str:
        return f"{self.record.partition}:{self.record.offset}"


class Selection(NamedTuple):
    """Which letters are meant; what is None does not matter."""

    group: str | None
    origin: str | None
    reason: str | None
    places: tuple[str, ...]
    max_letters: int

    def takes(self, letter: Letter) -> bool:
        return (
            self.group in (None, letter.group)
            and self.origin in (None, letter.topic)
            and self.reason in (None, letter.reason)
            and (not self.places or letter.place in self.places)
        )


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
    """List dead letters, with where they come from and why they are here."""
    from ottla.cli.terminal.output import print_rows

    wanted = Selection(group, origin, reason, _places(letter), max_letters)
    found = asyncio.run(_list(bootstrap, topic, wanted))
    right = ("partition", "offset", "deliveries")
    print_rows([_row(each, short=not as_json) for each in found], _COLUMNS, as_json=as_json, right=right)


@app.command()
def redrive(
    topic: Topic,
    group: Group = None,
    origin: Origin = None,
    reason: Reason = None,
    letter: Letters = [],  # noqa: B006
    everything: Annotated[bool, typer.Option("--all", help="All letters there are now.")] = False,
    max_letters: Max = 1_000,
    to: Annotated[str | None, typer.Option("--to", help="Another topic instead of the one they come from.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be sent.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Send dead letters back to where they came from: the same topic, partition and key, without the provenance.

    Exactly the selected ones, and none that arrive meanwhile. The letters stay in the dead-letter topic; what was sent
    has a header ottla.dlq.redriven-from that names its letter.
    """
    from ottla.cli.terminal.output import done, note

    if not (everything or group or origin or reason or letter):
        raise typer.BadParameter("say which letters: --letter, --group, --from, --reason or --all")
    wanted = Selection(group, origin, reason, _places(letter), max_letters)
    count, left = asyncio.run(_redrive(bootstrap, topic, wanted, to, dry_run=dry_run))
    if dry_run:
        note(f"{count} would be sent")
    else:
        done(f"{count} {'letter' if count == 1 else 'letters'} sent")
    if left:
        note(f"there are more than {max_letters}: say --max to send them too")


def _places(texts: Sequence[str]) -> tuple[str, ...]:
    for text in texts:
        partition, colon, offset = text.partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal()):
            raise typer.BadParameter(f"{text!r} is not PARTITION:OFFSET", param_hint="--letter")
    return tuple(f"{int(text.partition(':')[0])}:{int(text.partition(':')[2])}" for text in texts)


async def _list(bootstrap: str, topic: str, wanted: Selection) -> list[Letter]:
    from ottla.client.cluster import Cluster

    async with Cluster(client_options(bootstrap)) as cluster:
        return (await _select(cluster, topic, wanted))[0]


async def _select(cluster: Cluster, topic: str, wanted: Selection) -> tuple[list[Letter], bool]:
    """The wanted letters that are there now, and whether there are more than wanted."""
    from ottla.client.consumer.ranges import RangeReader, Span, decode_batch

    spans = [Span(topic, each.index) for each in (await cluster.topic(topic)).partitions]
    found: list[Letter] = []
    async with RangeReader(cluster, spans) as reader:
        async for batch in reader.batches():
            for record in decode_batch(batch):
                letter = _letter(record)
                if letter is None or not wanted.takes(letter):
                    continue
                if len(found) == wanted.max_letters:
                    return found, True
                found.append(letter)
    return found, False


def _letter(record: ConsumedRecord) -> Letter | None:
    """None for a record that no share group put here."""
    told = {name: value.decode("utf-8", "replace") for name, value in record.headers if value is not None}
    try:
        return Letter(
            record,
            told[PREFIX + "topic"],
            int(told[PREFIX + "partition"]),
            int(told[PREFIX + "offset"]),
            told[PREFIX + "group"],
            int(told[PREFIX + "delivery-count"]),
            told[PREFIX + "reason"],
            int(told[PREFIX + "timestamp"]),
        )
    except (KeyError, ValueError):
        return None


def _row(letter: Letter, *, short: bool) -> dict[str, Any]:
    from ottla.cli.terminal.output import time_text

    record = letter.record
    row = {
        "letter": letter.place,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "group": letter.group,
        "deliveries": letter.deliveries,
        "reason": letter.reason,
        "time": time_text(record.timestamp) if short else record.timestamp,
        "key": _text(record.key, short),
        "value": _text(record.value, short),
    }
    if not short:
        row["original_timestamp"] = letter.timestamp
        row["headers"] = [[name, _text(value, short)] for name, value in record.headers if not name.startswith(PREFIX)]
    return row


def _text(data: bytes | None, short: bool) -> str | None:
    if data is None:
        return None
    text = data.decode("utf-8", "replace")
    return text[:_SHOWN_CHARS_MAX] + "…" if short and len(text) > _SHOWN_CHARS_MAX else text


async def _redrive(bootstrap: str, topic: str, wanted: Selection, to: str | None, *, dry_run: bool) -> tuple[int, bool]:
    from ottla.client.cluster import Cluster
    from ottla.client.producer.producer import Producer

    async with Cluster(client_options(bootstrap)) as cluster:
        found, more = await _select(cluster, topic, wanted)
        missing = sorted(set(wanted.places) - {letter.place for letter in found})
        if missing:
            raise CommandError(f"there is no letter {missing[0]} in {topic}")
        # Before anything is sent: where to.
        counts: dict[str, int] = {}
        for target in sorted({to or letter.topic for letter in found}):
            counts[target] = len((await cluster.topic(target)).partitions)
        if dry_run:
            return len(found), more
        async with Producer(cluster) as producer:
            sent = []
            for letter in found:
                target = to or letter.topic
                record = letter.record
                headers = [(name, value) for name, value in record.headers if not name.startswith(PREFIX)]
                headers.append((REDRIVEN_FROM, f"{topic}-{record.partition}@{record.offset}".encode()))
                # Another topic, or one with fewer partitions by now: by key, as any record.
                partition = letter.partition if to is None and letter.partition < counts[target] else None
                sent.append(
                    await producer.enqueue(target, record.value, record.key, headers=headers, partition=partition)
                )
            await producer.flush()
            for future in sent:
                await future
        return len(found), more
