"""Redriving: dead letters are copied back to their topics, or to another one, with an outcome for each letter.

Rules:
- A letter counts as not sent only if it surely was not written; where a broker may have written it without an
  acknowledgement, the outcome is unknown. So what was not sent can be sent by another attempt, and comes once.
- With a limit of time, letters are taken until two thirds of it are over, and the rest is for acknowledgements. The
  time is looked at for each record that is read, whether it is wanted or not.
- Memory is bounded by the producer's buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ottla.operations.dead_letters import (
    DeadLetter,
    LetterPlace,
    Selection,
    plan_redrive,
    read_letters,
    redriven_headers,
    spans_of_letters,
)
from ottla.operations.errors import CommandError
from ottla.operations.failures import message_of

if TYPE_CHECKING:
    from ottla.client.cluster import Cluster
    from ottla.client.consumer.ranges import ConsumedRecord
    from ottla.client.producer.accumulator import RecordMetadata
    from ottla.client.producer.options import ProducerOptions
    from ottla.client.producer.producer import Producer

_TAKING = 2 / 3  # of the time; the rest is for acknowledgements
_BLOCKED = 1 / 6  # of the time: how long one letter may wait for room in the buffer


class LetterFate(Enum):
    """How sending a letter has ended."""

    SENT = "sent"
    NOT_SENT = "not sent"
    UNKNOWN = "perhaps sent"  # no acknowledgement came, and it may have been written
    GONE = "gone"  # there is no such letter in the topic


class LetterOutcome(NamedTuple):
    """How sending one letter has ended; `why` it was not sent, or is not known to be."""

    place: LetterPlace
    fate: LetterFate
    why: str = ""
    error: Exception | None = None


async def send_letters(
    cluster: Cluster, topic: str, places: Iterable[tuple[int, int]], to: str | None = None, max_s: float | None = None
) -> list[LetterOutcome]:
    """Copy letters back to their topics, or to another one, and return how that ended for each of them, at most
    `max_s` later. Raises what kept all of them from being sent, if it is an error.
    """
    wanted = list(dict.fromkeys(LetterPlace(*place) for place in places))
    outcomes = await _Redriving(cluster, topic, wanted, to, max_s).run() if wanted else []
    errors = [each.error for each in outcomes if each.fate is LetterFate.NOT_SENT and each.error is not None]
    if errors and len(errors) == len(outcomes):
        raise errors[0]
    return outcomes


async def redrive_letters(
    cluster: Cluster, topic: str, wanted: Selection, to: str | None = None, *, dry_run: bool = False
) -> tuple[int, bool]:
    """Copy letters back to their topics, or to another one: how many, and whether there are more than were wanted.

    Exactly the selected letters are sent, and none that arrive meanwhile. A dry run only counts them. Raises
    CommandError with the places of the letters that were not sent, if only some were.
    """
    plan = await plan_redrive(cluster, topic, wanted, to)
    if not dry_run:
        _check_all_sent(topic, await send_letters(cluster, topic, plan.places, to))
    return len(plan.places), plan.is_cut


def _check_all_sent(topic: str, outcomes: list[LetterOutcome]) -> None:
    failed = [each for each in outcomes if each.fate is not LetterFate.SENT]
    if not failed:
        return
    parts = [f"only {len(outcomes) - len(failed)} of {len(outcomes)} letters were sent: {failed[0].why}"]
    for fate in (LetterFate.NOT_SENT, LetterFate.UNKNOWN, LetterFate.GONE):
        places = " ".join(str(each.place) for each in failed if each.fate is fate)
        if places:
            parts.append(f"{fate.value}: {places}")
    hint = f"`ottla dlq redrive {topic} --letter …` sends those that were not sent; look first whether the others came"
    raise CommandError("; ".join(parts), hint)


class _Redriving:
    """Sends some letters of one topic."""

    def __init__(
        self, cluster: Cluster, topic: str, wanted: list[LetterPlace], to: str | None, max_s: float | None
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._wanted = wanted
        self._to = to
        self._max_s = max_s
        now_s = asyncio.get_running_loop().time()
        self._take_until_s = None if max_s is None else now_s + max_s * _TAKING
        self._until_s = None if max_s is None else now_s + max_s
        self._outcomes: dict[LetterPlace, LetterOutcome] = {}

    async def run(self) -> list[LetterOutcome]:
        from ottla.client.producer.producer import Producer

        sending: dict[LetterPlace, asyncio.Future[RecordMetadata]] = {}
        async with Producer(self._cluster, self._options()) as producer:
            rest = await self._take(producer, sending)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._until_s):
                    await producer.flush()
            await producer.close(discard=True)  # what is not acknowledged by now fails
        for place, sent in sending.items():
            self._outcomes[place] = _outcome(place, sent)
        return [self._outcomes.get(place, LetterOutcome(place, *rest)) for place in self._wanted]

    def _options(self) -> ProducerOptions:
        from ottla.client.producer.options import ProducerOptions

        if self._max_s is None:
            return ProducerOptions(auto_create_topics=False)
        most_ms = max(int(self._max_s * 1000), 1)
        return ProducerOptions(
            request_timeout_ms=most_ms,
            delivery_timeout_ms=most_ms,
            max_block_ms=int(most_ms * _BLOCKED),
            auto_create_topics=False,
        )

    async def _take(
        self, producer: Producer, sending: dict[LetterPlace, asyncio.Future[RecordMetadata]]
    ) -> tuple[LetterFate, str, Exception | None]:
        """Hand the letters to the producer; return what is true of those that are neither sent nor refused."""
        from ottla.client.errors import ClientError
        from ottla.model.errors import ApiError

        left = set(self._wanted)
        try:
            async with asyncio.timeout_at(self._take_until_s):
                spans = await spans_of_letters(self._cluster, self._topic, left)
            async with aclosing(read_letters(self._cluster, spans)) as letters:
                while left and (found := await self._next(letters)) is not None:
                    record, letter = found
                    place = LetterPlace(record.partition, record.offset)
                    if letter is None or place not in left:
                        continue
                    left.remove(place)
                    try:
                        sending[place] = await self._enqueue(producer, letter)
                    except (ApiError, ClientError) as error:
                        self._outcomes[place] = _failed(place, error)
        except TimeoutError:
            return LetterFate.NOT_SENT, "there was no time for it", None
        except (ApiError, ClientError) as error:
            return LetterFate.NOT_SENT, message_of(error), error
        return LetterFate.GONE, "there is no such letter", None

    async def _next(
        self, letters: AsyncGenerator[tuple[ConsumedRecord, DeadLetter | None], None]
    ) -> tuple[ConsumedRecord, DeadLetter | None] | None:
        """The next record. Raises TimeoutError when the time for taking letters is over."""
        if self._take_until_s is not None and asyncio.get_running_loop().time() >= self._take_until_s:
            raise TimeoutError
        async with asyncio.timeout_at(self._take_until_s):
            return await anext(letters, None)

    async def _enqueue(self, producer: Producer, letter: DeadLetter) -> asyncio.Future[RecordMetadata]:
        record = letter.record
        target = self._to or letter.topic
        # In another topic, or one with fewer partitions by now, the key decides the partition, as for any record.
        async with asyncio.timeout_at(self._take_until_s):
            count = (await self._cluster.topic(target)).partition_count
        partition = letter.partition if self._to is None and letter.partition < count else None
        headers = redriven_headers(record, record.headers)
        # It is not cancelled: whether the producer had the record would not be known. `max_block_ms` ends it.
        return await producer.enqueue(target, record.value, record.key, headers=headers, partition=partition)


def _outcome(place: LetterPlace, sent: asyncio.Future[RecordMetadata]) -> LetterOutcome:
    error = sent.exception()
    if error is None:
        return LetterOutcome(place, LetterFate.SENT)
    if not isinstance(error, Exception):
        raise error
    return _failed(place, error)


def _failed(place: LetterPlace, error: Exception) -> LetterOutcome:
    from ottla.client.producer.errors import may_be_written

    fate = LetterFate.UNKNOWN if may_be_written(error) else LetterFate.NOT_SENT
    return LetterOutcome(place, fate, message_of(error), error)
