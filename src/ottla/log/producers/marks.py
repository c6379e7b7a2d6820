"""Marks: the producers' states at some offsets near the end of a log, so that a truncation need not read all of it
again.

A mark is empty when it is set. When a producer writes for the first time after it, the producer's state before that
write is kept with the mark (`ProducerBefore`). Going back to a mark restores these states, from the newest mark to this
one; the batches between the mark and the truncation are then read again. Marks are set often enough that these are few
(see `LogState.mark`).

Rules:
- Marks are in ascending order of their offsets. The very first one has no offset: it cannot be restored.
- A producer that writes when the index of the segment has `due` entries sets a new mark first. So all batches that
  belong to a mark lie at or before index entry number `due - 1`.
- The oldest marks are forgotten when there are too many of them, or of the states they keep.
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
        """Forget all marks."""
        self.newest = ProducersMark(INT64_MAX, 0)
        self._marks = [self.newest]

    def set(self, offset: int, due: int) -> None:
        self.newest = ProducersMark(offset, due)
        self._marks.append(self.newest)
        kept = sum(len(mark.before) for mark in self._marks)
        while len(self._marks) > MARKS_MAX or (kept > MARKED_STATES_MAX and len(self._marks) > 1):
            kept -= len(self._marks.pop(0).before)

    def keep(self, state: ProducerEntry) -> None:
        """Keep the state of a producer that is about to change."""
        state.kept_at = self.newest
        before = ProducerBefore(
            state.epoch,
            state.coordinator_epoch,
            state.last_timestamp,
            state.txn_first_offset,
            state.written_at,
            tuple(state.batches),
        )
        # The producer may have been known at the mark, have changed, and have been forgotten since: the first state
        # counts.
        self.newest.before.setdefault(state.producer_id, before)

    def keep_unknown(self, state: ProducerEntry) -> None:
        """Note that a producer was not known at the newest mark."""
        state.kept_at = self.newest
        self.newest.before.setdefault(state.producer_id, None)

    def forget_below(self, offset: int) -> None:
        """Forget marks below `offset`, because the log below it was changed."""
        self._marks = [mark for mark in self._marks if mark.offset >= offset or mark is self.newest]

    def find(self, offset: int, oldest: int) -> ProducersMark | None:
        """Return the newest mark at or below `offset`, if it is not below `oldest`."""
        for mark in reversed(self._marks):
            if mark.offset <= offset:
                return mark if mark.offset >= oldest else None
        return None

    def take_back(self, mark: ProducersMark) -> Iterator[tuple[ProducerId, ProducerBefore | None]]:
        """Yield (producer id, state then) of producers that changed since `mark`, oldest last; drop the newer marks."""
        while True:
            last = self._marks[-1]
            yield from last.before.items()
            if last is mark:
                break
            self._marks.pop()
        self.newest = self._marks[-1] = ProducersMark(mark.offset, mark.due)
