"""The asyncio client: `Producer`, `Consumer`, `ShareConsumer`, `RangeReader` and `Admin` over one shared `Cluster`.

Works against Ottla and against any Kafka broker; `ottla.client.blocking` is the same for code without an event loop.
"""

from ottla.client.accumulator import RecordMetadata
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.commits import OffsetAndMetadata
from ottla.client.connection import Address, Connection
from ottla.client.consumer import Consumer
from ottla.client.consumer_options import ConsumerOptions, RebalanceListener
from ottla.client.delivery import Delivery
from ottla.client.errors import (
    BufferFull,
    ClientError,
    CommitFailed,
    LogTruncated,
    NoOffset,
    OffsetOutOfRange,
    ProducerFenced,
    TransactionAborted,
)
from ottla.client.group_metadata import GroupMetadata
from ottla.client.hot_keys import SaltedKeys
from ottla.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, Time
from ottla.client.options import ClientOptions, parse_address, parse_bootstrap
from ottla.client.partitioner import RoundRobin
from ottla.client.producer import Producer, ProducerOptions
from ottla.client.ranges import ConsumedRecord, RangeReader, ReadOptions, Span
from ottla.client.salted_merge import SaltedMerge, merge_salted
from ottla.client.share_consumer import ShareConsumer
from ottla.client.share_options import Acknowledged, ShareOptions
from ottla.client.transaction import Transaction
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
    "Transaction",
    "TransactionAborted",
    "merge_salted",
    "parse_address",
    "parse_bootstrap",
]
