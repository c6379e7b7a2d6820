"""The asyncio client: `Producer`, `Consumer`, `ShareConsumer`, `RangeReader` and `Admin` over one shared `Cluster`.

Works against Ottla and against any Kafka broker; `ottla.client.blocking.blocking` is the same for code without an event
loop.

Names are imported when they are first asked for: a node needs its connections only, and starts sooner without the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.cluster import Cluster
    from ottla.client.connection import Address, Connection
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.consumer.group_metadata import GroupMetadata
    from ottla.client.consumer.group_offsets import OffsetAndMetadata
    from ottla.client.consumer.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, Time
    from ottla.client.consumer.options import ConsumerOptions, RebalanceListener
    from ottla.client.consumer.ranges import ConsumedRecord, RangeReader, ReadOptions, Span
    from ottla.client.consumer.salted_merge import SaltedMerge, merge_salted
    from ottla.client.errors import (
        BufferFull,
        ClientError,
        CommitFailed,
        LogTruncated,
        NoOffset,
        OffsetOutOfRange,
        ProducerFenced,
        TopicRecreated,
        TopicUnknown,
        TransactionAborted,
    )
    from ottla.client.options import ClientOptions, parse_address, parse_bootstrap
    from ottla.client.outcomes import Outcomes
    from ottla.client.producer.accumulator import RecordMetadata
    from ottla.client.producer.hot_keys import SaltedKeys
    from ottla.client.producer.partitioner import RoundRobin
    from ottla.client.producer.producer import Producer, ProducerOptions
    from ottla.client.producer.transaction import Transaction
    from ottla.client.share.consumer import ShareConsumer
    from ottla.client.share.delivery import Delivery
    from ottla.client.share.options import Acknowledged, ShareOptions
    from ottla.model.errors import ApiError
    from ottla.model.ids import TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Acknowledged",
    "Address",
    "Admin",
    "ApiError",
    "BufferFull",
    "ClientError",
    "ClientOptions",
    "Cluster",
    "CommitFailed",
    "Connection",
    "ConsumedRecord",
    "Consumer",
    "ConsumerOptions",
    "Delivery",
    "GroupMetadata",
    "LogTruncated",
    "NoOffset",
    "OffsetAndMetadata",
    "OffsetOutOfRange",
    "Outcomes",
    "Producer",
    "ProducerFenced",
    "ProducerOptions",
    "RangeReader",
    "ReadOptions",
    "RebalanceListener",
    "RecordMetadata",
    "RoundRobin",
    "SaltedKeys",
    "SaltedMerge",
    "ShareConsumer",
    "ShareOptions",
    "Span",
    "Time",
    "TopicPartition",
    "TopicRecreated",
    "TopicUnknown",
    "Transaction",
    "TransactionAborted",
    "merge_salted",
    "parse_address",
    "parse_bootstrap",
]

# Where each of them is declared.
_HOMES = {
    "Acknowledged": "ottla.client.share.options",
    "Address": "ottla.client.connection",
    "Admin": "ottla.client.admin",
    "ApiError": "ottla.model.errors",
    "BufferFull": "ottla.client.errors",
    "ClientError": "ottla.client.errors",
    "ClientOptions": "ottla.client.options",
    "Cluster": "ottla.client.cluster",
    "CommitFailed": "ottla.client.errors",
    "Connection": "ottla.client.connection",
    "ConsumedRecord": "ottla.client.consumer.ranges",
    "Consumer": "ottla.client.consumer.consumer",
    "ConsumerOptions": "ottla.client.consumer.options",
    "Delivery": "ottla.client.share.delivery",
    "EARLIEST": "ottla.client.consumer.offsets",
    "GroupMetadata": "ottla.client.consumer.group_metadata",
    "LATEST": "ottla.client.consumer.offsets",
    "LogTruncated": "ottla.client.errors",
    "MAX_TIMESTAMP": "ottla.client.consumer.offsets",
    "NoOffset": "ottla.client.errors",
    "OffsetAndMetadata": "ottla.client.consumer.group_offsets",
    "OffsetOutOfRange": "ottla.client.errors",
    "Outcomes": "ottla.client.outcomes",
    "Producer": "ottla.client.producer.producer",
    "ProducerFenced": "ottla.client.errors",
    "ProducerOptions": "ottla.client.producer.producer",
    "RangeReader": "ottla.client.consumer.ranges",
    "ReadOptions": "ottla.client.consumer.ranges",
    "RebalanceListener": "ottla.client.consumer.options",
    "RecordMetadata": "ottla.client.producer.accumulator",
    "RoundRobin": "ottla.client.producer.partitioner",
    "SaltedKeys": "ottla.client.producer.hot_keys",
    "SaltedMerge": "ottla.client.consumer.salted_merge",
    "ShareConsumer": "ottla.client.share.consumer",
    "ShareOptions": "ottla.client.share.options",
    "Span": "ottla.client.consumer.ranges",
    "Time": "ottla.client.consumer.offsets",
    "TopicPartition": "ottla.model.ids",
    "TopicRecreated": "ottla.client.errors",
    "TopicUnknown": "ottla.client.errors",
    "Transaction": "ottla.client.producer.transaction",
    "TransactionAborted": "ottla.client.errors",
    "merge_salted": "ottla.client.consumer.salted_merge",
    "parse_address": "ottla.client.options",
    "parse_bootstrap": "ottla.client.options",
}


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
