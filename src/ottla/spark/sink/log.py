"""The storage of sinks' states: the compacted topic `_ottla_spark_sinks`, with one record per sink.

Rules:
- A state is written in a transaction under the sink's own transactional id, and read with read_committed.
- A read goes up to the high watermark at its start. Other sinks share the partition, and their open transactions hold
  back the last stable offset; so the read waits for them, which are short because each writes one record.
"""

from __future__ import annotations

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.consumer.offsets import EARLIEST, LATEST, resolve
from ottla.client.consumer.ranges import RangeReader, ReadOptions, Span
from ottla.client.producer.partitioner import partition_of_key
from ottla.client.producer.producer import Producer
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource, ResourceType
from ottla.model.topic_settings import CLEANUP_POLICY, MIN_CLEANABLE_DIRTY_RATIO, SEGMENT_BYTES
from ottla.spark.sink.faults import FaultPoint, reach
from ottla.spark.sink.protocol import BatchDecision, BatchRefused, from_bytes, to_bytes

TOPIC = "_ottla_spark_sinks"
_PARTITIONS = 8
# Old states of a sink are not needed: small segments that are compacted soon keep a read short.
_SETTINGS = {
    CLEANUP_POLICY.name: "compact",
    SEGMENT_BYTES.name: "1048576",
    MIN_CLEANABLE_DIRTY_RATIO.name: "0.1",
}


async def ensure_topic(cluster: Cluster) -> None:
    """Create the topic if it does not exist."""
    _, errors = await cluster.refresh([TOPIC])
    if errors.get(TOPIC) != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return
    try:
        await Admin(cluster).topics.create(TOPIC, _PARTITIONS, configs=_SETTINGS)
    except ApiError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def _place(cluster: Cluster, sink: str) -> TopicPartition:
    info = await cluster.topic(TOPIC, auto_create=True)  # auto_create makes it wait for a topic created a moment ago
    return TopicPartition(TOPIC, partition_of_key(sink.encode(), info.partition_count))


async def read(cluster: Cluster, sink: str) -> BatchDecision | None:
    """The sink's state; None if it has none. Raises BatchRefused if the record is no state, or if the topic may lose
    states.
    """
    partition = await _place(cluster, sink)
    end = (await resolve(cluster, [(partition, LATEST)]))[partition]
    found: ConsumedRecord | None = None
    span = Span(*partition, EARLIEST, end)
    async with RangeReader(cluster, [span], ReadOptions(read_committed=True)) as reader:
        async for record in reader:
            if record.key == sink.encode():
                found = record
    if found is None:
        await _check_policy(cluster)
        return None
    return None if found.value is None else _decoded(sink, found, found.value)


def _decoded(sink: str, record: ConsumedRecord, value: bytes) -> BatchDecision:
    try:
        return from_bytes(value)
    except (ValueError, BatchRefused) as error:
        raise BatchRefused(
            f"the state of the sink {sink!r} cannot be read ({TOPIC}, partition {record.partition}, offset "
            f"{record.offset}): {error}. Without it nobody knows what was written last. To begin anew all the same, "
            f"use another sink.id, or write a record with the key {sink} and no value there"
        ) from error


async def _check_policy(cluster: Cluster) -> None:
    """Raise BatchRefused if the topic, which somebody else may have created, is not compacted: batches could be written
    twice.
    """
    try:
        (found,) = await Admin(cluster).configs.describe(Resource(ResourceType.TOPIC, TOPIC), [CLEANUP_POLICY.name])
    except ApiError:  # without permission to describe the topic it is not checked
        return
    policy = found.value or ""
    if policy.strip() != "compact":
        raise BatchRefused(
            f"topic {TOPIC} must have cleanup.policy=compact, not {policy}: it forgets what sinks have written"
        )


async def write(
    producer: Producer, sink: str, decision: BatchDecision | None, *, step: FaultPoint | None = None
) -> None:
    """Make this the state of the sink (None removes it). Raises ProducerFenced if another driver has taken over."""
    async with producer.transaction():
        await producer.send(TOPIC, None if decision is None else to_bytes(decision), sink.encode())
        if step is not None:
            reach(step)
