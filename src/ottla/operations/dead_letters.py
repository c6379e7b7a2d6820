"""Dead letters: records that nobody could take, with their origin; select them, and send them back.

A dead-letter topic is a topic like any other; a letter is an unchanged record with additional headers `ottla.dlq.*` for
its origin and the reason. Share groups write letters (`rejected`, `delivery-limit`), as do contracts of topics
(`schema`) and typed columns of Spark, whose reason is a sentence (`decoding`). Redriving copies letters back to their
topics; they also stay in the dead-letter topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.operations.errors import CommandError
from ottla.operations.formats import time_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.client.cluster import Cluster
    from ottla.client.consumer.ranges import ConsumedRecord

PREFIX = "ottla.dlq."
REDRIVEN_FROM = PREFIX + "redriven-from"
_CONTRACT, _DECODING = "schema", "decoding"
REASONS = ("rejected", "delivery-limit", _CONTRACT, _DECODING)
_SHOWN_CHARS_MAX = 60


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


def places_of(texts: Sequence[str]) -> tuple[str, ...]:
    """The places PARTITION:OFFSET of letters; raises ValueError for what is none."""
    for text in texts:
        partition, colon, offset = text.partition(":")
        if not (colon and partition.isdecimal() and offset.isdecimal()):
            raise ValueError(f"{text!r} is not PARTITION:OFFSET")
    return tuple(f"{int(text.partition(':')[0])}:{int(text.partition(':')[2])}" for text in texts)


class ChosenLetters(NamedTuple):
    """The selected letters, whether there are more of them, and the number of records that are no letters."""

    letters: list[DeadLetter]
    is_cut: bool
    others: int


async def select_letters(cluster: Cluster, topic: str, wanted: Selection) -> ChosenLetters:
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
                        return ChosenLetters(found, True, others)
                    found.append(letter)
    return ChosenLetters(found, False, others)


def _letter(record: ConsumedRecord) -> DeadLetter | None:
    """The dead letter in a record; None if the record is none."""
    told = {
        name.removeprefix(PREFIX): value.decode("utf-8", "replace")
        for name, value in record.headers
        if value is not None and name.startswith(PREFIX)
    }
    try:
        reason, error = told["reason"], told.get("error")
        if reason not in REASONS:  # typed columns of Spark have a sentence as the reason
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


def letter_row(letter: DeadLetter, *, short: bool) -> dict[str, Any]:
    """A letter as fields: all of them for scripts, or with `short` as a table has room for."""
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


async def redrive_letters(
    cluster: Cluster, topic: str, wanted: Selection, to: str | None = None, *, dry_run: bool = False
) -> tuple[int, bool]:
    """Copy letters back to their topics, or to another one: how many, and whether there are more than were wanted.

    Exactly the selected letters are sent, and none that arrive meanwhile. A dry run only counts them.
    """
    from ottla.client.producer.producer import Producer

    found, more, _ = await select_letters(cluster, topic, wanted)
    missing = sorted(set(wanted.places) - {letter.place for letter in found})
    if missing:
        raise CommandError(f"there is no letter {missing[0]} in {topic}", f"`ottla dlq list {topic}` shows the letters")
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
            sent.append(await producer.enqueue(target, record.value, record.key, headers=headers, partition=partition))
        await producer.flush()
        for future in sent:
            await future
    return len(found), more
