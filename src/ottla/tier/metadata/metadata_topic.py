"""The topic `__remote_log_metadata`, and which of its partitions tells of which partition.

The number is Kafka's: a hash in Java's manner of the topic's id and the partition, whose four bytes are hashed by
murmur2. Brokers of Kafka and of Ottla have to agree on it.
"""

from __future__ import annotations

import struct

from ottla.model.java import murmur2
from ottla.tier.metadata.segment import TopicIdPartition

REMOTE_LOG_METADATA_TOPIC = "__remote_log_metadata"

_INT32 = 0xFFFF_FFFF


def metadata_partition(partition: TopicIdPartition, partition_count: int) -> int:
    """Return the partition of the metadata topic, which has `partition_count`, with the records of a partition."""
    most, least = struct.unpack(">QQ", partition.topic_id)
    hashed = 1
    for number in (_hash_of_long(least), _hash_of_long(most), partition.partition):
        hashed = (31 * hashed + number) & _INT32
    return (murmur2(hashed.to_bytes(4, "big")) & 0x7FFF_FFFF) % partition_count


def _hash_of_long(bits: int) -> int:
    """Return `Long.hashCode` of a number that is given as 64 bits."""
    return (bits ^ bits >> 32) & _INT32
