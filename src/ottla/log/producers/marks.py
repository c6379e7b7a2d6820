"""Marks: what producers were at some offsets near the end of a log, so that a cut need not read all of it again.

A mark says nothing when it is set. When a producer writes for the first time after it, what the producer was until then
is kept with it (`ProducerBefore`). Going back to a mark undoes that, from the newest mark to this one; what lies behind
the mark and before the cut is then read again. Marks are set often enough that this is little (see `LogState.mark`).

Rules:
- Marks are in ascending order of their offsets. The first one of all has no offset: nobody can go back to it.
- A producer that writes when the index of the segment has `due` entries sets a new mark first. So no batch of a
  producer that counts for a mark lies behind the entry before that.
- The oldest marks are forgotten when there are too many of them, or of what they keep.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.log.producers.producer import ProducerBefore, ProducerEntry, ProducersMark
from ottla.model.ids import ProducerId
from ottla.model.limits import INT64_MAX, MARKED_STATES_MAX, MARKS_MAX


class Marks:
    __slots__ = ("_marks", "newest")

    def __init__(self) -> None:
        self.newest = ProducersMark(INT64_MAX, 0)
        self._marks = [self.newest]

    def clear(self) -> None:
        """Everything begins anew."""
        self.newest = ProducersMark(INT64_MAX, 0)
        self._marks = [self.newest]

    def set(self, offset: int, due: int) -> None:
        self.newest = ProducersMark(offset, due)
        self._marks.append(self.newest)
        kept = sum(len(mark.before) for mark in self._marks)
        while len(self._marks) > MARKS_MAX or (kept > MARKED_STATES_MAX and len(self._marks) > 1):
            kept -= len(self._marks.pop(0).before)

    def keep(self, state: ProducerEntry) -> None:
        """The producer is about to change."""
        state.kept_at = self.newest
        before = ProducerBefore(
            state.epoch,
            state.coordinator_epoch,
            state.last_timestamp,
            state.txn_first_offset,
            state.written_at,
            tuple(state.batches),
        )
        # It may have been known at the mark, have changed, and have been forgotten since: the first word counts.
        self.newest.before.setdefault(state.producer_id, before)

    def keep_unknown(self, state: ProducerEntry) -> None:
        """The producer is a new one."""
        state.kept_at = self.newest
        self.newest.before.setdefault(state.producer_id, None)

    def forget_below(self, offset: int) -> None:
        """What lies below was changed: nobody can go back to before it."""
        self._marks = [mark for mark in self._marks if mark.offset >= offset or mark is self.newest]

    def find(self, offset: int, oldest: int) -> ProducersMark | None:
        """The newest mark at or below `offset`, if it is not below `oldest`."""
        for mark in reversed(self._marks):
            if mark.offset <= offset:
                return mark if mark.offset >= oldest else None
        return None

    def take_back(self, mark: ProducersMark) -> Iterator[tuple[ProducerId, ProducerBefore | None]]:
        """(producer id, what it was) of all that changed since `mark`, the oldest last; it is the newest mark then."""
        while True:
            last = self._marks[-1]
            yield from last.before.items()
            if last is mark:
                break
            self._marks.pop()
        self.newest = self._marks[-1] = ProducersMark(mark.offset, mark.due)
