"""Settings of a share consumer: Kafka's names and defaults, units last."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.client.checks import check_numbers, check_texts
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition

_ACQUIRE_MODES = {"batch_optimized": 0, "record_limit": 1}


class Acknowledged(NamedTuple):
    """The broker's answer to acknowledgements of one partition; an error holds for all of these offsets."""

    partition: TopicPartition
    offsets: tuple[int, ...]
    error: ApiError | None = None


@dataclass(frozen=True, slots=True)
class ShareOptions:
    """Settings of one share consumer. Where a group begins, how long locks last and how often a record is delivered
    are settings of the group (`share.auto.offset.reset`, `share.record.lock.duration.ms`, ...).
    """

    group_id: str
    # implicit: the next poll, iteration or commit accepts records that were handed out and not acknowledged otherwise.
    # explicit: only explicit acknowledgements count; other records stay locked until their lock expires or the consumer
    # closes.
    acknowledgement_mode: str = "implicit"
    # batch_optimized: whole batches, possibly some more records than requested. record_limit: never more.
    acquire_mode: str = "batch_optimized"
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    # Acknowledgements are sent with the next fetch or commit; if there is none within this time, by themselves.
    acknowledge_linger_ms: int = 1_000
    heartbeat_interval_ms: int = 5_000  # until the broker names its own
    client_rack: str | None = None
    fetch_max_wait_ms: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 50 * limits.MIB
    check_crcs: bool = True
    # Called with the outcome of every acknowledgement, in the event loop.
    on_acknowledged: Callable[[Acknowledged], None] | None = None

    def __post_init__(self) -> None:
        choices = (
            ("acknowledgement_mode", self.acknowledgement_mode, ("implicit", "explicit")),
            ("acquire_mode", self.acquire_mode, tuple(_ACQUIRE_MODES)),
        )
        for name, value, allowed in choices:
            if value not in allowed:
                raise ValueError(f"{name} is one of {', '.join(allowed)}, not {value!r}")
        if not self.group_id:
            raise ValueError("a share consumer needs a group_id")
        check_texts(self, "group_id", "client_rack")
        check_numbers(self, "acknowledge_linger_ms", "fetch_max_wait_ms", "fetch_min_bytes")
        check_numbers(
            self, "max_poll_records", "max_poll_interval_ms", "heartbeat_interval_ms", "fetch_max_bytes", at_least=1
        )

    @property
    def is_implicit(self) -> bool:
        return self.acknowledgement_mode == "implicit"

    @property
    def acquire_mode_number(self) -> int:
        return _ACQUIRE_MODES[self.acquire_mode]
