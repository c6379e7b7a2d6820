"""Encoding and decoding of the consumer protocol's bytes (subscription, assignment) in JoinGroup and SyncGroup."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import TypeAlias, TypeVar

from ottla.groups.assign.spec import Partitions
from ottla.groups.view import GroupTopics
from ottla.wire import compile
from ottla.wire.journal.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.message import Data
from ottla.wire.types import WireError

DataT = TypeVar("DataT", bound=Data)
_TopicPartition: TypeAlias = ConsumerProtocolSubscription.TopicPartition | ConsumerProtocolAssignment.TopicPartition
_VERSION = Struct(">h")


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Decode a subscription; raises WireError."""
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """Decode an assignment, which is empty if there are no bytes; raises WireError."""
    if not assignment:
        return ConsumerProtocolAssignment(assigned_partitions=[])
    return _read(ConsumerProtocolAssignment, assignment)


def write_assignment(partitions: Partitions, topics: GroupTopics, like: bytes) -> bytes:
    """Encode an assignment in the version of the member's metadata `like`; deleted topics are left out."""
    listed = [
        ConsumerProtocolAssignment.TopicPartition(topic=info.name, partitions=sorted(partitions[topic_id]))
        for topic_id in sorted(partitions)
        if (info := topics.by_id(topic_id)) is not None
    ]
    version = min(_version(like), ConsumerProtocolAssignment.versions[1])
    data = bytearray(_VERSION.pack(version))
    message = ConsumerProtocolAssignment(assigned_partitions=listed)
    compile.encoder(ConsumerProtocolAssignment, version)(message, data, [])
    return bytes(data)


def by_ids(listed: Iterable[_TopicPartition], topics: GroupTopics) -> Partitions:
    """Return partitions, given by topic name, by topic id; deleted topics are left out."""
    found: dict[bytes, frozenset[int]] = {}
    for each in listed:
        info = topics.by_name(each.topic)
        if info is not None and each.partitions:
            found[info.id] = found.get(info.id, frozenset()) | frozenset(each.partitions)
    return found


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise WireError("too short for a version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise WireError(f"version {version}")
    return version


def _read(kind: type[DataT], data: bytes) -> DataT:
    version = min(_version(data), kind.versions[1])
    return compile.decoder(kind, version)(memoryview(data), _VERSION.size)[0]
