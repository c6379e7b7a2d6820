"""Dead letters: records that nobody could take, with their origin; select them, and send them back.

A dead-letter topic is a topic like any other; a letter is an unchanged record with additional headers `ottla.dlq.*` for
its origin and the reason. Share groups write letters (`rejected`, `delivery-limit`), as do contracts of topics
(`schema`) and typed columns of Spark, whose reason is a sentence (`decoding`). Redriving copies letters back to their
topics (`redriving`); they also stay in the dead-letter topic.
"""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.model import limits
from ottla.operations.errors import CommandError
from ottla.operations.formats import parse_index, parse_offset, time_text
from ottla.operations.threads import BlockingWork, in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping

    from ottla.client.cluster import Cluster
    from ottla.client.consumer.ranges import ConsumedRecord, RawBatch, Span

PREFIX = "ottla.dlq."
REDRIVEN_FROM = PREFIX + "redriven-from"
_CONTRACT, _DECODING = "schema", "decoding"
REASONS = ("rejected", "delivery-limit", _CONTRACT, _DECODING)
_SHOWN_CHARS_MAX = 60
_DECODED_TOGETHER_BYTES = 256 * limits.KIB


class LetterPlace(NamedTuple):
    """Where a letter is in its dead-letter topic: `PARTITION:OFFSET`, as users write it."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


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
    def place(self) -> LetterPlace:
        return LetterPlace(self.record.partition, self.record.offset)


class Selection(NamedTuple):
    """Which letters to select; a field that is None does not restrict the selection."""

    group: str | None
    origin: str | None
    reason: str | None
    places: tuple[LetterPlace, ...]
    max_letters: int

    def takes(self, letter: DeadLetter) -> bool:
        return (
            self.group in (None, letter.group)
            and self.origin in (None, letter.topic)
            and self.reason in (None, letter.reason)
            and (not self.places or letter.place in self.places)
        )


def places_of(texts: Iterable[str]) -> tuple[LetterPlace, ...]:
    """The places PARTITION:OFFSET of letters. Raises ValueError for what is none."""
    found: list[LetterPlace] = []
    for text in texts:
        partition, _, offset = text.partition(":")
        index, at = parse_index(partition), parse_offset(offset)
        if index is None or at is None:
            raise ValueError(f"{text[:40]!r} is not PARTITION:OFFSET")
        found.append(LetterPlace(index, at))
    return tuple(found)


class ChosenLetters(NamedTuple):
    """The selected letters, whether there are more of them, and the number of records that are no letters."""

    letters: list[DeadLetter]
    is_cut: bool
    others: int


async def select_letters(cluster: Cluster, topic: str, wanted: Selection) -> ChosenLetters:
    """The wanted letters that are in the topic now."""
    found: list[DeadLetter] = []
    others = 0
    async with aclosing(read_letters(cluster, await spans_of_letters(cluster, topic, ()))) as letters:
        async for _, letter in letters:
            if letter is None:
                others += 1
            elif wanted.takes(letter):
                if len(found) == wanted.max_letters:
                    return ChosenLetters(found, True, others)
                found.append(letter)
    return ChosenLetters(found, False, others)


async def read_letters(
    cluster: Cluster, spans: Iterable[Span]
) -> AsyncGenerator[tuple[ConsumedRecord, DeadLetter | None], None]:
    """Yield the records of spans, each with the letter in it, if it is one. Threads decode them."""
    from ottla.client.consumer.ranges import RangeReader
    from ottla.operations.records.reading import read_options

    options = read_options(committed=False)
    async with RangeReader(cluster, spans, options) as reader, aclosing(reader.batches()) as batches:
        gathered: list[RawBatch] = []
        size_bytes = 0
        async for batch in batches:
            gathered.append(batch)
            size_bytes += len(batch.data)
            if size_bytes >= _DECODED_TOGETHER_BYTES:
                for each in await in_thread(BlockingWork.decoding, _decoded, gathered):
                    yield each
                gathered, size_bytes = [], 0
        for each in await in_thread(BlockingWork.decoding, _decoded, gathered):
            yield each


def _decoded(batches: Iterable[RawBatch]) -> list[tuple[ConsumedRecord, DeadLetter | None]]:
    from ottla.client.consumer.ranges import decode_batch

    return [(record, letter_of(record)) for batch in batches for record in decode_batch(batch)]


async def spans_of_letters(cluster: Cluster, topic: str, places: Iterable[tuple[int, int]]) -> list[Span]:
    """What is in the topic now; with `places`, only as much as has them."""
    from ottla.client.consumer.offsets import bounds_each
    from ottla.client.consumer.ranges import Span
    from ottla.model.ids import TopicPartition

    named: dict[int, list[int]] = {}
    for partition, offset in places:
        named.setdefault(partition, []).append(offset)
    partitions = [TopicPartition(topic, each.index) for each in (await cluster.topic(topic)).partitions]
    bounds = (await bounds_each(cluster, [at for at in partitions if not named or at.partition in named])).all()
    spans = []
    for at, (first, end) in bounds.items():
        if at.partition in named:
            first, end = max(first, min(named[at.partition])), min(end, max(named[at.partition]) + 1)
        if first < end:
            spans.append(Span(topic, at.partition, first, end))
    return spans


def letter_of(record: ConsumedRecord) -> DeadLetter | None:
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
        "letter": str(letter.place),
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


def redriven_headers(
    letter: ConsumedRecord, headers: Iterable[tuple[str, bytes | None]]
) -> list[tuple[str, bytes | None]]:
    """The headers of a record that is sent in place of a letter: those given, without what makes a letter, and one that
    names the letter.
    """
    kept = [(name, value) for name, value in headers if not name.startswith(PREFIX)]
    return [*kept, (REDRIVEN_FROM, f"{letter.topic}-{letter.partition}@{letter.offset}".encode())]


class RedrivePlan(NamedTuple):
    """Exactly the letters that are to be sent, and how many go to which topic. `is_cut`: there are more than were
    wanted.
    """

    places: tuple[LetterPlace, ...]
    targets: Mapping[str, int]
    is_cut: bool


async def plan_redrive(cluster: Cluster, topic: str, wanted: Selection, to: str | None = None) -> RedrivePlan:
    """Find the letters, and look up all topics that they go to. Raises CommandError for a letter that is not there."""
    found: dict[LetterPlace, str] = {}
    is_cut = False
    spans = await spans_of_letters(cluster, topic, wanted.places)
    async with aclosing(read_letters(cluster, spans)) as letters:
        async for _, letter in letters:
            if letter is not None and wanted.takes(letter):
                if len(found) == wanted.max_letters:
                    is_cut = True
                    break
                found[letter.place] = to or letter.topic
    missing = sorted(set(wanted.places) - found.keys())
    if missing and not is_cut:
        raise CommandError(f"there is no letter {missing[0]} in {topic}", f"`ottla dlq list {topic}` shows the letters")
    targets = Counter(found.values())
    for target in sorted(targets):
        await cluster.topic(target)
    return RedrivePlan(tuple(found), targets, is_cut)
