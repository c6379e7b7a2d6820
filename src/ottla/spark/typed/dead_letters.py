"""Send bad records to a dead-letter topic, unchanged, with added headers for their origin and the reason.

The letters are acknowledged by all in-sync replicas before their batch goes on, so none is lost: a task that cannot
send its letters fails. A task that is run again (a retry, a speculative copy, another action over the same rows) sends
its letters again; by the headers copies of one record can be recognised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from ottla.client.errors import (
    BufferFull,
    ClientError,
    ConnectionLost,
    DeliveryFailed,
    NotConnected,
    RequestTimedOut,
)
from ottla.client.options import ClientOptions
from ottla.client.producer.producer import Producer
from ottla.model.errors import ApiError

PREFIX = "ottla.dlq."
_UNANSWERED = (NotConnected, ConnectionLost, RequestTimedOut, DeliveryFailed, BufferFull)
_SAID = ("topic", "partition", "offset", "reason", "timestamp")


class Letter(NamedTuple):
    """One dead letter."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def letters(dead: pa.RecordBatch) -> Iterator[Letter]:
    """The dead letters for rows of `typed.reading.Applied.dead`."""
    # A record's timestamp may be any 64-bit number, also one outside of Python's range of years.
    micros = dead.column("timestamp").cast(pa.int64())
    rows = dead.drop_columns(["timestamp"]).append_column("timestamp", micros).to_pylist()
    for row in rows:
        own = [(each["key"], each["value"]) for each in row["headers"] or () if not each["key"].startswith(PREFIX)]
        row["timestamp"] //= 1000
        added = [(PREFIX + name, str(row[name]).encode("utf-8", "replace")) for name in _SAID]
        yield Letter(row["key"], row["value"], (*own, *added))


class Undelivered(RuntimeError):
    """A dead letter cannot be sent, so its batch cannot go on; the message says which letter, and why."""


class UndeliveredYet(Undelivered):
    """The broker did not answer, or the error is retriable: another run of the batch may send the letter."""


def send_dead(options: ClientOptions, topic: str, dead: pa.RecordBatch) -> None:
    """Send rows of `typed.reading.Applied.dead` and wait until they are acknowledged. Raises Undelivered."""
    asyncio.run(_send(options, topic, list(letters(dead))))


async def _send(options: ClientOptions, topic: str, dead: list[Letter]) -> None:
    async with Producer(options) as producer:
        sent: list[asyncio.Future[Any]] = []
        for letter in dead:
            try:
                sent.append(await producer.enqueue(topic, letter.value, letter.key, headers=letter.headers))
            except (ClientError, ApiError) as error:
                raise _undelivered(letter, topic, error) from error
        for letter, failure in zip(dead, await asyncio.gather(*sent, return_exceptions=True), strict=True):
            if isinstance(failure, BaseException):
                raise _undelivered(letter, topic, failure) from failure


def _undelivered(letter: Letter, topic: str, error: BaseException) -> Undelivered:
    said = {name.removeprefix(PREFIX): (value or b"").decode() for name, value in letter.headers[-len(_SAID) :]}
    where = f"offset {said['offset']} of {said['topic']}-{said['partition']}"
    passes = error.code.retriable if isinstance(error, ApiError) else isinstance(error, _UNANSWERED)
    kind = UndeliveredYet if passes else Undelivered
    return kind(f"the record at {where} does not decode ({said['reason']}), and cannot be sent to {topic}: {error}")
