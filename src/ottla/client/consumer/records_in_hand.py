"""Records that a consumer has handed out and that its caller may still be working on.

Rules:
- A caller that polls again (or continues the iteration) has handled the records it got before. Until then they are *in
  hand*.
- Records in hand can be taken back: the position returns to the first of them, and so does the automatic commit. One
  step of the iteration hands out one record, a `poll` or an Arrow batch all records in it.
- Records whose offsets the caller asked to commit while they were in hand count as handled, even if the commit's
  success is unknown: a committed position does not go back by itself. A position that the caller has sought stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.fetched import ConsumedRecord, FetchCursor
from ottla.client.outcomes import Outcomes
from ottla.model.ids import TopicPartition


class PositionBefore(NamedTuple):
    """The state of an assigned partition before records of it were handed out."""

    place: AssignedPartition
    position: int
    leader_epoch: int
    cursor: FetchCursor | None

    @classmethod
    def of(cls, place: AssignedPartition) -> PositionBefore | None:
        if place.position is None:
            return None
        return cls(place, place.position, place.leader_epoch, place.cursor)

    def take_back(self) -> None:
        """Return to the old position, unless the caller has sought another one; but not to before an offset that the
        caller asked to commit.
        """
        place, asked = self.place, self.place.asked
        if place.cursor is not self.cursor or place.position is None:
            return
        if asked is not None and asked > self.position:
            if asked < place.position:
                place.move(asked, topic_id=place.topic_id)
        else:
            place.move(self.position, self.leader_epoch, place.topic_id)


class RecordsInHand:
    """The records in hand, and those that the iteration has taken of one partition to hand them out one by one."""

    def __init__(self) -> None:
        self._in_hand: list[PositionBefore] = []
        self._records: list[ConsumedRecord] = []
        self._handed = 0
        self._place: AssignedPartition | None = None
        self._before: PositionBefore | None = None
        self._next_offset = 0

    def hand_out(
        self, places: Sequence[AssignedPartition], records_max: int
    ) -> Outcomes[TopicPartition, list[ConsumedRecord]]:
        """Hand out up to `records_max` records of these partitions. If the next batch of a partition cannot be
        decoded, only that partition fails and keeps its position.
        """
        outcomes: Outcomes[TopicPartition, list[ConsumedRecord]] = Outcomes()
        found = outcomes.found
        self.hold(places)
        try:
            for place in places:
                while records_max > 0 and place.has_records:
                    try:
                        records, next_offset = place.take(records_max)
                    except Exception as error:
                        outcomes.failed[place.partition] = error
                        break
                    place.hand_out(records, next_offset)
                    records_max -= len(records)
                    if place.partition in found:
                        found[place.partition] += records
                    elif records:
                        found[place.partition] = records
        except BaseException:  # the caller gets no records
            self.take_back()
            raise
        return outcomes

    def hold(self, places: Iterable[AssignedPartition]) -> None:
        """Remember the positions of these partitions, whose records are about to be handed out."""
        self._in_hand = [
            held for place in places if place.has_records and (held := PositionBefore.of(place)) is not None
        ]

    def begin(self, place: AssignedPartition, records_max: int) -> None:
        """Take records of a partition, for `next_record`."""
        self._before = PositionBefore.of(place)
        self._records, self._next_offset = place.take(records_max)
        self._place, self._handed = place, 0

    def next_record(self) -> ConsumedRecord | None:
        """Return the next record of the iteration if there is one without waiting, else None."""
        if self._handed == len(self._records):
            return None
        record = self._records[self._handed]
        self._handed += 1
        self._place.position = record.offset + 1  # type: ignore[union-attr]
        return record

    def stop(self) -> None:
        """End the iteration over the taken records; those that were not handed out come first in the next call."""
        place, self._place = self._place, None
        if place is None:
            return
        handed, rest = self._records[: self._handed], self._records[self._handed :]
        self._records, self._handed = [], 0
        if handed and self._before is not None:
            before = handed[-2].leader_epoch if len(handed) > 1 else self._before.leader_epoch
            self._in_hand = [self._before._replace(position=handed[-1].offset, leader_epoch=before)]
        if rest:
            place.put_back(rest, self._next_offset)
            if handed:
                place.leader_epoch = handed[-1].leader_epoch
        elif place.position is not None:
            place.hand_out(handed, self._next_offset)

    def come_back(self) -> None:
        """Note that the caller is back: it has handled the records that it got."""
        self.stop()
        self._in_hand = []

    def take_back(self) -> None:
        """Take back the records in hand: they were not handled."""
        self.stop()
        for held in self._in_hand:
            held.take_back()
        self._in_hand = []
