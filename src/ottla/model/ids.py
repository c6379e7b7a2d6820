"""Identities: topic partitions, UUIDs, and numbers that must not be mistaken for each other.

Rules:
- The numbers are integers with a type of their own (`NewType`), which costs nothing at run time. Messages declare their
  fields with these types (`wire.types`), so most of the code gets them from there. Where ids and epochs are passed side
  by side, all but one of them have their own types, so the type checker refuses to swap them (ADR 0041).
- Offsets and node ids are plain integers: offsets are added and compared, node ids are members of sets and tuples.
- A UUID is raw 16-byte `bytes` everywhere inside Ottla; text exists only at the edges (files, CLI, logs).
- The text form is Kafka's: url-safe base64 without padding, 22 characters.
"""

import base64
import binascii
from typing import Final, NamedTuple, NewType, Protocol

UUID_SIZE_BYTES = 16
NO_ID = bytes(UUID_SIZE_BYTES)
# Kafka reserves this id for the `__cluster_metadata` topic, so no other topic may ever get it.
METADATA_TOPIC_ID = bytes(15) + b"\x01"

ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
# The offset of a broker's registration in the metadata log; each registration of a broker has another one.
BrokerEpoch = NewType("BrokerEpoch", int)
# Counts the leaders of a partition, or of the metadata quorum (raft's epoch).
LeaderEpoch = NewType("LeaderEpoch", int)
# Counts the changes of a partition's state; must not be mistaken for its leader epoch.
PartitionEpoch = NewType("PartitionEpoch", int)
NO_PRODUCER_ID: Final = ProducerId(-1)
NO_PRODUCER_EPOCH: Final = ProducerEpoch(-1)
FIRST_PRODUCER_EPOCH: Final = ProducerEpoch(0)
NO_BROKER_EPOCH: Final = BrokerEpoch(-1)
NO_LEADER_EPOCH: Final = LeaderEpoch(-1)
FIRST_LEADER_EPOCH: Final = LeaderEpoch(0)
NO_PARTITION_EPOCH: Final = PartitionEpoch(-1)
FIRST_PARTITION_EPOCH: Final = PartitionEpoch(0)

_UUID_TEXT_CHARS_MAX = 24  # 22 characters, or 24 with padding


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class ProducerIdentity(NamedTuple):
    """A producer's id and its epoch; -1 for both without idempotence."""

    producer_id: ProducerId = NO_PRODUCER_ID
    epoch: ProducerEpoch = NO_PRODUCER_EPOCH


class BitSource(Protocol):
    """The one method of `random.Random` that ids need."""

    def getrandbits(self, k: int, /) -> int: ...


def uuid_text(uuid: bytes) -> str:
    """Return the 22 characters that Kafka's tools print for this id."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """Parse the text form; `ValueError` when it is not a UUID."""
    if len(text) > _UUID_TEXT_CHARS_MAX:
        raise ValueError(f"{text[:_UUID_TEXT_CHARS_MAX]!r}... is too long for a base64 UUID")
    if "+" in text or "/" in text:
        raise ValueError(f"{text!r} is not a base64 UUID: it has characters of the other base64 alphabet")
    try:
        # validate=True refuses foreign characters instead of skipping them.
        raw = base64.b64decode(text.rstrip("=") + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not a base64 UUID: {error}") from None
    if len(raw) != UUID_SIZE_BYTES:
        raise ValueError(f"{text!r} is {len(raw)} bytes, a UUID has {UUID_SIZE_BYTES}")
    return raw


def random_uuid(rng: BitSource) -> bytes:
    """Return a random (version 4) UUID that is not reserved and whose text is safe as a command-line argument."""
    while True:
        bits = rng.getrandbits(128)
        bits = bits & ~(0xF << 76) | 0x4 << 76  # version 4
        bits = bits & ~(0x3 << 62) | 0x2 << 62  # RFC 4122 variant
        uuid = bits.to_bytes(UUID_SIZE_BYTES, "big")
        # A leading '-' would be read as an option by every tool that takes the id; the version bits already rule out
        # the two reserved ids.
        if uuid_text(uuid)[0] != "-":
            return uuid
