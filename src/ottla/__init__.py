"""Ottla: a Kafka-compatible distributed log in Python.

This module is the public API of the Python client: `from ottla import Producer, Consumer, ShareConsumer, Admin`. Each
name is imported when it is first used, so `import ottla` costs next to nothing. There are also `ottla.spark` (the Spark
data source and the vocabulary of streams), `ottla.sql` (topics as tables of DuckDB) and the pytest plugin
`ottla.testing`. Every other module is internal and may change without notice.
"""

from importlib import import_module

from ottla.model.version import VERSION as __version__

# `typing` is not imported here: that takes longer than all else, and `ottla.__main__` cannot catch Ctrl-C during it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.quotas import QuotaEntity, QuotaName
    from ottla.client.blocking.blocking import Blocking
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
        AuthenticationError,
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
    from ottla.client.producer.options import ProducerOptions
    from ottla.client.producer.partitioner import RoundRobin
    from ottla.client.producer.producer import Producer
    from ottla.client.producer.transaction import Transaction
    from ottla.client.profiles import Profile
    from ottla.client.registry import RegistryError, RegistryOptions, RegistryUnreachable, SchemaRegistry
    from ottla.client.security.security import Security
    from ottla.client.share.consumer import ShareConsumer
    from ottla.client.share.delivery import Delivery
    from ottla.client.share.options import Acknowledged, ShareOptions
    from ottla.model.errors import ApiError, ErrorCode
    from ottla.model.ids import TopicPartition
    from ottla.model.resources import Resource, ResourceType
    from ottla.security.acl_entry import AclEntry, AclFilter

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Acknowledged",
    "AclEntry",
    "AclFilter",
    "Address",
    "Admin",
    "ApiError",
    "AuthenticationError",
    "Blocking",
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
    "ErrorCode",
    "GroupMetadata",
    "LogTruncated",
    "NoOffset",
    "OffsetAndMetadata",
    "OffsetOutOfRange",
    "Outcomes",
    "Producer",
    "ProducerFenced",
    "ProducerOptions",
    "Profile",
    "QuotaEntity",
    "QuotaName",
    "RangeReader",
    "ReadOptions",
    "RebalanceListener",
    "RecordMetadata",
    "RegistryError",
    "RegistryOptions",
    "RegistryUnreachable",
    "Resource",
    "ResourceType",
    "RoundRobin",
    "SaltedKeys",
    "SaltedMerge",
    "SchemaRegistry",
    "Security",
    "ShareConsumer",
    "ShareOptions",
    "Span",
    "Time",
    "TopicPartition",
    "TopicRecreated",
    "TopicUnknown",
    "Transaction",
    "TransactionAborted",
    "__version__",
    "merge_salted",
    "parse_address",
    "parse_bootstrap",
]

# The module that declares each name.
_HOMES = {
    "Admin": "ottla.client.admin",
    "QuotaEntity": "ottla.client.admin.quotas",
    "QuotaName": "ottla.client.admin.quotas",
    "Blocking": "ottla.client.blocking.blocking",
    "Cluster": "ottla.client.cluster",
    "Address": "ottla.client.connection",
    "Connection": "ottla.client.connection",
    "Consumer": "ottla.client.consumer.consumer",
    "GroupMetadata": "ottla.client.consumer.group_metadata",
    "OffsetAndMetadata": "ottla.client.consumer.group_offsets",
    "EARLIEST": "ottla.client.consumer.offsets",
    "LATEST": "ottla.client.consumer.offsets",
    "MAX_TIMESTAMP": "ottla.client.consumer.offsets",
    "Time": "ottla.client.consumer.offsets",
    "ConsumerOptions": "ottla.client.consumer.options",
    "RebalanceListener": "ottla.client.consumer.options",
    "ConsumedRecord": "ottla.client.consumer.ranges",
    "RangeReader": "ottla.client.consumer.ranges",
    "ReadOptions": "ottla.client.consumer.ranges",
    "Span": "ottla.client.consumer.ranges",
    "SaltedMerge": "ottla.client.consumer.salted_merge",
    "merge_salted": "ottla.client.consumer.salted_merge",
    "AuthenticationError": "ottla.client.errors",
    "BufferFull": "ottla.client.errors",
    "ClientError": "ottla.client.errors",
    "CommitFailed": "ottla.client.errors",
    "LogTruncated": "ottla.client.errors",
    "NoOffset": "ottla.client.errors",
    "OffsetOutOfRange": "ottla.client.errors",
    "ProducerFenced": "ottla.client.errors",
    "TopicRecreated": "ottla.client.errors",
    "TopicUnknown": "ottla.client.errors",
    "TransactionAborted": "ottla.client.errors",
    "ClientOptions": "ottla.client.options",
    "parse_address": "ottla.client.options",
    "parse_bootstrap": "ottla.client.options",
    "Outcomes": "ottla.client.outcomes",
    "RecordMetadata": "ottla.client.producer.accumulator",
    "SaltedKeys": "ottla.client.producer.hot_keys",
    "ProducerOptions": "ottla.client.producer.options",
    "RoundRobin": "ottla.client.producer.partitioner",
    "Producer": "ottla.client.producer.producer",
    "Transaction": "ottla.client.producer.transaction",
    "Profile": "ottla.client.profiles",
    "RegistryError": "ottla.client.registry",
    "RegistryOptions": "ottla.client.registry",
    "RegistryUnreachable": "ottla.client.registry",
    "SchemaRegistry": "ottla.client.registry",
    "Security": "ottla.client.security.security",
    "ShareConsumer": "ottla.client.share.consumer",
    "Delivery": "ottla.client.share.delivery",
    "Acknowledged": "ottla.client.share.options",
    "ShareOptions": "ottla.client.share.options",
    "ApiError": "ottla.model.errors",
    "ErrorCode": "ottla.model.errors",
    "TopicPartition": "ottla.model.ids",
    "Resource": "ottla.model.resources",
    "ResourceType": "ottla.model.resources",
    "AclEntry": "ottla.security.acl_entry",
    "AclFilter": "ottla.security.acl_entry",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
