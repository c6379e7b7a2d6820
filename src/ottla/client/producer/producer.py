"""The producer: records in, acknowledgements out, in order and (with idempotence) exactly once per partition.

Rules:
- `send` waits until the record is acknowledged; `enqueue` waits only for room and metadata and returns a future; `post`
  does without the future, which is cheapest: the failure of a posted record is raised by the next `post`, `flush` or
  `close`. Records of one partition are appended in the order of these calls, also if many tasks send at once.
- Per broker and per partition up to `max_in_flight` batches are in flight. Batches with a transient error are sent
  again until `delivery_timeout_ms` is over; with idempotence neither order nor count suffers.
- When it is unknown whether a given-up batch is in the log, the producer takes a new producer id, so that the
  sequence of the following batches has no gap.
- `buffer_bytes` bounds the buffered records. A call waits only for room in the buffer, and for the metadata of a topic
  that is not known yet; both together up to `max_block_ms`. An unreachable broker holds up no call: cached metadata is
  good enough for choosing a partition, and the sender looks up the leaders.
- With a `transactional_id` every record belongs to a transaction: see `transaction`.
- Buffered records are delivered, also when an exception ends the block: see `__aexit__`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from operator import index
from types import TracebackType

from ottla.client.checks import checked_options, checked_topic, explained, mistake_in
from ottla.client.cluster import Cluster
from ottla.client.errors import BufferFull, ClientError, DeliveryFailed, TopicUnknown, check
from ottla.client.metadata import NoPartition, TopicInfo
from ottla.client.options import ClientOptions, GivenSecurity
from ottla.client.producer.accumulator import RECORD_OVERHEAD_BYTES, PartitionQueue, RecordMetadata
from ottla.client.producer.accumulator import headers_size_bytes as size_of_headers
from ottla.client.producer.hot_keys import SALT_HEADER, Salter
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.partitioner import StickyPartitions, partition_of_key
from ottla.client.producer.sender import Sender
from ottla.client.producer.topic_queues import TopicQueues
from ottla.client.producer.transaction import OpenTransaction, ProducerTransactions, Transaction
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerIdentity, TopicPartition
from ottla.records.batch import HEADER_BYTES
from ottla.records.build import EncodedRecords
from ottla.records.record import Headers
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest

__all__ = ["Producer", "ProducerOptions"]

log = logging.getLogger(__name__)

# Raised for a record that cannot be encoded.
_MISTAKES = (TypeError, ValueError, AttributeError)


class Producer:
    """Sends records. Use as `async with Producer("host:port") as producer: await producer.send("topic", b"value")`."""

    def __init__(
        self,
        cluster: "Cluster | ClientOptions | str",
        options: ProducerOptions | None = None,
        *,
        security: GivenSecurity = None,
    ) -> None:
        self.options = checked_options(options, ProducerOptions)
        self._owns_cluster = not isinstance(cluster, Cluster)
        self._cluster = Cluster.of(cluster, security)
        rng = self._cluster.options.rng
        self._sender = Sender(self._cluster, self.options, self._new_identity)
        self._queues = self._sender.queues
        self._topics = self._cluster.metadata.topics
        self._sticky = StickyPartitions(rng, self.options.batch_size_bytes)
        self._salter = Salter(self.options.salted_keys, rng) if self.options.salted_keys is not None else None
        # Used for every record, so cached in attributes.
        self._batch_size_bytes = self.options.batch_size_bytes
        self._max_request_bytes = self.options.max_request_bytes
        self._buffer_bytes = self.options.buffer_bytes
        self._is_plain = self._salter is None and self.options.partitioner is None
        self._topic_queues = TopicQueues()
        self._failures = 0  # the sender's count of failures when the salter last saw it
        self._now_ms = self._cluster.options.now_ms
        self._transactions: ProducerTransactions | None = None
        if self.options.transactional_id is not None:
            self._transactions = ProducerTransactions(self._cluster, self._sender, self.options)

    # --- life ---------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> "Producer":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Deliver the buffered records, whatever ended the block: a consumer may have committed the records that led
        to them. The buffered records of a transaction are discarded, because it cannot be completed once the block
        has failed.
        """
        await self.close_after(error)

    async def close_after(self, error: BaseException | None) -> None:
        """Close while this exception is being handled. A failed delivery is raised, with that exception as its
        context; an interruption (a cancelled task, Ctrl-C) waits a bounded time and is raised itself, with a note.
        """
        discard = error is not None and self._transactions is not None
        if error is None or isinstance(error, Exception):
            await self.close(discard=discard)
            return
        try:
            await self.close(discard=discard, timeout_ms=limits.INTERRUPTED_DELIVERY_MAX_MS)
        except (ApiError, ClientError) as failure:
            error.add_note(f"records that were posted before were not delivered: {failure}")
            log.warning("the producer was interrupted, and posted records were not delivered: %s", failure)

    async def close(self, *, discard: bool = False, timeout_ms: float | None = None) -> None:
        """Deliver the buffered records (unless `discard` is set) and stop. Records that are not delivered within
        `timeout_ms`, or within the delivery timeout, fail.
        """
        try:
            if not discard and not self._sender.closed:
                async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                    await self.flush()
        except TimeoutError:
            raise DeliveryFailed(f"not all records were acknowledged within {timeout_ms} ms of closing") from None
        finally:
            await self._sender.close()
            if self._transactions is not None:
                self._transactions.close()
            if self._owns_cluster:
                await self._cluster.close()

    async def flush(self) -> None:
        """Wait until all records sent so far are acknowledged or have failed; raise the failure of a posted record."""
        await self._sender.flush()
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure, self._sender.failure = self._sender.failure, None
        if failure is not None:
            raise failure

    # --- transactions -------------------------------------------------------------------------------------------

    async def init_transactions(self) -> None:
        """Take over the transactional id: older producers with it are fenced, and their open transaction is aborted.

        The first transaction calls it if necessary.
        """
        await self._transactional().init()

    def transaction(self) -> Transaction:
        """Return a transaction: `async with producer.transaction() as txn:` commits at the end, and aborts if the
        block raises.
        """
        return Transaction(self._transactional())

    def _transactional(self) -> ProducerTransactions:
        if self._transactions is None:
            raise ValueError("transactions need ProducerOptions(transactional_id=...)")
        return self._transactions

    async def take(self) -> OpenTransaction:
        """Take over the transactional id as `init_transactions` does, and return it for another process to `adopt`."""
        return await self._transactional().take()

    async def begin(self) -> None:
        """Open a transaction without a block: `hand_over` or `abort` ends it."""
        await self._transactional().begin()

    async def abort(self) -> None:
        """Abort the open transaction."""
        await self._transactional().abort()

    async def hand_over(self) -> OpenTransaction:
        """Deliver everything, and return the open transaction for another process to end (`producer.handover`)."""
        return await self._transactional().hand_over()

    def adopt(self, transaction: OpenTransaction) -> None:
        """Continue with a transactional id that another producer took over; fenced if yet another one took it since."""
        self._transactional().adopt(transaction)

    # --- sending ------------------------------------------------------------------------------------------------

    async def send(
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
        return await (await self.enqueue(topic, value, key, headers=headers, partition=partition, timestamp=timestamp))

    async def enqueue(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> "asyncio.Future[RecordMetadata]":
        """Put one record into its partition's batch; return a future that completes when the record is acknowledged."""
        future: asyncio.Future[RecordMetadata] = asyncio.Future()
        try:
            pairs: Headers = tuple((name, content) for name, content in headers) if headers else ()
            if (
                topic in self._topic_queues
                or (full := self._append(topic, value, key, pairs, partition, timestamp, future)) is None
            ):
                full = await self._append_in_turn(topic, value, key, pairs, partition, timestamp, future)
        except _MISTAKES as error:
            raise explained(error, topic, value, key, headers, partition, timestamp) from None
        if full:
            await asyncio.sleep(0)
        return future

    async def post(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Iterable[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Put one record into its partition's batch and return, without a future."""
        if self._sender.failure is not None:
            self._raise_failure()
        try:
            pairs: Headers = tuple((name, content) for name, content in headers) if headers else ()
            if (
                topic in self._topic_queues
                or (full := self._append(topic, value, key, pairs, partition, timestamp, None)) is None
            ):
                full = await self._append_in_turn(topic, value, key, pairs, partition, timestamp, None)
        except _MISTAKES as error:
            raise explained(error, topic, value, key, headers, partition, timestamp) from None
        if full:
            await asyncio.sleep(0)  # a batch is full: let the sender run before the buffer is full

    async def post_encoded(
        self, partition: TopicPartition, records: EncodedRecords, future: "asyncio.Future[RecordMetadata] | None" = None
    ) -> None:
        """Send records that are encoded already (`records.build_columns`) as a batch of their own; afterwards their
        memory may be overwritten. The future, if given, completes when the first of them is acknowledged.
        """
        if self._sender.failure is not None:
            self._raise_failure()
        size_bytes = len(records.data) + HEADER_BYTES
        async with self._patience(*partition), self._topic_queues.of(partition.topic):
            while True:
                self._check_sendable(size_bytes)
                await self._know(*partition)
                if self._sender.buffer.has_room(size_bytes):
                    break
                await self._sender.buffer.wait_for_room(size_bytes)
            queue = self._queues.get(partition)
            if queue is None:
                queue = self._queues[partition] = PartitionQueue(partition)
            batch = queue.new_batch(asyncio.get_running_loop().time())
            self._sender.fill(batch, records)
            queue.take(batch)
            if future is not None:
                batch.watch(0, records.base_timestamp, future)
            self._sender.added(queue, batch.size_bytes, ready=True)
        await asyncio.sleep(0)

    def _append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp: int | None,
        future: "asyncio.Future[RecordMetadata] | None",
    ) -> bool | None:
        """Encode the record into its batch, or return None if it has to wait; return True when a batch is full."""
        sender = self._sender
        size_bytes = RECORD_OVERHEAD_BYTES + (len(value) if value is not None else 0)
        if key is not None:
            size_bytes += len(key)
        if headers:
            size_bytes += size_of_headers(headers)
        if (
            (info := self._topics.get(topic)) is None
            or sender.buffer.used_bytes + size_bytes > self._buffer_bytes
            or size_bytes > self._max_request_bytes
            or sender.closed
            or (self._transactions is not None and not self._transactions.is_open)
        ):
            return None
        if timestamp is None:
            timestamp = self._now_ms()
        elif not -limits.INT64_MAX <= index(timestamp) <= limits.INT64_MAX:
            raise ValueError(f"a timestamp is a number of milliseconds in 64 bits, not {timestamp}")
        if partition is None:
            if key is not None and self._is_plain:
                partition = partition_of_key(key, len(info.partitions))
            else:
                partition, headers = self._choose(info, key, value, headers, size_bytes)
        elif partition >= len(info.partitions) and info.partition(partition) is None:
            return None  # there may be a queue: the topic was recreated with fewer partitions
        queue = self._queues.get((topic, partition))  # type: ignore[call-overload]  # equal to a TopicPartition
        if queue is None:
            if info.partition(partition) is None:
                return None
            place = TopicPartition(topic, partition)
            queue = self._queues[place] = PartitionQueue(place)
        batch_size_bytes = self._batch_size_bytes
        batch = queue.open_batch(size_bytes, batch_size_bytes)
        is_new = batch is None
        if batch is None:
            batch = queue.new_batch(self._time_s(info))
        try:
            grown = batch.add(timestamp, key, value, headers)
        except Exception:
            if self._salter is not None:
                self._salter.restart()  # the number of this record will never be read
            raise
        if future is not None:
            batch.watch(batch.count - 1, timestamp, future)
        if is_new:
            queue.take(batch)
        is_full = batch.size_bytes >= batch_size_bytes or (is_new and len(queue.waiting) > 1)
        sender.added(queue, batch.size_bytes if is_new else grown, ready=is_new or is_full)
        return is_full

    async def _append_in_turn(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp: int | None,
        future: "asyncio.Future[RecordMetadata] | None",
    ) -> bool:
        """Run `_append` once all earlier callers are done and it does not have to wait."""
        mistake = None if topic in self._topics else mistake_in(topic, value, key, headers, partition, timestamp)
        if mistake is not None:
            raise mistake  # before the metadata request, which may create the topic
        async with self._patience(topic, partition), self._topic_queues.of(topic):
            while (full := self._append(topic, value, key, headers, partition, timestamp, future)) is None:
                await self._make_way(topic, value, key, headers, partition)
            return full

    @asynccontextmanager
    async def _patience(self, topic: str, partition: int | None) -> AsyncIterator[None]:
        """End any wait inside after `max_block_ms`, with an error that says what it waited for."""
        try:
            async with asyncio.timeout(self.options.max_block_ms / 1000):
                yield
        except TimeoutError:
            within = f"within {self.options.max_block_ms} ms"
            if self._knows(topic, partition):
                raise BufferFull(f"no room in the buffer {within}") from None
            place = f"topic {topic!r}" if partition is None else str(TopicPartition(topic, partition))
            raise TopicUnknown(f"nothing known of {place} {within}") from None

    def _choose(
        self, info: TopicInfo, key: bytes | None, value: bytes | None, headers: Headers, size_bytes: int
    ) -> tuple[int, Headers]:
        if key is not None and self._salter is not None:
            if self._sender.failures != self._failures:
                self._failures = self._sender.failures
                self._salter.restart()
            place = self._salter.place(info.name, key, info.partition_count)
            if place is not None:
                return place[0], (*headers, (SALT_HEADER, place[1].encode()))
        if self.options.partitioner is not None:
            partition = self.options.partitioner(info.name, key, value, info.partition_count)
            if info.partition(partition) is None:
                raise ValueError(f"the partitioner chose {partition} of {info.partition_count} partitions")
            return partition, headers
        if key is not None:
            return partition_of_key(key, info.partition_count), headers
        return self._sticky.choose(info, size_bytes), headers

    def _time_s(self, info: TopicInfo) -> float:
        """Return the loop's time; called for each new batch, so also refresh old metadata in the background."""
        now_s = asyncio.get_running_loop().time()
        if now_s - info.fetched_at_s > self._cluster.options.metadata_max_age_ms / 1000:
            self._sender.refresh(info.name)
        return now_s

    async def _make_way(
        self, topic: str, value: bytes | None, key: bytes | None, headers: Headers, partition: int | None
    ) -> None:
        """Wait for metadata or room, because of which `_append` did not take the record; raise an error that is
        permanent.
        """
        size_bytes = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"") + size_of_headers(headers)
        self._check_sendable(size_bytes)
        await self._know(topic, partition)
        await self._sender.buffer.wait_for_room(size_bytes)

    def _check_sendable(self, size_bytes: int) -> None:
        """Raise if the record can never be sent now."""
        if size_bytes > min(self.options.max_request_bytes, self.options.buffer_bytes):
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a record of {size_bytes} bytes is larger than max_request_bytes={self.options.max_request_bytes}",
            )
        if self._sender.closed:
            raise DeliveryFailed("the producer is closed")
        if self._transactions is not None:
            self._transactions.check_open()

    def _knows(self, topic: str, partition: int | None) -> bool:
        """Return whether the partition is known, so that a record can be queued; its leader does not matter."""
        info = self._topics.get(topic)
        return info is not None and (partition is None or info.partition(partition) is not None)

    async def _know(self, topic: str, partition: int | None) -> None:
        """Request the topic's metadata unless it is known. Raise if the partition does not exist."""
        if self._knows(topic, partition):
            return
        checked_topic(topic)
        self._cluster.metadata.mark_stale(topic)
        info = await self._cluster.topic(topic, auto_create=self.options.auto_create_topics)
        if partition is not None and info.partition(partition) is None:
            raise NoPartition(topic, info.partition_count, partition)

    async def _new_identity(self) -> ProducerIdentity:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=limits.INT32_MAX)
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        check(answer.error_code)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)
