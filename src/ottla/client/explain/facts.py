"""Facts about a group, as they are gathered from a cluster (`gather.py`) and judged (`lag.py`)."""

from typing import NamedTuple

from ottla.client.admin.group_descriptions import GroupMember
from ottla.client.admin.group_events import GroupPast
from ottla.model.ids import TopicPartition


class FirstOpenTransaction(NamedTuple):
    """The first open transaction of a partition: consumers that read committed records get none from its start on."""

    producer_id: int
    start_offset: int
    transactional_id: str | None = None  # None: its coordinator does not know it (any more), or may not be asked
    state: str = ""
    open_ms: int | None = None  # for how long


class PartitionFacts(NamedTuple):
    """One partition that the group reads. Rates are records per second within the sample; None: not known."""

    partition: TopicPartition
    committed: int | None = None  # of a share group: the first record that is not finished
    start: int = 0
    end: int = 0
    records: int | None = None  # the lag
    seconds: float | None = None  # how long the first record that was not read has waited
    produced_per_s: float | None = None
    consumed_per_s: float | None = None
    stable_end: int | None = None  # the end for consumers that read committed records, if it is another one
    is_stuck: bool = False  # whether that end did not move within the sample
    transaction: FirstOpenTransaction | None = None
    owner: GroupMember | None = None
    exists: bool = True
    has_leader: bool = True
    error: str = ""  # why nothing else is known
    record_bytes: float | None = None  # the average size of a record

    @property
    def lag(self) -> int:
        return self.records or 0

    @property
    def is_behind(self) -> bool:
        return self.lag > 0


class QuotaFact(NamedTuple):
    """A quota that holds for a client of the group: bytes per second, on each broker. `whose` are the options of `ottla
    quota set` that name it.
    """

    client_id: str
    bytes_per_s: float
    whose: str


class GroupState(NamedTuple):
    """A group with its members and partitions, sampled for `window_s`."""

    group_id: str
    kind: str
    state: str
    epoch: int | None
    members: tuple[GroupMember, ...]
    partitions: tuple[PartitionFacts, ...]
    window_s: float
    quotas: tuple[QuotaFact, ...] = ()
    past: GroupPast | None = None  # None: this coordinator remembers nothing, because it is not Ottla's
