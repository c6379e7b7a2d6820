"""The producer: records in, acknowledgements out, in order and (with idempotence) exactly once per partition.

Rules:
- `send` waits until the record is acknowledged; `enqueue` waits only for room and metadata and hands back the future.
  Records of one partition are appended in the order of these calls.
- Per partition one batch is under way at a time, per broker up to `max_in_flight` requests. What fails in a way that
  passes is sent again, unchanged, until `delivery_timeout_ms` is over.
- When it cannot be known whether a given-up batch is in the log, the producer takes a new producer id, so that the
  sequence of what follows has no hole.
- `buffer_bytes` bounds the records that wait; `enqueue` waits for room.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

from ottla.client.accumulator import (
    Batch,
    PartitionQueue,
    ProducerId,
    RecordMetadata,
    estimated_size_bytes,
)
from ottla.client.cluster import Cluster, Purpose
from ottla.client.errors import ClientError, DeliveryFailed, UnsupportedApi, check, error_code
from ottla.client.metadata import NO_LEADER
from ottla.client.options import ClientOptions
from ottla.client.partitioner import StickyPartitions, partition_of_key
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, TopicPartition
from ottla.records.compress import Codec
from ottla.records.record import NO_OFFSET, Headers, Record
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse

_BY_ID_SINCE = 13  # Produce names topics by id from this version on
_SUCCESS = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
# The broker no longer knows the producer: nothing of the batch was appended, and a new identity may start anew.
_FORGOTTEN = (ErrorCode.UNKNOWN_PRODUCER_ID,)
_FENCED = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
# The batch may be in the log although the answer is an error.
_IN_DOUBT = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """How a producer batches and how sure it wants to be; Kafka's names and defaults, units last."""

    acks: int = -1
    idempotent: bool = True
    codec: Codec = Codec.NONE
    codec_level: int | None = None
    linger_ms: float = 5.0
    batch_size_bytes: int = 16 * limits.KIB
    max_request_bytes: int = limits.MIB
    buffer_bytes: int = 32 * limits.MIB
    max_in_flight: int = 5
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    auto_create_topics: bool = True

    def __post_init__(self) -> None:
        if self.acks not in (-1, 0, 1):
            raise ValueError(f"acks is 0, 1 or -1 (all), not {self.acks}")


