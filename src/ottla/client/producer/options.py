"""Settings of a producer; Kafka's names and defaults, units last."""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.client.checks import check_numbers, check_texts
from ottla.client.producer.hot_keys import SaltedKeys
from ottla.model import limits
from ottla.records.compress import Codec

# (topic, key, value, number of partitions) -> partition
Partitioner = Callable[[str, bytes | None, bytes | None, int], int]

# The number of batches that the broker remembers per producer and partition, which bounds idempotence.
IDEMPOTENT_IN_FLIGHT_MAX = 5

_ACKS: dict[int | str, int] = {-1: -1, 0: 0, 1: 1, "all": -1, "-1": -1, "0": 0, "1": 1}


@dataclass(frozen=True, slots=True)
class ProducerOptions:
    """Settings of one producer.

    `max_in_flight` bounds the requests per broker, and with idempotence the batches per partition. Without idempotence
    a value above one may reorder records when a batch is retried, as in Kafka.
    """

    # Kafka's texts are accepted as well: "all", "-1", "0", "1".
    acks: int | str = -1
    # Whether retries neither repeat nor reorder records; it needs acks=-1. None: on if acks allows it.
    idempotent: bool | None = None
    # Kafka's names are accepted as well: "none", "gzip", "snappy", "lz4", "zstd".
    codec: Codec | str = Codec.NONE
    codec_level: int | None = None
    linger_ms: float = 5.0
    batch_size_bytes: int = 16 * limits.KIB
    max_request_bytes: int = limits.MIB
    buffer_bytes: int = 32 * limits.MIB
    max_in_flight: int = IDEMPOTENT_IN_FLIGHT_MAX
    retries: int = limits.INT32_MAX
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    # How long a send may wait for metadata and for room in the buffer.
    max_block_ms: int = 60_000
    auto_create_topics: bool = True
    # Chooses the partition of records without an explicit one; None: hash of the key as in Java, sticky without a key.
    partitioner: Partitioner | None = None
    # Hot keys that are spread over several partitions; comes before the partitioner.
    salted_keys: SaltedKeys | None = None
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000

    def __post_init__(self) -> None:
        acks = _acks(self.acks)
        if self.idempotent and acks != -1:
            raise ValueError(f"idempotent=True needs acks=-1 (all), not {self.acks}")
        check_numbers(self, "retries", "request_timeout_ms", "delivery_timeout_ms", "transaction_timeout_ms")
        check_numbers(self, "linger_ms", "max_block_ms", at_most=limits.INT64_MAX)
        check_numbers(self, "batch_size_bytes")  # 0: no batching, as in Kafka
        check_numbers(self, "max_request_bytes", "max_in_flight", at_least=1)
        check_numbers(self, "buffer_bytes", at_least=1, at_most=limits.INT64_MAX)
        check_texts(self, "transactional_id")
        _codec(self.codec)
        if self.transactional_id is not None and not self.is_idempotent:
            raise ValueError("transactions need acks=-1 and idempotence")
        if self.transactional_id == "":
            raise ValueError("the transactional id is empty")

    @property
    def compression(self) -> Codec:
        """The codec, however it was named."""
        return _codec(self.codec)

    @property
    def acknowledgements(self) -> int:
        """`acks` as the number that is sent, however it was given."""
        return _acks(self.acks)

    @property
    def is_idempotent(self) -> bool:
        return self.idempotent is not False and self.acknowledgements == -1

    @property
    def in_flight_per_partition_max(self) -> int:
        return min(self.max_in_flight, IDEMPOTENT_IN_FLIGHT_MAX) if self.is_idempotent else self.max_in_flight


def _acks(acks: object) -> int:
    if isinstance(acks, bool) or not isinstance(acks, int | str) or acks not in _ACKS:
        raise ValueError(f"acks is 0, 1 or -1 (all), not {acks!r}")
    return _ACKS[acks]


def _codec(codec: Codec | str) -> Codec:
    found = codec if isinstance(codec, Codec) else Codec.__members__.get(str(codec).upper())
    if found is None:
        raise ValueError(f"codec is one of {', '.join(each.name.lower() for each in Codec)}, not {codec!r}")
    return found
