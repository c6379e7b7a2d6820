"""Claims about a share group, checked against everything that its members sent and received.

Claims, for runs in which acknowledged data must survive:
1. final states are final: a record whose acceptance or rejection was answered is never delivered again;
2. nothing is lost: in the end every record was accepted, rejected, archived at the delivery limit, or is delivered;
3. deliveries are counted: no delivery count exceeds the limit, and each answered release counts;
4. one holder: a record that a member surely holds is delivered to no other member, and its acknowledgement is not
   refused.

Answers overtake each other, so an answer is judged only by what was known before its request was sent. A member surely
holds a record from the answer that delivered it until its lock could end at the earliest, unless the member
acknowledges the record, loses its connection, or the node that keeps the locks is restarted; a jump of the node's clock
ends no lock. While disks fail the node may forget its locks as well: then claim 4 is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

ACCEPT, RELEASE, REJECT = 1, 2, 3
FINAL = (ACCEPT, REJECT)
CLOCK_TICK_SECONDS = 0.001  # the node counts in milliseconds, and rounds down

Acks = Mapping[TopicPartition, Mapping[int, int]]  # types by offset


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request, and what was known when it was sent."""

    member: str
    tick: int
    begun_seconds: float
    disturbances: int


@dataclass(frozen=True, slots=True)
class Hold:
    """A record that a member has acquired."""

    member: str
    tick: int  # when the member received it
    until_seconds: float  # the lock does not end before
    disturbances: int
    is_connected: Callable[[], bool]


@dataclass(slots=True)
class _Record:
    """Everything that is known about one record."""

    tried: dict[int, None] = field(default_factory=dict)  # the kinds of acknowledgement that were sent
    done_tick: int | None = None  # when an answer confirmed its acceptance or rejection
    releases: list[int] = field(default_factory=list)  # when answers confirmed releases
    count_max: int = 0
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class Acknowledging:
    """Acknowledgements that were sent, with the former holds of their records."""

    asked: SentRequest
    acks: Acks
    holds: Mapping[tuple[TopicPartition, int], Hold | None]


class ShareBook:
    """The observations of one share group."""

    def __init__(
        self,
        group: str,
        limit: int,
        blame: Callable[[str], None],
        now_seconds: Callable[[], float],
        disturbances: Callable[[], int],
        *,
        locks_last: bool = True,
    ) -> None:
        """`disturbances` counts events that end locks; `locks_last`: nothing else ends them."""
        self.group = group
        self.lost_fetches = 0  # fetches whose answers are unknown
        self.deliveries = 0
        self.accepted = 0
        self._limit = limit
        self._blame = blame
        self._now_seconds = now_seconds
        self._disturbances = disturbances
        self._locks_last = locks_last
        self._tick = 0
        self._records: dict[tuple[TopicPartition, int], _Record] = {}

    # -- what members report

    def asking(self, member: str) -> SentRequest:
        """Note that a fetch is sent."""
        self._tick += 1
        self.lost_fetches += 1  # until it is answered
        return SentRequest(member, self._tick, self._now_seconds(), self._disturbances())

    def answered(self, asked: SentRequest) -> None:
        self._tick += 1
        self.lost_fetches -= 1

    def acquired(
        self,
        asked: SentRequest,
        partition: TopicPartition,
        offset: int,
        count: int,
        lock_seconds: float,
        is_connected: Callable[[], bool],
    ) -> None:
        """Note a record in the answer to a fetch."""
        self.deliveries += 1
        record = self._of(partition, offset)
        if record.done_tick is not None and record.done_tick < asked.tick:
            self._wrong(partition, offset, f"{asked.member} gets it although it is done")
        released = sum(tick < asked.tick for tick in record.releases)
        if count > self._limit:
            self._wrong(partition, offset, f"delivery {count}, but {self._limit} is the limit")
        if count < released + 1:
            self._wrong(partition, offset, f"delivery {count} after {released} answered releases")
        hold = record.hold
        if hold is not None and hold.member != asked.member and hold.tick < asked.tick and self._is_sure(hold):
            self._wrong(partition, offset, f"{asked.member} gets it while {hold.member} holds it")
        record.count_max = max(record.count_max, count)
        until = asked.begun_seconds + lock_seconds - CLOCK_TICK_SECONDS
        record.hold = Hold(asked.member, self._tick, until, asked.disturbances, is_connected)

    def acknowledging(self, member: str, acks: Acks) -> Acknowledging:
        """Note that acknowledgements are sent: from now on it is unknown who holds their records."""
        self._tick += 1
        holds: dict[tuple[TopicPartition, int], Hold | None] = {}
        for partition, types in acks.items():
            for offset, kind in types.items():
                record = self._of(partition, offset)
                record.tried[kind] = None
                holds[partition, offset], record.hold = record.hold, None
        return Acknowledging(SentRequest(member, self._tick, self._now_seconds(), self._disturbances()), acks, holds)

    def acknowledged(self, sent: Acknowledging, partition: TopicPartition, error_code: int) -> None:
        """Note the answer for one partition: all its acknowledgements count, or none."""
        self._tick += 1
        if error_code == 0:
            for offset, kind in sent.acks[partition].items():
                self._settle(partition, offset, kind)
        elif error_code == ErrorCode.INVALID_RECORD_STATE:
            # One record that is not held makes the node refuse all.
            holds = {offset: sent.holds[partition, offset] for offset in sent.acks[partition]}
            if all(
                hold is not None and hold.member == sent.asked.member and self._is_sure(hold) for hold in holds.values()
            ):
                self._wrong(partition, min(holds), f"{sent.asked.member} holds it, but may not acknowledge it")

    def gone(self, member: str) -> None:
        """The member's connection ended, and its holds with it."""
        for record in self._records.values():
            if record.hold is not None and record.hold.member == member:
                record.hold = None

    # -- the end

    def judge(self, partition: TopicPartition, start: int, end: int) -> None:
        """Check at the end, when every record that is still available was delivered."""
        lost = [offset for offset in range(start, end) if not self._is_explained(self._of(partition, offset))]
        if lost:
            self._wrong(partition, lost[0], f"it and {len(lost) - 1} others are neither done nor to be had")

    def _is_explained(self, record: _Record) -> bool:
        """Whether the record is done, may be done, or was archived, perhaps after deliveries whose answers were
        lost.
        """
        if record.done_tick is not None or any(kind in record.tried for kind in FINAL):
            return True
        return record.count_max + self.lost_fetches >= self._limit

    def _settle(self, partition: TopicPartition, offset: int, kind: int) -> None:
        record = self._of(partition, offset)
        if kind in FINAL:
            record.done_tick = self._tick
            self.accepted += kind == ACCEPT
        else:
            record.releases.append(self._tick)

    def _is_sure(self, hold: Hold) -> bool:
        return (
            self._locks_last
            and self._now_seconds() < hold.until_seconds
            and self._disturbances() == hold.disturbances
            and hold.is_connected()
        )

    def _of(self, partition: TopicPartition, offset: int) -> _Record:
        return self._records.setdefault((partition, offset), _Record())

    def _wrong(self, partition: TopicPartition, offset: int, what: str) -> None:
        self._blame(f"share group {self.group}, {partition.topic}-{partition.partition} at {offset}: {what}")
