"""The opaque bytes of JoinGroup and SyncGroup: members' subscriptions and assignments, in Java's formats.

A subscription is an int16 version and `ConsumerProtocolSubscription`; an assignment likewise. The sticky assignors add
user data: `sticky` the member's last assignment and its generation, `cooperative-sticky` the generation only (the
owned partitions are part of the subscription itself).

Rules:
- Versions above ours are read as our newest; bytes that cannot be read raise `ApiError(INCONSISTENT_GROUP_PROTOCOL)`.
- User data that cannot be read is ignored: the member merely loses its stickiness.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct as Layout
from struct import error as LayoutError
from typing import TypeVar

from ottla.client.assign.members import NO_GENERATION, SubscribedMember
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.compile import decoder, encode
from ottla.wire.journal.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.message import Data, Struct, on
from ottla.wire.types import Int32, String, WireError

D = TypeVar("D", bound=Data)

_VERSION = Layout(">h")
_GENERATION = Layout(">i")
_SUBSCRIPTION_VERSION = ConsumerProtocolSubscription.versions[1]
_ASSIGNMENT_VERSION = ConsumerProtocolAssignment.versions[1]


class StickyUserData(Data, versions="0-1"):
    """The last assignment of a member of a `sticky` group; on the wire it has no version of its own.

    v1   + generation
    """

    class TopicPartitions(Struct):
        topic: String
        partitions: list[Int32]

    previous_assignment: list[TopicPartitions]
    generation: Int32 = on("1+", NO_GENERATION)


def write_subscription(
    topics: Iterable[str],
    owned: Iterable[TopicPartition],
    generation: int,
    *,
    user_data: bytes | None = None,
    rack_id: str | None = None,
) -> bytes:
    """Return the subscription of this member: its topics and (in a cooperative group) its owned partitions."""
    entry = ConsumerProtocolSubscription.TopicPartition
    message = ConsumerProtocolSubscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=[entry(topic=topic, partitions=indexes) for topic, indexes in by_topic(owned).items()],
        generation_id=generation,
        rack_id=rack_id,
    )
    return _VERSION.pack(_SUBSCRIPTION_VERSION) + encode(message, _SUBSCRIPTION_VERSION)


def user_data_of(assignor: str, previous: Iterable[TopicPartition], generation: int) -> bytes | None:
    """Return the user data that the assignor needs: the member's last assignment or generation."""
    if assignor == "cooperative-sticky":
        return _GENERATION.pack(generation)
    if assignor == "sticky" and generation != NO_GENERATION:
        entry = StickyUserData.TopicPartitions
        held = [entry(topic=topic, partitions=indexes) for topic, indexes in by_topic(previous).items()]
        return encode(StickyUserData(previous_assignment=held, generation=generation), 1)
    return None


def read_member(assignor: str, blob: bytes | memoryview, instance_id: str | None) -> SubscribedMember:
    """Read the subscription of a member, for the group's leader."""
    message = _read(ConsumerProtocolSubscription, blob, _SUBSCRIPTION_VERSION)
    owned = [TopicPartition(each.topic, index) for each in message.owned_partitions for index in each.partitions]
    generation = message.generation_id
    data = bytes(message.user_data or b"")
    if assignor == "cooperative-sticky" and generation == NO_GENERATION and len(data) >= _GENERATION.size:
        (generation,) = _GENERATION.unpack_from(data)
    elif assignor == "sticky" and data:
        owned, generation = _read_sticky(data)
    return SubscribedMember(tuple(message.topics), tuple(owned), generation, instance_id)


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Return the assignment of one member as bytes."""
    entry = ConsumerProtocolAssignment.TopicPartition
    message = ConsumerProtocolAssignment(
        assigned_partitions=[entry(topic=topic, partitions=indexes) for topic, indexes in by_topic(partitions).items()]
    )
    return _VERSION.pack(_ASSIGNMENT_VERSION) + encode(message, _ASSIGNMENT_VERSION)


def read_assignment(blob: bytes | memoryview) -> list[TopicPartition]:
    """Read the assignment of this member; empty if the leader left it out."""
    if not blob:
        return []
    message = _read(ConsumerProtocolAssignment, blob, _ASSIGNMENT_VERSION)
    return [TopicPartition(each.topic, index) for each in message.assigned_partitions for index in each.partitions]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition indexes by topic, both sorted."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found


def _read_sticky(data: bytes) -> tuple[list[TopicPartition], int]:
    for version in (1, 0):
        try:
            message, _ = decoder(StickyUserData, version)(memoryview(data), 0)
        except WireError:
            continue
        held = [TopicPartition(each.topic, index) for each in message.previous_assignment for index in each.partitions]
        return held, message.generation
    return [], NO_GENERATION


def _read(kind: type[D], blob: bytes | memoryview, version_max: int) -> D:
    view = memoryview(blob)
    try:
        (version,) = _VERSION.unpack_from(view)
        message, _ = decoder(kind, min(max(version, 0), version_max))(view, _VERSION.size)
    except (WireError, LayoutError) as error:
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"a member of the group sent what cannot be read: {error}"
        ) from None
    return message
