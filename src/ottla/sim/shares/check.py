"""What must be true of a share group whatever happens, checked against everything that its members sent and were told.

Claims, for runs in which nothing that was acknowledged may be lost:
1. done is done: a record whose acceptance or rejection was answered is never handed out again;
2. nothing is lost: in the end every record was accepted, rejected, given up after its last delivery, or is handed out;
3. deliveries are counted: none is told to be beyond the limit, and each answered release counts;
4. one holder: a record that a member surely holds is handed to nobody else, and its acknowledgement is not refused.

Answers overtake each other, so only what was known before a request was sent is held against its answer. A member
surely holds a record from the answer that brought it until its lock could end at the earliest, unless it acknowledges
it, loses its connection, or the node that keeps the locks is restarted; a jump of its clock ends none. While disks fail
the node may have to forget its locks as well: then claim 4 is not checked.
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
    """A request, and what was so when it was sent."""

    member: str
    tick: int
    begun_seconds: float
    disturbances: int


@dataclass(frozen=True, slots=True)
class Hold:
    """A record in somebody's hands."""

    member: str
    tick: int  # when the member learnt of it
    until_seconds: float  # not released by the clock before
    disturbances: int
    is_connected: Callable[[], bool]


@dataclass(slots=True)
class _Record:
    """Everything that is known about one record."""

    tried: dict[int, None] = field(default_factory=dict)  # the kinds of acknowledgement that were sent
    done_tick: int | None = None  # when an answer said that it is accepted or rejected
    releases: list[int] = field(default_factory=list)  # when answers said that it is released
    count_max: int = 0
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class Acknowledging:
    """Acknowledgements under way, with what their records' holds were."""

    asked: SentRequest
    acks: Acks
    holds: Mapping[tuple[TopicPartition, int], Hold | None]


class ShareBook:
    """One share group."""

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
        """`disturbances` counts what ends locks; `locks_last`: nothing else does."""
        self.group = group
        self.lost_fetches = 0  # nobody knows what they brought
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
        """A fetch is sent."""
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
        """The answer to a fetch brought this record."""
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
        """Acknowledgements are sent: from now on nobody knows who holds what."""
        self._tick += 1
        holds: dict[tuple[TopicPartition, int], Hold | None] = {}
        for partition, types in acks.items():
            for offset, kind in types.items():
                record = self._of(partition, offset)
                record.tried[kind] = None
                holds[partition, offset], record.hold = record.hold, None
        return Acknowledging(SentRequest(member, self._tick, self._now_seconds(), self._disturbances()), acks, holds)

    def acknowledged(self, sent: Acknowledging, partition: TopicPartition, error_code: int) -> None:
        """What the answer said of one partition: all of it counts, or nothing."""
        self._tick += 1
        if error_code == 0:
            for offset, kind in sent.acks[partition].items():
                self._settle(partition, offset, kind)
        elif error_code == ErrorCode.INVALID_RECORD_STATE:
            # One that is not held refuses all.
            holds = {offset: sent.holds[partition, offset] for offset in sent.acks[partition]}
            if all(
                hold is not None and hold.member == sent.asked.member and self._is_sure(hold) for hold in holds.values()
            ):
                self._wrong(partition, min(holds), f"{sent.asked.member} holds it, but may not acknowledge it")

    def gone(self, member: str) -> None:
        """The member's connection ended, and with it all that it held."""
        for record in self._records.values():
            if record.hold is not None and record.hold.member == member:
                record.hold = None

    # -- the end

    def judge(self, partition: TopicPartition, start: int, end: int) -> None:
        """Everything was handed out that is still to be had."""
        lost = [offset for offset in range(start, end) if not self._is_explained(self._of(partition, offset))]
        if lost:
            self._wrong(partition, lost[0], f"it and {len(lost) - 1} others are neither done nor to be had")

    def _is_explained(self, record: _Record) -> bool:
        """Done, maybe done, or given up: perhaps after deliveries that nobody has seen."""
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
