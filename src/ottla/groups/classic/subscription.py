"""Reads the topics from a consumer's subscription metadata; every version of it starts with them."""

from __future__ import annotations

from struct import Struct

from ottla.wire.compile import decoder
from ottla.wire.journal.consumer_protocol import ConsumerProtocolSubscription
from ottla.wire.types import WireError

_VERSION = Struct(">h")


def topics_of(metadata: bytes) -> list[str] | None:
    """Return the topics; None if the bytes are no subscription."""
    if len(metadata) < _VERSION.size or _VERSION.unpack_from(metadata)[0] < 0:
        return None
    try:
        subscription, _ = decoder(ConsumerProtocolSubscription, 0)(memoryview(metadata), _VERSION.size)
    except WireError:
        return None
    topics: list[str] = subscription.topics
    return topics
