"""The asyncio client: `Producer`, `RangeReader` and `Admin` over one shared `Cluster`.

Works against Ottla and against any Kafka broker; `ottla.client.blocking` is the same for code without an event loop.
"""

from ottla.client.accumulator import RecordMetadata
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.connection import Address, Connection
from ottla.client.errors import BufferFull, ClientError, OffsetOutOfRange, ProducerFenced, TransactionAborted
from ottla.client.hot_keys import SaltedKeys
from ottla.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, Time
from ottla.client.options import ClientOptions, parse_address, parse_bootstrap
from ottla.client.partitioner import RoundRobin
from ottla.client.producer import Producer, ProducerOptions
from ottla.client.ranges import ConsumedRecord, RangeReader, ReadOptions, Span
from ottla.client.salted_merge import SaltedMerge, merge_salted
from ottla.client.transaction import Transaction
from ottla.model.errors import ApiError

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Address",
    "Admin",
    "ApiError",
    "BufferFull",
    "ClientError",
    "ClientOptions",
    "Cluster",
    "Connection",
    "ConsumedRecord",
    "OffsetOutOfRange",
    "Producer",
    "ProducerFenced",
    "ProducerOptions",
    "RangeReader",
    "ReadOptions",
    "RecordMetadata",
    "RoundRobin",
    "SaltedKeys",
    "SaltedMerge",
    "Span",
    "Time",
    "Transaction",
    "TransactionAborted",
    "merge_salted",
    "parse_address",
    "parse_bootstrap",
]
