"""The hash of the topics that a group reads: it changes exactly when an assignor might assign differently."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import pack

from ottla.groups.modern.xxh3 import xxh3_64
from ottla.groups.view import GroupTopic, GroupTopics
from ottla.model import limits

_LAYOUT = b"\0"  # the version of the hashed fields and their encoding
NO_TOPICS = 0


def metadata_hash(names: Iterable[str], topics: GroupTopics) -> int:
    """Return the hash of those of these topics that exist; the order of the names does not matter."""
    found = [info for name in sorted(names) if (info := topics.by_name(name)) is not None]
    if not found:
        return NO_TOPICS
    return _signed(xxh3_64(b"".join(pack("<Q", _topic_hash(info)) for info in found)))


@lru_cache(limits.TOPIC_HASHES_MAX)
def _topic_hash(topic: GroupTopic) -> int:
    parts = [_LAYOUT, topic.id[7::-1], topic.id[:7:-1], _text(topic.name), pack("<i", topic.partitions)]
    for partition in range(topic.partitions):
        parts.append(pack("<i", partition))
        racks = topic.racks[partition] if partition < len(topic.racks) else frozenset()
        for rack in sorted(racks):
            parts += [pack("<i", _units(rack)), _text(rack)]
    return xxh3_64(b"".join(parts))


def _text(text: str) -> bytes:
    return text.encode("utf-16-le") + pack("<i", _units(text))


def _units(text: str) -> int:
    """Return the length of the string in Java, in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
