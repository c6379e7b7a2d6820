"""The client for code without an event loop of its own: scripts, tests, Spark's driver.

Rules:
- A `Blocking` client owns a loop of its own and runs it only inside its calls: no threads. Hence what a producer still
  holds back leaves with `flush` (or the end of the `with` block), not by itself.
- It adds nothing: every call is one call of the asyncio client.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from ottla.client.accumulator import RecordMetadata
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.offsets import EARLIEST, LATEST, Time
from ottla.client.options import ClientOptions
from ottla.client.producer import Producer, ProducerOptions
from ottla.client.ranges import ConsumedRecord, RangeReader, ReadOptions, Span, decode_batch

T = TypeVar("T")


class Blocking:
    """One cluster, used synchronously: `with Blocking("host:port") as client: client.send("topic", b"value")`."""

    def __init__(self, bootstrap: str | ClientOptions, producer: ProducerOptions | None = None) -> None:
        self._runner = asyncio.Runner()
        self.cluster = Cluster(bootstrap)
        self.admin = Admin(self.cluster)  # its methods are coroutines: `client.run(client.admin.topics.names())`
        self._producer_options = producer
        self._producer: Producer | None = None

    def __enter__(self) -> "Blocking":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(discard=error is not None)

    def close(self, *, discard: bool = False) -> None:
        """Deliver what waits (unless it is to be discarded), then close everything."""
        try:
            if self._producer is not None:
                self.run(self._producer.close(discard=discard))
            self.run(self.cluster.close())
        finally:
            self._runner.close()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """Run any coroutine of the asyncio client to its end."""
        return self._runner.run(call)

    # --- writing ------------------------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Append one record and wait until it is acknowledged."""

        async def send() -> RecordMetadata:
            return await self._sender().send(
                topic, value, key, headers=headers, partition=partition, timestamp=timestamp
            )

        return self.run(send())

    def send_all(self, topic: str, pairs: Iterable[tuple[bytes | None, bytes | None]]) -> list[RecordMetadata]:
        """Append (key, value) pairs, batched, and wait until all are acknowledged; the first failure is raised."""

        async def send() -> list[RecordMetadata]:
            producer = self._sender()
            waiting: list[Awaitable[RecordMetadata]] = [
                await producer.enqueue(topic, value, key) for key, value in pairs
            ]
            await producer.flush()
            return [await each for each in waiting]

        return self.run(send())

    def _sender(self) -> Producer:
        if self._producer is None:  # made inside the loop, which its events belong to
            self._producer = Producer(self.cluster, self._producer_options)
        return self._producer

    # --- reading ------------------------------------------------------------------------------------------------

    def read(
        self,
        topic: str,
        partition: int | None = None,
        *,
        start: int | Time = EARLIEST,
        end: int | Time | None = LATEST,
        options: ReadOptions | None = None,
    ) -> Iterator[ConsumedRecord]:
        """Records of one partition, or of all; up to the present end unless told otherwise."""
        if partition is None:
            indexes = [each.index for each in self.run(self.cluster.topic(topic)).partitions]
        else:
            indexes = [partition]
        reader = RangeReader(self.cluster, [Span(topic, index, start, end) for index in indexes], options)
        for batch in self.iterate(reader.batches()):  # the loop is entered per batch, not per record
            yield from decode_batch(batch)

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Walk an asynchronous iterator from synchronous code."""

        async def step() -> tuple[bool, T | None]:
            try:
                return True, await anext(source)
            except StopAsyncIteration:
                return False, None

        async def stop() -> None:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

        try:
            while True:
                more, item = self.run(step())
                if not more:
                    return
                yield item  # type: ignore[misc]
        finally:
            self.run(stop())
