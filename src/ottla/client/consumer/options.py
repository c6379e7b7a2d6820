"""Settings of a consumer: Kafka's names and defaults, units last."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.client.assign import ASSIGNORS
from ottla.client.checks import check_numbers, check_texts
from ottla.client.consumer.fetching import ReadOptions
from ottla.client.consumer.offsets import EARLIEST, LATEST, Time
from ottla.model import limits
from ottla.model.ids import TopicPartition

_RESETS: dict[str, Time | None] = {"earliest": EARLIEST, "latest": LATEST, "none": None}


@dataclass(frozen=True, slots=True)
class ConsumerOptions:
    """Settings of one consumer; without a group id it reads what it is assigned and commits nothing."""

    group_id: str | None = None
    group_instance_id: str | None = None
    group_protocol: str = "classic"
    # Classic groups: in order of preference. As in Java, a member is cooperative if all its assignors are.
    assignors: Sequence[str] = ("range", "cooperative-sticky")
    # KIP-848: the server's assignor ("uniform", "range"), None for the group's own choice.
    group_remote_assignor: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    max_poll_records: int = 500
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    auto_offset_reset: str = "latest"
    isolation_level: str = "read_uncommitted"
    client_rack: str | None = None
    fetch_max_wait_ms: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 * limits.MIB
    max_partition_fetch_bytes: int = limits.MIB
    check_crcs: bool = True

    def __post_init__(self) -> None:
        choices = (
            ("group_protocol", self.group_protocol, ("classic", "consumer")),
            ("auto_offset_reset", self.auto_offset_reset, tuple(_RESETS)),
            ("isolation_level", self.isolation_level, ("read_uncommitted", "read_committed")),
        )
        for name, value, allowed in choices:
            if value not in allowed:
                raise ValueError(f"{name} is one of {', '.join(allowed)}, not {value!r}")
        if isinstance(self.assignors, str):
            raise TypeError(f"assignors is a tuple of names, as ({self.assignors!r},), not a str")
        unknown = [name for name in self.assignors if name not in ASSIGNORS]
        if unknown or not self.assignors:
            raise ValueError(f"assignors are some of {', '.join(ASSIGNORS)}, not {', '.join(unknown) or 'none'}")
        check_texts(self, "group_id", "group_instance_id", "group_remote_assignor", "client_rack")
        check_numbers(self, "auto_commit_interval_ms", "fetch_max_wait_ms", "fetch_min_bytes")
        check_numbers(
            self,
            *("max_poll_records", "session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms"),
            *("fetch_max_bytes", "max_partition_fetch_bytes"),
            at_least=1,
        )
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError("heartbeat_interval_ms has to be less than session_timeout_ms")

    @property
    def reset(self) -> Time | None:
        """Where to begin without a committed offset; None: that is an error."""
        return _RESETS[self.auto_offset_reset]

    @property
    def read_committed(self) -> bool:
        return self.isolation_level == "read_committed"

    def read_options(self) -> ReadOptions:
        return ReadOptions(
            max_wait_ms=self.fetch_max_wait_ms,
            min_bytes=self.fetch_min_bytes,
            max_bytes=self.fetch_max_bytes,
            max_partition_bytes=self.max_partition_fetch_bytes,
            read_committed=self.read_committed,
            check_crc=self.check_crcs,
        )


class RebalanceListener(Protocol):
    """Called inside `poll` and the iteration when the assignment changes. Each method may be a coroutine."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> Awaitable[None] | None:
        """Called before partitions go to another member: the last moment to store results that belong to them."""

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> Awaitable[None] | None:
        """Called after partitions were assigned, before any of their records; `seek` works here."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> Awaitable[None] | None:
        """Called after partitions were lost: other members may own them already, so it is too late to commit."""
