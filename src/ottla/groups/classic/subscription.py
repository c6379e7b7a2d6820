"""What the coordinator reads of a consumer's metadata: the topics, with which every version of it begins."""

from __future__ import annotations

from struct import Struct

from ottla.wire.compile import decoder
from ottla.wire.journal.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.types import WireError

_VERSION = Struct(">h")


def topics_of(metadata: bytes) -> list[str] | None:
    """None if the bytes are something else."""
    if len(metadata) < _VERSION.size or _VERSION.unpack_from(metadata)[0] < 0:
        return None
    try:
        subscription, _ = decoder(ConsumerProtocolSubscription, 0)(memoryview(metadata), _VERSION.size)
    except WireError:
        return None
    topics: list[str] = subscription.topics
    return topics
