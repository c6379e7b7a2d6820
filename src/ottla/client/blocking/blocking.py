"""The client for code without an event loop of its own: scripts, tests, Spark's driver.

    with Blocking("host:port") as client:
        client.send("topic", b"value")
        consumer = client.consumer(ConsumerOptions(group_id="g"))
        consumer.subscribe(["topic"])
        for record in consumer: ...

Rules:
- It adds nothing: every call is one call of the asyncio client, with the same name and types (see `faces`).
- The event loop runs in a thread of its own from the first call to `close`. So the client's background work
  (heartbeats, batches that leave after `linger_ms`, automatic retries) goes on while the caller does something else.
- Calls may come from any thread except the loop's. Objects that are created on first use are created in the loop, so
  that only one is created.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import TypeVar

from ottla.client.admin import Admin
from ottla.client.blocking.admin import BlockingAdmin
from ottla.client.blocking.consumers import BlockingConsumer, BlockingShareConsumer, BlockingTransaction, close_after
from ottla.client.blocking.faces import Face, waits
from ottla.client.cluster import Cluster
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.offsets import EARLIEST, LATEST, Time
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.consumer.ranges import ConsumedRecord, RangeReader, ReadOptions, Span, decode_batch
from ottla.client.options import ClientOptions, GivenSecurity
from ottla.client.producer.accumulator import RecordMetadata
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.options import ShareOptions

T = TypeVar("T")
_CLOSED = "the client is closed"


class Blocking(Face[Producer]):
    """A synchronous client of one cluster: a blocking face of its producer that also creates consumers and readers."""

    def __init__(
        self,
        bootstrap: str | ClientOptions,
        producer: ProducerOptions | None = None,
        *,
        security: GivenSecurity = None,
    ) -> None:
        self.runner = self
        self._loop = _LoopThread()
        self.cluster = Cluster(bootstrap, security=security)
        self.admin = BlockingAdmin(self, Admin(self.cluster))
        self._producer_options = producer
        self._producer: Producer | None = None
        self._consumers: list[Consumer | ShareConsumer] = []
        self._is_closing = False

    def __enter__(self) -> "Blocking":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(lambda producer: producer.close_after(error))

    def close(self, *, discard: bool = False) -> None:
        """Deliver the buffered records (unless `discard` is set), close the consumers, then close everything else."""
        self._close(lambda producer: producer.close(discard=discard))

    def _close(self, close_producer: Callable[[Producer], Coroutine[object, None, None]]) -> None:
        error = sys.exception()

        async def close_consumer(
            consumer: Consumer | ShareConsumer, _: object, failure: BaseException | None, *__: object
        ) -> None:
            await close_after(consumer, error or failure)

        async def close() -> None:
            # The producer closes first: a consumer's last commit may cover records whose results are still buffered
            # there.
            self._is_closing = True
            async with AsyncExitStack() as stack:
                stack.push_async_callback(self.cluster.close)
                for consumer in self._consumers:
                    stack.push_async_exit(partial(close_consumer, consumer))
                if self._producer is not None:
                    stack.push_async_callback(close_producer, self._producer)

        if not self._loop.is_closed:
            try:
                self.run(close())
            finally:
                self._loop.close()

    # --- the loop -----------------------------------------------------------------------------------------------

    def run(self, call: Coroutine[object, None, T]) -> T:
        """Run a coroutine of the asyncio client to its end and return its result."""
        return self._loop.run(call)

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an asynchronous iterator from synchronous code."""

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
            if not self._loop.is_closed:
                self.run(stop())

    def _make(self, kind: Callable[[], T]) -> T:
        """Create an object in the event loop that it belongs to, one at a time and not while the client closes."""

        async def make() -> T:
            if self._is_closing:
                raise RuntimeError(_CLOSED)
            return kind()

        return self.run(make())

    # --- writing ------------------------------------------------------------------------------------------------

    send = waits(Producer.send)
    post = waits(Producer.post)
    flush = waits(Producer.flush)

    @property
    def inner(self) -> Producer:
        """The producer, created when it is first needed."""
        return self._producer or self._make(self._make_producer)

    def _make_producer(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(self.cluster, self._producer_options)
        return self._producer

    def send_all(self, topic: str, pairs: Iterable[tuple[bytes | None, bytes | None]]) -> list[RecordMetadata]:
        """Append (key, value) pairs, batched, and wait until all are acknowledged; the first failure is raised."""
        producer = self.inner

        async def send() -> list[RecordMetadata]:
            waiting: list[Awaitable[RecordMetadata]] = [
                await producer.enqueue(topic, value, key) for key, value in pairs
            ]
            await producer.flush()
            return [await each for each in waiting]

        return self.run(send())

    def transaction(self) -> BlockingTransaction:
        """Return a transaction, to use as `with client.transaction() as txn:`; needs
        `ProducerOptions(transactional_id=...)`.
        """
        return BlockingTransaction(self, self.inner.transaction())

    # --- reading ------------------------------------------------------------------------------------------------

    def consumer(self, options: ConsumerOptions | None = None) -> BlockingConsumer:
        """Create a consumer on this client's cluster."""

        def make() -> Consumer:
            self._consumers.append(made := Consumer(self.cluster, options))
            return made

        return BlockingConsumer(self, self._make(make))

    def share_consumer(self, options: ShareOptions) -> BlockingShareConsumer:
        """Create a share consumer on this client's cluster."""

        def make() -> ShareConsumer:
            self._consumers.append(made := ShareConsumer(self.cluster, options))
            return made

        return BlockingShareConsumer(self, self._make(make))

    def read(
        self,
        topic: str,
        partition: int | None = None,
        *,
        start: int | Time = EARLIEST,
        end: int | Time | None = LATEST,
        options: ReadOptions | None = None,
    ) -> Iterator[ConsumedRecord]:
        """Yield the records of one partition, or of all; by default up to the present end."""
        for batch in self.iterate(self._reader(topic, partition, start, end, options).batches()):
            yield from decode_batch(batch)  # the loop is entered per batch, not per record

    def ranges(self, spans: Iterable[Span], options: ReadOptions | None = None) -> RangeReader:
        """Return a reader of spans; iterate over its records, its `batches()` or its `arrow()` with `iterate`."""
        return RangeReader(self.cluster, spans, options)

    def _reader(
        self,
        topic: str,
        partition: int | None,
        start: int | Time,
        end: int | Time | None,
        options: ReadOptions | None,
    ) -> RangeReader:
        if partition is None:
            indexes = [each.index for each in self.run(self.cluster.topic(topic)).partitions]
        else:
            indexes = [partition]
        return self.ranges([Span(topic, index, start, end) for index in indexes], options)


class _LoopThread:
    """An event loop in a thread of its own; the thread starts with the first call."""

    def __init__(self) -> None:
        self.is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._changing = threading.Lock()  # a call is either submitted before the loop ends, or refused

    def run(self, call: Coroutine[object, None, T]) -> T:
        if threading.current_thread() is self._thread:
            call.close()
            raise RuntimeError("called from a callback in the client's own loop, which would wait for itself")
        with self._changing:
            if self.is_closed:
                call.close()
                raise RuntimeError(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(call, self._started())
        try:
            return future.result()
        finally:
            if not future.done():
                future.cancel()  # the caller was interrupted

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            # A daemon: a program that forgets to close the client must still be able to end.
            self._thread = threading.Thread(target=self._serve, args=(self._loop,), name="ottla", daemon=True)
            self._thread.start()
        return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()

    def close(self) -> None:
        with self._changing:
            if self.is_closed:
                return
            self.is_closed = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join()