class Producer:
    """Sends records. Use as `async with Producer("host:port") as producer: await producer.send("topic", b"value")`."""

    def __init__(self, cluster: "Cluster | ClientOptions | str", options: ProducerOptions | None = None) -> None:
        self._owns_cluster = not isinstance(cluster, Cluster)
        self._cluster = cluster if isinstance(cluster, Cluster) else Cluster(cluster)
        self.options = options or ProducerOptions()
        self._idempotent = self.options.idempotent and self.options.acks == -1
        self._identity = ProducerId()
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._sticky = StickyPartitions(self._cluster.options.rng, self.options.batch_size_bytes)
        self._buffered_bytes = 0
        self._room: deque[asyncio.Future[None]] = deque()
        self._wake = asyncio.Event()
        self._flushing = 0
        self._deliveries: dict[asyncio.Task[None], int] = {}  # task -> node it talks to
        self._asking: dict[str | None, asyncio.Task[None]] = {}  # topics we learn about; None is the producer id
        self._sender: asyncio.Task[None] | None = None
        self._closed = False

    # --- life ---------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> "Producer":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(discard=error is not None)

    async def close(self, *, discard: bool = False) -> None:
        """Deliver what waits (unless it is to be discarded) and stop."""
        if not discard and not self._closed:
            await self.flush()
        self._closed = True
        tasks = [*self._deliveries, *self._asking.values(), *([self._sender] if self._sender else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for queue in self._queues.values():
            while queue.batches:
                queue.batches.popleft().fail(DeliveryFailed("the producer was closed before the record was delivered"))
        self._free(self._buffered_bytes)
        if self._owns_cluster:
            await self._cluster.close()

    async def flush(self) -> None:
        """Wait until everything sent so far is acknowledged or has failed."""
        self._flushing += 1
        self._wake.set()
        waiting = [
            future
            for queue in self._queues.values()
            for batch in queue.batches
            for future in batch.futures
            if not future.done()
        ]
        try:
            if waiting:
                await asyncio.wait(waiting)
        finally:
            self._flushing -= 1

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
        """Put one record into its partition's batch; the future ends when the record is acknowledged."""
        pairs: Headers = tuple((name, content) for name, content in headers)
        size_bytes = estimated_size_bytes(key, value, pairs)
        if size_bytes > min(self.options.max_request_bytes, self.options.buffer_bytes):
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a record of {size_bytes} bytes is larger than max_request_bytes={self.options.max_request_bytes}",
            )
        if topic not in self._cluster.metadata.topics:
            await self._cluster.topic(topic, auto_create=self.options.auto_create_topics)
        while self._buffered_bytes + size_bytes > self.options.buffer_bytes:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._room.append(waiter)
            await waiter
        if self._closed:
            raise DeliveryFailed("the producer is closed")
        if partition is None:
            partition = await self._choose(topic, key, size_bytes)
        else:
            await self._check_partition(TopicPartition(topic, partition))
        record = Record(
            NO_OFFSET, self._cluster.options.now_ms() if timestamp is None else timestamp, key, value, pairs
        )
        return self._append(TopicPartition(topic, partition), record, size_bytes)

    async def _choose(self, topic: str, key: bytes | None, size_bytes: int) -> int:
        info = await self._cluster.topic(topic, auto_create=self.options.auto_create_topics)
        if key is not None:
            return partition_of_key(key, info.partition_count)
        led = [each.index for each in info.partitions if each.leader != NO_LEADER]
        return self._sticky.choose(topic, led or [each.index for each in info.partitions], size_bytes)

    async def _check_partition(self, partition: TopicPartition) -> None:
        """A partition that does not exist is the caller's mistake, unless it was added a moment ago."""
        for _ in range(2):
            info = await self._cluster.topic(partition.topic, auto_create=self.options.auto_create_topics)
            if info.partition(partition.partition) is not None:
                return
            self._cluster.metadata.forget(partition.topic)
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {partition.topic!r} has {info.partition_count} partitions, there is no {partition.partition}",
        )

    def _append(self, partition: TopicPartition, record: Record, size_bytes: int) -> "asyncio.Future[RecordMetadata]":
        loop = asyncio.get_running_loop()
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = PartitionQueue(partition)
        future: asyncio.Future[RecordMetadata] = loop.create_future()
        before = len(queue.batches)
        queue.append(record, size_bytes, future, batch_size_bytes=self.options.batch_size_bytes, now_s=loop.time())
        self._buffered_bytes += size_bytes
        if self._sender is None:
            self._sender = asyncio.create_task(self._run())
            self._sender.add_done_callback(self._stopped)
        if len(queue.batches) != before or queue.batches[-1].size_bytes >= self.options.batch_size_bytes:
            self._wake.set()  # a new batch has a new time to leave; records that join it change nothing
        return future

    def _free(self, size_bytes: int) -> None:
        self._buffered_bytes -= size_bytes
        while self._room:
            waiter = self._room.popleft()
            if not waiter.done():
                waiter.set_result(None)

    # --- the sender ---------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        """Send whatever may leave, then sleep until something else may."""
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            next_s = self._send_ready(loop.time())
            timer = loop.call_at(next_s, self._wake.set) if next_s is not None else None
            try:
                await self._wake.wait()
            finally:
                if timer is not None:
                    timer.cancel()

    def _stopped(self, sender: "asyncio.Task[None]") -> None:
        """The sender ends only by `close`, or by a mistake of ours: then nobody may be left waiting."""
        if sender.cancelled():
            return
        self._closed = True
        for queue in self._queues.values():
            while queue.batches:
                queue.batches.popleft().fail(sender.exception() or DeliveryFailed("the producer stopped"))

    def _send_ready(self, now_s: float) -> float | None:
        """Start a delivery for every broker that has something; returns when the next batch is due."""
        next_s: float | None = None
        ready: dict[int, list[PartitionQueue]] = {}
        busy: dict[int, int] = {}
        for node_id in self._deliveries.values():
            busy[node_id] = busy.get(node_id, 0) + 1
        for queue in list(self._queues.values()):
            due_s = queue.ready_at_s(
                self.options.linger_ms / 1000, self.options.batch_size_bytes, flushing=self._flushing > 0
            )
            if due_s is None:
                continue
            if due_s > now_s:
                next_s = due_s if next_s is None else min(next_s, due_s)
                continue
            if self._gave_up(queue, now_s):
                self._wake.set()
                continue
            leader = self._leader_of(queue)
            if leader is not None and busy.get(leader, 0) < self.options.max_in_flight:
                ready.setdefault(leader, []).append(queue)
        for node_id, queues in ready.items():
            self._start_delivery(node_id, queues)
        return next_s

    def _leader_of(self, queue: PartitionQueue) -> int | None:
        """The node to send to; when it (or our identity) is not known, a task asks and the sender is woken."""
        if self._idempotent and self._identity.producer_id < 0:
            self._ask(None)
            return None
        topic = queue.partition.topic
        info = self._cluster.metadata.topics.get(topic)
        partition = info.partition(queue.partition.partition) if info is not None else None
        if partition is not None and partition.leader != NO_LEADER:
            return partition.leader
        self._cluster.metadata.forget(topic)
        self._ask(topic)
        return None

    def _ask(self, topic: str | None) -> None:
        """Learn who leads the topic (None: get a producer id), beside the sender: others need not wait for it."""
        if topic not in self._asking:
            task = self._asking[topic] = asyncio.create_task(self._learn(topic))
            task.add_done_callback(lambda _: self._asked(topic))

    def _asked(self, topic: str | None) -> None:
        del self._asking[topic]
        self._wake.set()

    async def _learn(self, topic: str | None) -> None:
        try:
            if topic is None:
                self._identity = await self._new_identity()
                return
            info = await self._cluster.topic(topic, auto_create=self.options.auto_create_topics)
            led = {each.index for each in info.partitions if each.leader != NO_LEADER}
            failure: Exception = ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic} has partitions without a leader")
        except (ApiError, ClientError) as error:
            led, failure = set(), error
        now_s = asyncio.get_running_loop().time()
        for queue in list(self._queues.values()):
            name, index = queue.partition
            if not queue.batches or queue.in_flight or index in led or topic not in (None, name):
                continue
            if _is_final(failure):
                self._fail(queue, failure)
            else:
                queue.batches[0].attempts += 1
                self._retry(queue, now_s)

    async def _new_identity(self) -> ProducerId:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=limits.INT32_MAX)
        answer = await self._cluster.call(request, InitProducerIdResponse, error_of=lambda each: each.error_code)
        check(answer.error_code)
        return ProducerId(answer.producer_id, answer.producer_epoch)

    def _start_delivery(self, node_id: int, queues: list[PartitionQueue]) -> None:
        """One request with the first batch of each queue, as many as fit; the others follow with the next."""
        chosen: list[PartitionQueue] = []
        size_bytes = 0
        for queue in queues:
            size_bytes += queue.batches[0].size_bytes
            if chosen and size_bytes > self.options.max_request_bytes:
                self._wake.set()
                break
            chosen.append(queue)
        batches = [(queue, queue.start(self._identity)) for queue in chosen]
        task = asyncio.create_task(self._deliver(node_id, batches))
        self._deliveries[task] = node_id
        task.add_done_callback(self._delivered)

    def _delivered(self, task: "asyncio.Task[None]") -> None:
        del self._deliveries[task]
        self._wake.set()

    async def _deliver(self, node_id: int, batches: list[tuple[PartitionQueue, Batch]]) -> None:
        try:
            answer = await self._exchange(node_id, batches)
        except Exception as error:  # whatever it is, the senders of these records must hear of it
            for queue, batch in batches:
                batch.in_doubt |= isinstance(error, ClientError) and error.maybe_applied
                if _is_final(error):
                    self._fail(queue, error)
                else:
                    self._cluster.metadata.forget(queue.partition.topic)
                    self._retry(queue, asyncio.get_running_loop().time())
            return
        for queue, _ in batches:
            if answer is None:
                self._finish(queue, -1, -1)
            else:
                self._settle(queue, answer.get(queue.partition))

    async def _exchange(
        self, node_id: int, batches: list[tuple[PartitionQueue, Batch]]
    ) -> "dict[TopicPartition, ProduceResponse.TopicProduceResponse.PartitionProduceResponse] | None":
        """Send one Produce request; None when the broker does not answer (acks=0)."""
        connection = await self._cluster.connection(node_id, Purpose.PRODUCE)
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        ids: dict[bytes, str] = {}
        for queue, batch in batches:
            name, index = queue.partition
            topic = topics.get(name)
            if topic is None:
                topic_id = (await self._cluster.topic(name)).topic_id
                topic = topics[name] = ProduceRequest.TopicProduceData(name=name, topic_id=topic_id, partition_data=[])
                ids[topic_id] = name
            data = batch.build(self.options.codec, self.options.codec_level)
            topic.partition_data.append(
                ProduceRequest.TopicProduceData.PartitionProduceData(index=index, records=memoryview(data))
            )
        version = connection.version_of(ProduceRequest, at_most=_BY_ID_SINCE - 1 if NO_ID in ids else None)
        request = ProduceRequest(
            acks=self.options.acks, timeout_ms=self.options.request_timeout_ms, topic_data=list(topics.values())
        )
        if self.options.acks == 0:
            await connection.post(request, version=version)
            return None
        # The broker itself waits up to timeout_ms for replicas: its answer needs a little longer than that.
        timeout_ms = self.options.request_timeout_ms + 5_000
        answer = await connection.request(request, ProduceResponse, version=version, timeout_ms=timeout_ms)
        return {
            TopicPartition(ids[topic.topic_id] if version >= _BY_ID_SINCE else topic.name, partition.index): partition
            for topic in answer.responses
            if version < _BY_ID_SINCE or topic.topic_id in ids
            for partition in topic.partition_responses
        }

    # --- what became of a batch ---------------------------------------------------------------------------------

    def _settle(
        self,
        queue: PartitionQueue,
        result: "ProduceResponse.TopicProduceResponse.PartitionProduceResponse | None",
    ) -> None:
        now_s = asyncio.get_running_loop().time()
        if result is None:
            self._retry(queue, now_s)
            return
        code = error_code(result.error_code)
        queue.batches[0].in_doubt |= code in _IN_DOUBT
        if code in _SUCCESS:
            self._finish(queue, result.base_offset, result.log_append_time_ms)
        elif code in _TOO_LARGE and len(queue.batches[0].records) > 1:
            queue.split()
        elif code in _FORGOTTEN and not queue.batches[0].in_doubt:
            self._identity = ProducerId()
            queue.rebuild()
        elif code.retriable:
            self._cluster.metadata.forget(queue.partition.topic)
            self._retry(queue, now_s)
        else:
            self._fail(queue, ApiError(code, result.error_message))
            if code in _FENCED:
                self._identity = ProducerId()

    def _finish(self, queue: PartitionQueue, base_offset: int, log_append_time: int) -> None:
        batch = queue.finish()
        batch.acknowledge(queue.partition, base_offset, log_append_time)
        self._free(_buffered(batch))

    def _retry(self, queue: PartitionQueue, now_s: float) -> None:
        backoff_ms = self._cluster.options.backoff_ms(max(queue.batches[0].attempts, 1))
        queue.retry(now_s + backoff_ms / 1000)
        self._wake.set()

    def _gave_up(self, queue: PartitionQueue, now_s: float) -> bool:
        """Fail the first batch when it has been tried, without success, for the whole delivery timeout."""
        batch = queue.batches[0]
        if batch.attempts == 0 or now_s - batch.created_at_s < self.options.delivery_timeout_ms / 1000:
            return False
        self._fail(
            queue,
            DeliveryFailed(
                f"{len(batch.records)} records for {queue.partition} were not acknowledged within "
                f"{self.options.delivery_timeout_ms} ms ({batch.attempts} attempts)"
            ),
        )
        return True

    def _fail(self, queue: PartitionQueue, error: Exception) -> None:
        batch = queue.drop()
        if batch.in_doubt:
            self._identity = ProducerId()
        batch.fail(error)
        self._free(_buffered(batch))


def _is_final(error: Exception) -> bool:
    """Whether trying again cannot help."""
    if isinstance(error, ApiError):
        return not error.code.retriable
    return isinstance(error, UnsupportedApi) or not isinstance(error, ClientError)


def _buffered(batch: Batch) -> int:
    return sum(estimated_size_bytes(each.key, each.value, each.headers) for each in batch.records)
