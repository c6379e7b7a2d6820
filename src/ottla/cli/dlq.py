"""`ottla dlq`: list dead letters, and send them back to the topics they came from.

A dead-letter topic is a topic like any other; a letter is an unchanged record with additional headers `ottla.dlq.*` for
its origin and the reason. Share groups write letters (`rejected`, `delivery-limit`), as do contracts of topics
(`schema`) and typed columns of Spark, whose reason is a sentence (`decoding`). Redriving copies letters back to their
topics; they also stay in the dead-letter topic.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ottla.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, Json, client_options, one_of
from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.cluster import Cluster
    from ottla.client.consumer.ranges import ConsumedRecord

app = typer.Typer(
    help="Dead letters: records that a share group, a contract or a Spark reader could not take.", no_args_is_help=True
)

PREFIX = "ottla.dlq."
REDRIVEN_FROM = PREFIX + "redriven-from"
_CONTRACT, _DECODING = "schema", "decoding"
_REASONS = ("rejected", "delivery-limit", _CONTRACT, _DECODING)
_COLUMNS = ("letter", "topic", "partition", "offset", "group", "deliveries", "reason", "time", "key", "value")
_SHOWN_CHARS_MAX = 60

Topic = Annotated[str, typer.Argument(help="The dead-letter topic.")]
Group = Annotated[str | None, typer.Option("--group", "-g", help="Only letters that this share group wrote.")]
Origin = Annotated[str | None, typer.Option("--from", help="Only letters that come from this topic.")]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        help="Only letters of this reason: rejected or delivery-limit (share groups), schema (contracts of topics), "
        "decoding (typed columns of Spark).",
        callback=one_of(*_REASONS),
    ),
]
Letters = Annotated[
    list[str],
    typer.Option(
        "--letter", "-l", help="Only this letter: PARTITION:OFFSET in the dead-letter topic; may be repeated."
    ),
]
Max = Annotated[int, typer.Option("--max", "-n", min=1, help="At most this many letters.")]


class DeadLetter(NamedTuple):
    """A dead letter and its origin; group and deliveries are None if no share group wrote it."""

    record: ConsumedRecord
    topic: str
    partition: int
    offset: int
    group: str | None
    deliveries: int | None
    reason: str
    error: str | None
    timestamp: int

    @property
    def place(self) -> str:
        return f"{self.record.partition}:{self.record.offset}"


class Selection(NamedTuple):
    """Which letters to select; a field that is None does not restrict the selection."""

    group: str | None
    origin: str | None
    reason: str | None
    places: tuple[str, ...]
    max_letters: int

    def takes(self, letter: DeadLetter) -> bool:
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
    """List dead letters: where each comes from, and why it could not be taken."""
    from ottla.cli.terminal.output import note, print_rows

    wanted = Selection(group, origin, reason, _places(letter), max_letters)
    chosen = asyncio.run(_list(bootstrap, topic, wanted))
    right = ("partition", "offset", "deliveries")
    print_rows([_row(each, short=not as_json) for each in chosen.letters], _COLUMNS, as_json=as_json, right=right)
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
    wanted = Selection(group, origin, reason, _places(letter), max_letters)
    count, left = asyncio.run(_redrive(bootstrap, topic, wanted, to, dry_run=dry_run))
    if dry_run:
        note(f"{count} would be sent")
    else:
        done(f"{count} {'letter' if count == 1 else 'letters'} sent")
    if left:
        note(f"there are more than {max_letters}: a larger --max sends them, too")


def _places(texts: Sequence[str]) -> tuple[str, ...]:
    for text in texts:
        partition, colon, offset = text.partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal()):
            raise typer.BadParameter(f"{text!r} is not PARTITION:OFFSET", param_hint="--letter")
    return tuple(f"{int(text.partition(':')[0])}:{int(text.partition(':')[2])}" for text in texts)


class _Chosen(NamedTuple):
    """The selected letters, whether there are more of them, and the number of records that are no letters."""

    letters: list[DeadLetter]
    is_cut: bool
    others: int


async def _list(bootstrap: str, topic: str, wanted: Selection) -> _Chosen:
    from ottla.client.cluster import Cluster

    async with Cluster(client_options(bootstrap)) as cluster:
        return await _select(cluster, topic, wanted)


async def _select(cluster: Cluster, topic: str, wanted: Selection) -> _Chosen:
    """The wanted letters that are in the topic now."""
    from ottla.client.consumer.ranges import RangeReader, Span, decode_batch

    spans = [Span(topic, each.index) for each in (await cluster.topic(topic)).partitions]
    found: list[DeadLetter] = []
    others = 0
    async with RangeReader(cluster, spans) as reader:
        async for batch in reader.batches():
            for record in decode_batch(batch):
                letter = _letter(record)
                if letter is None:
                    others += 1
                elif wanted.takes(letter):
                    if len(found) == wanted.max_letters:
                        return _Chosen(found, True, others)
                    found.append(letter)
    return _Chosen(found, False, others)


def _letter(record: ConsumedRecord) -> DeadLetter | None:
    """The dead letter in a record; None if the record is none."""
    told = {
        name.removeprefix(PREFIX): value.decode("utf-8", "replace")
        for name, value in record.headers
        if value is not None and name.startswith(PREFIX)
    }
    try:
        reason, error = told["reason"], told.get("error")
        if reason not in _REASONS:  # typed columns of Spark have a sentence as the reason
            reason, error = _DECODING, reason
        return DeadLetter(
            record,
            told["topic"],
            int(told["partition"]),
            int(told["offset"]),
            told.get("group"),
            int(told["delivery-count"]) if "delivery-count" in told else None,
            reason,
            error,
            int(told["timestamp"]),
        )
    except (KeyError, ValueError):
        return None


def _row(letter: DeadLetter, *, short: bool) -> dict[str, Any]:
    from ottla.operations.formats import time_text

    record = letter.record
    row = {
        "letter": letter.place,
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "group": letter.group,
        "deliveries": letter.deliveries,
        "reason": letter.reason if letter.error is None or not short else f"{letter.reason}: {letter.error}",
        "time": time_text(record.timestamp) if short else record.timestamp,
        "key": _text(record.key, short),
        "value": _text(record.value, short),
    }
    if not short:
        row["error"] = letter.error
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
        found, more, _ = await _select(cluster, topic, wanted)
        missing = sorted(set(wanted.places) - {letter.place for letter in found})
        if missing:
            raise CommandError(
                f"there is no letter {missing[0]} in {topic}", f"`ottla dlq list {topic}` shows the letters"
            )
        # Look up all target topics before anything is sent.
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
                # In another topic, or one with fewer partitions by now, the key decides the partition, as for any
                # record.
                partition = letter.partition if to is None and letter.partition < counts[target] else None
                sent.append(
                    await producer.enqueue(target, record.value, record.key, headers=headers, partition=partition)
                )
            await producer.flush()
            for future in sent:
                await future
        return len(found), more
