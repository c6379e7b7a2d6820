"""The sender: takes batches from the queues, sends them to the leaders, and handles the answers.

Rules:
- It runs in callbacks of the loop (`wake` schedules a run), never in a task: all batches that may leave are written in
  one go, so that nothing comes between choosing a batch and writing it, and batches of a partition stay in order.
- Per broker up to `max_in_flight` requests, each with at most one batch per partition; per partition as many batches
  in flight as `PartitionQueue` allows.
- Batches with a transient error are sent again until `delivery_timeout_ms` (or `retries`) is over. A leader that is
  gone, or leads no more, is looked up at once, and waiting batches leave as soon as another one is known.
- A gap in the sequence makes the identity useless. An idempotent producer takes a new one; a transactional one tells
  its transaction, which can then only be aborted.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from ottla.client.cluster import Cluster, Purpose
from ottla.client.errors import ClientError, DeliveryFailed, error_code
from ottla.client.metadata import NO_LEADER, TopicInfo
from ottla.client.producer.accumulator import PartitionQueue, ProducerBatch, Sealing
from ottla.client.producer.buffer import Buffer
from ottla.client.producer.errors import (
    FENCED,
    IN_DOUBT,
    LOST_TRACK,
    SUCCESS,
    TOO_LARGE,
    has_moved,
    is_final,
    undelivered,
)
from ottla.client.producer.links import Link
from ottla.client.producer.messages import PartitionAnswer, Sent, by_partition, produce
from ottla.client.producer.options import ProducerOptions
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerIdentity, TopicPartition
from ottla.records.build import EncodedRecords
from ottla.wire.messages.records.produce import ProduceRequest, ProduceResponse

# The broker itself waits up to timeout_ms for replicas: its answer takes a little longer than that.
_ANSWER_SPARE_MS = 5_000
_CONCURRENT_BACKOFF_MS = 20  # while the end of the former transaction is being written, which takes only a moment


class Gate(Protocol):
    """The part of a transaction that the sender uses."""

    produce_version_max: int | None
    aborting: bool  # no batch is sent again

    def admits(self, partition: TopicPartition) -> bool:
        """Return whether the partition is part of the transaction; if not, the sender is woken when it is."""
        ...

    def failed(self, error: Exception, *, hole: bool) -> None:
        """Note that records were not delivered; `hole`: the sequence cannot continue with this epoch."""
        ...


class Sender:
    """The queues of one producer, and the requests that send their batches."""

    def __init__(self, cluster: Cluster, options: ProducerOptions, identify: Callable[[], Awaitable[ProducerIdentity]]):
        self.queues: dict[TopicPartition, PartitionQueue] = {}
        self.buffer = Buffer(options.buffer_bytes)
        self.identity = ProducerIdentity()
        self.gate: Gate | None = None
        self.closed = False
        self.failures = 0  # batches given up so far
        self.failure: Exception | None = None  # of a record without a future
        self._cluster = cluster
        self._options = options
        self._identify = identify
        self._sealing = Sealing(options.compression, options.codec_level, options.transactional_id is not None)
        self._links: dict[int, Link] = {}
        self._active: dict[PartitionQueue, None] = {}  # queues with batches, the one served last at the end
        self._progress: list[asyncio.Future[None]] = []  # futures of `flush` calls
        self._flushing = 0
        self._asking: dict[str | None, asyncio.Task[None]] = {}  # requests by topic; None: for the producer id
        self._woken = False
        self._timer: asyncio.TimerHandle | None = None

    # --- life ---------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Stop; records that are not delivered fail."""
        what = "the producer was closed before the record was delivered"
        self._stop(undelivered(what, written=True), undelivered(what, written=False))
        tasks = [*self._asking.values(), *(each.preparing for each in self._links.values() if each.preparing)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for link in self._links.values():
            link.close()

    def _stop(self, error: BaseException, unwritten: BaseException | None = None) -> None:
        """Fail all batches; those that are surely in no log with `unwritten`, if it is given."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        for queue in self.queues.values():
            for batch in queue.in_flight:
                batch.fail(error)
            for batch in queue.waiting:
                batch.fail(error if batch.in_doubt or unwritten is None else unwritten)
            queue.in_flight.clear()
            queue.waiting.clear()
        self._active.clear()
        self.buffer.close()
        self._free(self.buffer.used_bytes)

    async def flush(self) -> None:
        """Wait until every batch that exists now is acknowledged or has failed."""
        self._flushing += 1
        try:
            self.wake()
            await self._settled()
        finally:
            self._flushing -= 1

    async def _settled(self) -> None:
        targets = [(queue, queue.newest) for queue in self._active]
        while targets := [each for each in targets if not each[0].settled_up_to(each[1])]:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._progress.append(waiter)
            await waiter

    async def discard(self, error: Exception) -> None:
        """Fail all waiting batches, and wait for the answers to those in flight."""
        self.failures += 1
        self.fail_waiting(error)
        await self._settled()

    def fail_waiting(self, error: Exception) -> None:
        for queue in list(self._active):
            for batch in tuple(queue.waiting):
                self._fail(queue, batch, error)

    def fill(self, batch: ProducerBatch, records: EncodedRecords) -> None:
        """Fill a batch with records that are encoded already."""
        batch.fill(records, self._sealing)

    def added(self, queue: PartitionQueue, size_bytes: int, *, ready: bool) -> None:
        """Count bytes appended to a queue; `ready`: a batch is full, or there is a new one with a time to leave."""
        self.buffer.used_bytes += size_bytes
        if ready:
            self._active[queue] = None
            self.wake()

    def _free(self, size_bytes: int) -> None:
        self.buffer.free(size_bytes)
        for waiter in self._progress:
            if not waiter.done():
                waiter.set_result(None)
        self._progress.clear()

    # --- runs ---------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Schedule a run of the sender."""
        if not self._woken and not self.closed:
            self._woken = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._woken = False
        if self.closed:
            return
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            next_s = self._send_ready(loop.time())
        except Exception as error:  # a bug: no caller may be left waiting for ever
            self._stop(error)
            raise
        if next_s is not None:
            self._timer = loop.call_at(next_s, self.wake)

    def _send_ready(self, now_s: float) -> float | None:
        """Write a request to every broker that has ready batches; return when the next batch is due."""
        options = self._options
        linger_s, flushing = options.linger_ms / 1000, self._flushing > 0
        next_s: float | None = None
        ready: dict[int, list[PartitionQueue]] = {}
        for queue in list(self._active):
            due_s = queue.ready_at_s(linger_s, options.batch_size_bytes, flushing=flushing)
            if due_s is None:
                if not queue.in_flight:
                    del self._active[queue]
            elif due_s > now_s:
                next_s = due_s if next_s is None else min(next_s, due_s)
            elif self._gave_up(queue, now_s):
                self.wake()
            elif queue.may_start(self.identity, options.in_flight_per_partition_max):
                leader = self._leader_of(queue)
                if leader is not None and self._is_ready(leader):
                    ready.setdefault(leader, []).append(queue)
        for node_id, queues in ready.items():
            self._send(node_id, queues)
        return next_s

    def _leader_of(self, queue: PartitionQueue) -> int | None:
        """Return the leader; None while it (or the producer id) is not known and a task requests it."""
        if self._options.is_idempotent and self.identity.producer_id < 0:
            if self.gate is None:
                self._ask(None)
            return None
        topic, leader = queue.partition.topic, self._leadership(queue.partition)[0]
        if leader == NO_LEADER and topic not in self._asking:
            self._cluster.metadata.mark_stale(topic)
        if self._cluster.metadata.fresh(topic) is None:
            self._ask(topic)
            return None
        if leader == NO_LEADER:
            return None  # the task that asked is about to report it
        if self.gate is not None and not self.gate.admits(queue.partition):
            return None
        return leader

    def _leadership(self, partition: TopicPartition) -> tuple[int, int]:
        """Return (leader, leader epoch) from the metadata; it may be stale."""
        topic = self._cluster.metadata.topics.get(partition.topic)
        info = topic.partition(partition.partition) if topic is not None else None
        return (NO_LEADER, NO_LEADER) if info is None else (info.leader, info.leader_epoch)

    def _is_ready(self, node_id: int) -> bool:
        """Return whether a request may be written now; if a connection or room is missing, a task waits for it."""
        link = self._links.get(node_id)
        if link is None:
            link = self._links[node_id] = Link(partial(self._silent, node_id))
        if link.in_flight >= self._options.max_in_flight or link.preparing is not None:
            return False
        if link.connection is not None and link.connection.is_open and link.connection.has_room:
            return True
        link.preparing = asyncio.create_task(self._prepare(node_id, link))
        return False

    async def _prepare(self, node_id: int, link: Link) -> None:
        try:
            if link.connection is None or not link.connection.is_open:
                link.connection = None
                link.connection = await self._cluster.connection(node_id, Purpose.PRODUCE)
            await link.connection.wait_for_room()
        except (ApiError, ClientError) as error:
            failure = error
            self._unreachable(
                lambda queue: failure if self._leadership(queue.partition)[0] == node_id else None, asks=True
            )
        finally:
            link.preparing = None
            self.wake()

    # --- metadata and producer id -------------------------------------------------------------------------------

    def refresh(self, topic: str) -> None:
        """Refresh the topic's metadata in the background."""
        self._ask(topic)

    def _silent(self, node_id: int) -> None:
        """Refresh the leaders of partitions whose broker owes answers and gives none."""
        for queue in self._active:
            if queue.in_flight and queue.tried is not None and queue.tried[0] == node_id:
                self._cluster.metadata.mark_stale(queue.partition.topic)
                self._ask(queue.partition.topic)

    def _ask(self, topic: str | None) -> None:
        """Request the topic's metadata (None: a producer id) in a task, so that other partitions need not wait."""
        if topic not in self._asking:
            self._asking[topic] = asyncio.create_task(self._learn(topic))

    async def _learn(self, topic: str | None) -> None:
        info: TopicInfo | None = None
        failure: Exception | None = None
        try:
            if topic is None:
                self.identity = await self._identify()
                return
            info = await self._cluster.topic(topic, auto_create=self._options.auto_create_topics)
            for queue in self._active:
                if queue.partition.topic == topic and self._is_new(queue):
                    queue.retry_at_s = 0.0
                    link = self._links.get(queue.tried[0]) if queue.tried is not None and queue.in_flight else None
                    if link is not None and link.is_silent:
                        link.abandon()
        except (ApiError, ClientError) as error:
            failure = error
        finally:
            del self._asking[topic]
            self.wake()

        def why(queue: PartitionQueue) -> Exception | None:
            if topic is not None and queue.partition.topic != topic:
                return None
            return failure if info is None else info.trouble(queue.partition.partition)

        self._unreachable(why, asks=False)

    def _unreachable(self, why: Callable[[PartitionQueue], Exception | None], *, asks: bool) -> None:
        """Delay (or fail for good) waiting batches of queues that have an error (`why`); `asks`: request metadata."""
        now_s = asyncio.get_running_loop().time()
        for queue in [each for each in self._active if each.waiting]:
            error = why(queue)
            if error is None:
                continue
            if is_final(error):
                self._fail(queue, queue.waiting[0], error)
                continue
            queue.trouble = error
            leadership = self._leadership(queue.partition)
            if leadership[0] != NO_LEADER:
                queue.tried = leadership
            queue.retry_at_s = self._look_again(queue, now_s, moved=has_moved(error), asks=asks)

    # --- one request --------------------------------------------------------------------------------------------

    def _send(self, node_id: int, queues: list[PartitionQueue]) -> None:
        """Send one request with the first batch of each queue, as many as fit; the others follow with the next."""
        sent: Sent = []
        size_bytes = 0
        for queue in queues:
            size_bytes += queue.waiting[0].size_bytes
            if sent and size_bytes > self._options.max_request_bytes:
                break
            queue.tried = self._leadership(queue.partition)
            batch = queue.start(self.identity)
            self._active[queue] = self._active.pop(queue)
            try:
                batch.seal(self._sealing)
            except Exception as error:  # these records' callers have to be told
                self._fail(queue, batch, error)
                continue
            sent.append((queue, batch))
        if sent:
            self._write(self._links[node_id], sent)
        self.wake()

    def _write(self, link: Link, sent: Sent) -> None:
        connection = link.connection
        assert connection is not None
        request = produce(sent, self._cluster.metadata, self._options)
        at_most = self.gate.produce_version_max if self.gate is not None else None
        try:
            version = connection.version_of(ProduceRequest, at_most=request.version_max(at_most))
            if self._options.acknowledgements == 0:
                connection.post_now(request.message, version=version)
                for queue, batch in sent:
                    self._finish(queue, batch, -1, -1)
                return
            answer = connection.submit_now(
                request.message,
                version=version,
                timeout_ms=self._options.request_timeout_ms + _ANSWER_SPARE_MS,
            )
        except Exception as error:  # the connection failed, or a message cannot be encoded
            self._lost(sent, error)
            return
        link.sent()
        answer.add_done_callback(partial(self._answered, link, sent, request.names_in(version)))

    def _answered(
        self, link: Link, sent: Sent, names: dict[bytes, str] | None, answer: "asyncio.Future[ProduceResponse]"
    ) -> None:
        link.answered()
        if self.closed:
            return
        self.wake()
        error = answer.exception()
        if isinstance(error, Exception):
            self._lost(sent, error)
            return
        reply = answer.result()
        found = by_partition(reply, names)
        for queue, batch in sent:
            result = found.get(queue.partition)
            if result is not None and result.current_leader.leader_id != NO_LEADER:
                self._cluster.metadata.hint(queue.partition, result.current_leader, reply.node_endpoints)
            self._settle(queue, batch, result)

    # --- results of batches -------------------------------------------------------------------------------------

    def _lost(self, sent: Sent, error: Exception) -> None:
        """Handle a request without an answer, or one that could not be sent."""
        for queue, batch in sent:
            if isinstance(error, ClientError) and error.maybe_applied:
                queue.doubt(batch)
            if is_final(error) or self._is_aborting:
                self._fail(queue, batch, error)
            else:
                self._retry(queue, batch, error, moved=True)

    def _settle(self, queue: PartitionQueue, batch: ProducerBatch, result: PartitionAnswer | None) -> None:
        code = ErrorCode.REQUEST_TIMED_OUT if result is None else error_code(result.error_code)
        if code in IN_DOUBT:
            queue.doubt(batch)
        if result is not None and code in SUCCESS:
            self._finish(queue, batch, result.base_offset, result.log_append_time_ms)
        elif self._is_aborting:
            self._fail(queue, batch, ApiError(code))
        elif code in TOO_LARGE and batch.count > 1:
            queue.split(batch)
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not queue.is_oldest(batch):
            queue.retry(batch, 0.0)  # it waits for the failed batches before it
        elif code in LOST_TRACK and self.gate is None and not batch.in_doubt:
            self._renew(batch.identity)
            queue.renumber(batch)
            queue.retry_at_s = self._backoff(queue, asyncio.get_running_loop().time())
        elif code.retriable:
            at_most_ms = _CONCURRENT_BACKOFF_MS if code == ErrorCode.CONCURRENT_TRANSACTIONS else None
            error = ApiError(code, result.error_message if result is not None else None)
            self._retry(queue, batch, error, moved=has_moved(error), at_most_ms=at_most_ms)
        else:
            if code in FENCED:
                self._renew(batch.identity)
            self._fail(queue, batch, ApiError(code, result.error_message if result is not None else None))

    def _finish(self, queue: PartitionQueue, batch: ProducerBatch, base_offset: int, log_append_time: int) -> None:
        queue.finish(batch)
        batch.acknowledge(queue.partition, base_offset, log_append_time)
        self._free(batch.size_bytes)

    def _retry(
        self,
        queue: PartitionQueue,
        batch: ProducerBatch,
        error: Exception,
        *,
        moved: bool,
        at_most_ms: float | None = None,
    ) -> None:
        queue.trouble = error
        if batch.attempts > self._options.retries:
            self._fail(queue, batch, self._given_up(queue, batch, f"{self._options.retries} retries"))
            return
        now_s = asyncio.get_running_loop().time()
        if at_most_ms is None:
            at_s = self._look_again(queue, now_s, moved=moved)
        else:
            at_s = min(self._backoff(queue, now_s), now_s + at_most_ms / 1000)
        queue.retry(batch, at_s)

    def _look_again(self, queue: PartitionQueue, now_s: float, *, moved: bool, asks: bool = True) -> float:
        """Return when to try again, unless a new leader is found before. `asks` is False right after a metadata
        answer, which is still good for the topic's other partitions: they do not wait with this one.
        """
        if moved and self._is_new(queue):
            return now_s
        if asks:
            self._cluster.metadata.mark_stale(queue.partition.topic)
        if not moved:
            return self._backoff(queue, now_s)
        if asks:
            self._ask(queue.partition.topic)
        queue.tries += 1
        return now_s + self._cluster.options.seeking_ms(queue.tries) / 1000

    def _is_new(self, queue: PartitionQueue) -> bool:
        """Return whether the metadata names another leader than the one that was tried last."""
        leadership = self._leadership(queue.partition)
        return leadership[0] != NO_LEADER and leadership != queue.tried

    def _backoff(self, queue: PartitionQueue, now_s: float) -> float:
        queue.tries += 1
        return now_s + self._cluster.options.backoff_ms(queue.tries) / 1000

    def _gave_up(self, queue: PartitionQueue, now_s: float) -> bool:
        """Fail the first batch if it was not delivered within the delivery timeout; return whether it was."""
        batch = queue.waiting[0]
        if now_s - batch.created_at_s <= self._options.delivery_timeout_ms / 1000:
            return False
        self._fail(queue, batch, self._given_up(queue, batch, f"{self._options.delivery_timeout_ms} ms"))
        return True

    def _given_up(self, queue: PartitionQueue, batch: ProducerBatch, limit: str) -> DeliveryFailed:
        what = f"{batch.count} records for {queue.partition} were not acknowledged within {limit}"
        return undelivered(f"{what} ({batch.attempts} attempts)", queue.trouble, written=batch.in_doubt)

    @property
    def _is_aborting(self) -> bool:
        return self.gate is not None and self.gate.aborting

    def _fail(self, queue: PartitionQueue, batch: ProducerBatch, error: Exception) -> None:
        self.failures += 1
        hole = queue.drop(batch)
        if hole:
            self._renew(batch.identity)
        if self.gate is not None:
            self.gate.failed(error, hole=hole)
        elif len(batch.futures) < batch.count and self.failure is None:
            self.failure = error
        batch.fail(error)
        self._free(batch.size_bytes)

    def _renew(self, identity: ProducerIdentity) -> None:
        """Drop the identity, which is useless now (a transaction's identity is renewed at its end)."""
        if self.gate is None and self.identity == identity:
            self.identity = ProducerIdentity()
