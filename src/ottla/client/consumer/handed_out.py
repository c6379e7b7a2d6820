"""What a consumer has handed out and nobody has come back for yet: records that may still be under somebody's hands.

Rules:
- Whoever polls again (or goes on with the iteration) has handled what it got before. Until then that is *in hand*.
- What is in hand can be taken back: the position returns to before it, and so does what is committed automatically.
  One turn of the iteration hands out one record, a `poll` or an Arrow batch all that is in it.
- What the caller wanted to be committed while it was in hand counts as handled, even if it was not told that it is:
  a committed position does not go back by itself. A position that the caller has sought stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.fetched import ConsumedRecord, FetchCursor
from ottla.client.outcomes import Outcomes
from ottla.model.ids import TopicPartition


class HandedOut(NamedTuple):
    """A place as it was before records of it were handed out."""

    place: AssignedPartition
    position: int
    leader_epoch: int
    cursor: FetchCursor | None

    @classmethod
    def of(cls, place: AssignedPartition) -> HandedOut | None:
        if place.position is None:
            return None
        return cls(place, place.position, place.leader_epoch, place.cursor)

    def take_back(self) -> None:
        """Go back there, unless the caller has sought another position; not behind what it wanted to be committed."""
        place, asked = self.place, self.place.asked
        if place.cursor is not self.cursor or place.position is None:
            return
        if asked is not None and asked > self.position:
            if asked < place.position:
                place.move(asked, topic_id=place.topic_id)
        else:
            place.move(self.position, self.leader_epoch, place.topic_id)


class Handing:
    """What is in hand; and what the iteration has taken of one place to hand it out record by record."""

    def __init__(self) -> None:
        self._in_hand: list[HandedOut] = []
        self._records: list[ConsumedRecord] = []
        self._handed = 0
        self._place: AssignedPartition | None = None
        self._before: HandedOut | None = None
        self._next_offset = 0

    def hand_out(
        self, places: Sequence[AssignedPartition], records_max: int
    ) -> Outcomes[TopicPartition, list[ConsumedRecord]]:
        """Up to so many records of these places. One whose next batch cannot be decoded fails alone and stays there."""
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
        except BaseException:  # the caller gets nothing
            self.take_back()
            raise
        return outcomes

    def hold(self, places: Iterable[AssignedPartition]) -> None:
        """Records of these places are about to be handed out."""
        self._in_hand = [held for place in places if place.has_records and (held := HandedOut.of(place)) is not None]

    def begin(self, place: AssignedPartition, records_max: int) -> None:
        """Take records of a place, for `next_record`."""
        self._before = HandedOut.of(place)
        self._records, self._next_offset = place.take(records_max)
        self._place, self._handed = place, 0

    def next_record(self) -> ConsumedRecord | None:
        """The next record of the iteration, if there is one without waiting."""
        if self._handed == len(self._records):
            return None
        record = self._records[self._handed]
        self._handed += 1
        self._place.position = record.offset + 1  # type: ignore[union-attr]
        return record

    def stop(self) -> None:
        """What the iteration took and did not hand out comes first again, whoever asks next."""
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
        """The caller is here again: what it got has been handled."""
        self.stop()
        self._in_hand = []

    def take_back(self) -> None:
        """What is in hand was not handled."""
        self.stop()
        for held in self._in_hand:
            held.take_back()
        self._in_hand = []
