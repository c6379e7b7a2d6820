"""Consumers of the blocking client.

Rules:
- They live in the client's event loop, which runs in a thread of its own: heartbeats go on while the caller works,
  however long that takes. A caller that does not poll for `max_poll_interval_ms` still leaves its group.
- Listeners and callbacks are called in that thread, and must not call the blocking client.
- If a waiting caller is interrupted (Ctrl-C), records that arrived meanwhile were not handed out: they are handed out
  by the next call.
- Closing the client closes its consumers; `with` closes one earlier.
"""

import sys
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TypeVar

from ottla.client.blocking.faces import CoroutineRunner, Face, calls, waits, walks
from ottla.client.consumer.consumer import READ_TWICE, Consumer
from ottla.client.consumer.each import Each
from ottla.client.consumer.fetched import ConsumedRecord
from ottla.client.producer.transaction import Transaction
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.delivery import Delivery
from ottla.model.ids import TopicPartition

C = TypeVar("C", Consumer, ShareConsumer)


class _Closing(Face[C]):
    """A blocking face of a consumer that `with` closes."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the consumer. If an exception is being handled, the records that were handed out last count as not
        handled.
        """
        self.runner.run(close_after(self.inner, sys.exception()))


async def close_after(consumer: Consumer | ShareConsumer, error: BaseException | None) -> None:
    """Close a consumer whose caller is in another thread, in which `error` is being handled (None: no exception)."""
    if error is not None:
        consumer.not_handled()
    await consumer.close()


class BlockingEach(Face[Each]):
    """`Each` for code without an event loop."""

    commit = waits(Each.commit)
    committed = waits(Each.committed)
    offsets_for_times = waits(Each.offsets_for_times)
    beginning_offsets = waits(Each.beginning_offsets)
    end_offsets = waits(Each.end_offsets)


class BlockingConsumer(_Closing[Consumer]):
    """`Consumer` for code without an event loop."""

    def __init__(self, runner: CoroutineRunner, inner: Consumer) -> None:
        super().__init__(runner, inner)
        self._reading = threading.Lock()  # held by the thread that iterates

    subscribe = calls(Consumer.subscribe)
    unsubscribe = waits(Consumer.unsubscribe)
    assign = calls(Consumer.assign)
    group_metadata = calls(Consumer.group_metadata)
    poll = waits(Consumer.poll, interrupted=Consumer.not_handled)
    arrow = walks(Consumer.arrow, interrupted=Consumer.not_handled)
    position = calls(Consumer.position)
    seek = calls(Consumer.seek)
    seek_to_beginning = calls(Consumer.seek_to_beginning)
    seek_to_end = calls(Consumer.seek_to_end)
    pause = calls(Consumer.pause)
    resume = calls(Consumer.resume)
    paused = calls(Consumer.paused)
    lag = calls(Consumer.lag)
    failures = calls(Consumer.failures)
    not_handled = calls(Consumer.not_handled)
    hold_back = calls(Consumer.hold_back)
    commit = waits(Consumer.commit)
    committed = waits(Consumer.committed)
    offsets_for_times = waits(Consumer.offsets_for_times)
    beginning_offsets = waits(Consumer.beginning_offsets)
    end_offsets = waits(Consumer.end_offsets)
    _next = waits(Consumer.__anext__, interrupted=Consumer.not_handled)

    def __enter__(self) -> "BlockingConsumer":
        return self

    @property
    def assignment(self) -> list[TopicPartition]:
        return self.inner.assignment

    @property
    def each(self) -> BlockingEach:
        """Operations over several partitions, with an outcome per partition."""
        return BlockingEach(self.runner, self.inner.each)

    def __iter__(self) -> Iterator[ConsumedRecord]:
        return self

    def __next__(self) -> ConsumedRecord:
        # The buffer of the iteration changes only inside the caller's own calls, so the loop is entered once per batch.
        if not self._reading.acquire(blocking=False):
            raise RuntimeError(READ_TWICE)
        try:
            return self.inner.next_at_hand() or self._next()
        except StopAsyncIteration:
            raise StopIteration from None
        finally:
            self._reading.release()


class BlockingShareConsumer(_Closing[ShareConsumer]):
    """`ShareConsumer` for code without an event loop. Deliveries are the asyncio ones:
    acknowledging them never waits.
    """

    subscribe = calls(ShareConsumer.subscribe)
    poll = waits(ShareConsumer.poll, interrupted=ShareConsumer.not_received)
    not_handled = calls(ShareConsumer.not_handled)
    commit = waits(ShareConsumer.commit)
    _next = waits(ShareConsumer.__anext__, interrupted=ShareConsumer.not_received)

    def __enter__(self) -> "BlockingShareConsumer":
        return self

    @property
    def assignment(self) -> list[TopicPartition]:
        return self.inner.assignment

    @property
    def member_id(self) -> str:
        return self.inner.member_id

    def __iter__(self) -> Iterator[Delivery]:
        return self

    def __next__(self) -> Delivery:
        try:
            return self._next()
        except StopAsyncIteration:
            raise StopIteration from None


class BlockingTransaction(Face[Transaction]):
    """A transaction; `with client.transaction() as txn:` commits at the end of the block, and aborts when it raises."""

    send_offsets = waits(Transaction.send_offsets)
    commit = waits(Transaction.commit)
    abort = waits(Transaction.abort)
    _begin = waits(Transaction.__aenter__)
    _end = waits(Transaction.__aexit__)

    def __enter__(self) -> "BlockingTransaction":
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(kind, error, trace)
