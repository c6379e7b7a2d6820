"""SharePartition: the acquisition state of one partition for one share group.

Rules:
- All records below `start_offset` are done. From there on `ranges` holds the states; offsets without a range were never
  acquired.
- A record is ACQUIRED by at most one member at a time, and its delivery count says how often it was acquired.
- Acknowledging, releasing and the end of an acquisition lock make a Transition, which the caller stores; until `settle`
  no member can have the records, and if storing fails `restore` brings back their former state. So a consumer is told
  only what is stored.
- Offsets without a record (markers, aborted transactions, compacted records) are buried: ARCHIVED without an
  acknowledgement, and stored later (`buried`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.shares.partition.acks import check, runs
from ottla.shares.partition.handout import Handout
from ottla.shares.partition.key_order import Lanes
from ottla.shares.partition.ranges import Lot, RecordRange, RecordRanges
from ottla.shares.partition.terms import (
    Ack,
    AckType,
    AcquiredRange,
    Dead,
    FetchedBatch,
    GiveUpReason,
    Ready,
    RecordState,
    Rules,
    Transition,
    Want,
)
from ottla.shares.state.batches import StateBatch


class SharePartition:
    def __init__(self, start_offset: int, rules: Rules) -> None:
        self.start_offset = start_offset
        self.rules = rules
        self.ranges = RecordRanges()
        self.lanes = Lanes()
        self.scanned = start_offset  # if the rules require inspection: all records below were inspected
        self.open = 0  # records whose state is not final, or not stored yet
        self.delayed = 0  # of these: never delivered, because they are not due yet
        self.done = 0  # records with a final state above the start
        self._low = start_offset  # no record below is available
        self._tokens = 0
        self._pending: dict[int, list[RecordRange]] = {}
        self._buried: list[StateBatch] = []

    @classmethod
    def loaded(cls, start_offset: int, batches: Iterable[StateBatch], rules: Rules, now_ms: int) -> SharePartition:
        """Restore a share-partition from its stored state. Records that were acquired then are available again."""
        self = cls(start_offset, rules)
        for batch in sorted(batches):
            first = max(batch.first_offset, start_offset)
            if first > batch.last_offset:
                continue
            state = RecordState(batch.delivery_state)
            if state in (RecordState.AVAILABLE, RecordState.ACQUIRED):
                pause_ms = rules.backoff(batch.delivery_count) if batch.delivery_count else 0
                until_ms = now_ms + pause_ms if pause_ms else 0
                lot = Lot(first, batch.last_offset)
                item = RecordRange(
                    first, batch.last_offset, RecordState.AVAILABLE, batch.delivery_count, "", until_ms, lot
                )
                self.open += item.size
            else:
                item = RecordRange(first, batch.last_offset, state, batch.delivery_count)
                self.done += item.size
            self.ranges.add(item)
        self._forward()
        return self

    # --- handing out

    def next_offset(self, now_ms: int) -> int:
        """Return the first offset that may be acquired now."""
        position = max(self._low, self.start_offset)
        items = self.ranges.items
        held_back = None
        for index in range(self.ranges.find(position), len(items)):
            item = items[index]
            if item.first > position:
                break
            if item.state is RecordState.AVAILABLE and not item.write:
                if item.until_ms <= now_ms:
                    position = max(position, item.first)
                    break
                held_back = position if held_back is None else held_back
            position = item.last + 1
        self._low = position if held_back is None else held_back
        return position

    @property
    def end_offset(self) -> int:
        """One after the last offset that has a state."""
        return self.ranges.items[-1].last + 1 if self.ranges.items else self.start_offset

    @property
    def room(self) -> int:
        """How many more records may be in flight."""
        return self.rules.locks_max - (self.open - self.delayed)

    @property
    def acquired(self) -> int:
        """How many records members hold."""
        return sum(item.size for item in self.ranges if item.state is RecordState.ACQUIRED)

    def can_acquire(self, now_ms: int) -> bool:
        """Whether records may be acquired if there are any: released ones, or new ones if there is room."""
        return self.room > 0 or self.next_offset(now_ms) < self.end_offset

    def acquire(self, spans: Iterable[FetchedBatch], offset: int, want: Want, now_ms: int) -> list[AcquiredRange]:
        """Acquire records of `spans`, the batches of the log from `offset` on, until the fetch has enough."""
        handout = Handout(want, self.rules, self.ranges, now_ms)
        for span in spans:
            if span.first > offset:
                self.bury(offset, span.first - 1)
                offset = span.first
            if span.data:
                if self.room <= 0 and self.ranges.find(offset) == len(self.ranges):
                    break
                self._take(offset, span.last, handout, want, now_ms)
            else:
                self.bury(offset, span.last)
            offset = max(offset, span.last + 1)
            if handout.full or handout.left <= 0:
                break
        return handout.found

    def _take(self, first: int, last: int, handout: Handout, want: Want, now_ms: int) -> None:
        """Acquire the available records of [first, last]."""
        holes = self.ranges.holes(first, last)
        if holes == [(first, last)]:  # the usual case: none of them has a state yet
            item = RecordRange(first, last, RecordState.AVAILABLE)
            size = handout.share(item, item.size)
            if size:
                item.last = first + size - 1
                self._lend(item, handout, want, now_ms)
                self.open += size
                self.ranges.append_or_add(item)
            return
        for hole_first, hole_last in holes:
            self.ranges.add(RecordRange(hole_first, hole_last, RecordState.AVAILABLE))
            self.open += hole_last - hole_first + 1
        for item in self.ranges.items[self.ranges.find(first) :]:
            if item.first > last or handout.full:
                break
            if item.state is RecordState.AVAILABLE and item.free(now_ms):
                low = max(item.first, first)
                size = handout.share(item, min(item.last, last) - low + 1)
                if not size:
                    break
                (item,) = self.ranges.between(low, low + size - 1)
                self._lend(item, handout, want, now_ms)
        for hole_first, hole_last in holes:
            self._forget_untouched(hole_first, hole_last)
        self.ranges.merge(first, last)
        self._low = min(self._low, first)

    def _forget_untouched(self, first: int, last: int) -> None:
        """Drop the state of records that were considered but not acquired."""
        for item in self.ranges.between(first, last):
            if item.state is RecordState.AVAILABLE and item.count == 0:
                self.open -= item.size
                self.ranges.remove(item)

    def _lend(self, item: RecordRange, handout: Handout, want: Want, now_ms: int) -> None:
        assert item.state is RecordState.AVAILABLE and not item.write, f"{item} is not available"
        if item.count == 0 and item.until_ms:
            self.delayed -= item.size
        item.state = RecordState.ACQUIRED
        item.count += 1
        item.member = want.member
        item.until_ms = now_ms + self.rules.lock_ms
        handout.add(item)

    # --- inspecting records first (key order, delayed delivery)

    def inspect(
        self, first: int, last: int, records: Sequence[tuple[int, bytes | None, int]] | None, now_ms: int
    ) -> None:
        """Note the records of the batch [first, last]; `records` are their offset, key and due time.

        None: the batch cannot be decoded. Its records are delivered as they are, without key order, for the consumer to
        judge.
        """
        first = max(first, self.scanned)
        if first > self.scanned:
            self.bury(self.scanned, first - 1)
        if records is None:
            for low, high in self.ranges.holes(first, last):
                self.ranges.append_or_add(RecordRange(low, high, RecordState.AVAILABLE))
                self.open += high - low + 1
            self.scanned = max(self.scanned, last + 1)
            return
        position = first
        for offset, key, due_ms in records:
            if offset < first:
                continue
            if offset > position:
                self.bury(position, offset - 1)
            position = offset + 1
            index = self.ranges.find(offset)
            items = self.ranges.items
            if index == len(items) or items[index].first > offset:
                until_ms = due_ms if due_ms > now_ms else 0
                self.ranges.append_or_add(RecordRange(offset, offset, RecordState.AVAILABLE, 0, "", until_ms))
                self.open += 1
                self.delayed += 1 if until_ms else 0
            elif items[index].terminal:
                continue
            if self.rules.key_ordered and key is not None:
                self.lanes.enter(offset, key)
        if position <= last:
            self.bury(position, last)
        self.scanned = max(self.scanned, last + 1)
        self.ranges.merge(first, last)

    def ready(self, want: Want, now_ms: int) -> Ready:
        """Return inspected records that may be acquired now, in order, at most as many as are wanted."""
        found: list[tuple[int, int]] = []
        handout = Handout(want._replace(strict=True), self.rules, self.ranges, now_ms)
        for item in self.ranges:
            if handout.full or handout.left <= 0 or item.first >= self.scanned:
                break
            if item.state is not RecordState.AVAILABLE or not item.free(now_ms):
                continue
            first, last = item.first, min(item.last, self.scanned - 1)
            if not self.rules.key_ordered:
                size = handout.share(item, last - first + 1)
                if size:
                    found.append((first, first + size - 1))
                continue
            for offset in range(first, last + 1):
                if self.lanes.first_in_line(offset):
                    if not handout.share(item, 1):
                        break
                    if found and found[-1][1] == offset - 1:
                        found[-1] = found[-1][0], offset
                    else:
                        found.append((offset, offset))
        return Ready(found, handout.full or handout.left <= 0)

    def take(self, runs: Iterable[tuple[int, int]], want: Want, now_ms: int) -> list[AcquiredRange]:
        """Acquire what `ready` returned, except records that were buried since."""
        handout = Handout(want, self.rules, self.ranges, now_ms)
        for first, last in runs:
            for item in self.ranges.between(first, last):
                if item.state is RecordState.AVAILABLE and not item.write:
                    self._lend(item, handout, want, now_ms)
            self.ranges.merge(first, last)
        return handout.found

    def look_again(self) -> None:
        """Forget what inspection found, because the rules changed."""
        self.lanes = Lanes()
        self.scanned = self._low = self.start_offset

    def next_due_ms(self, now_ms: int) -> int | None:
        """Return when the next record that is held back may be acquired."""
        return min(
            (
                item.until_ms
                for item in self.ranges
                if item.state is RecordState.AVAILABLE and not item.write and item.until_ms > now_ms
            ),
            default=None,
        )

    # --- outcomes of records

    def acknowledge(self, member: str, acks: Sequence[Ack], now_ms: int) -> Transition:
        """Apply a consumer's acknowledgements; all of them or, with an ApiError, none."""
        check(acks, member, self.ranges, self.start_offset)
        token = self._begin()
        dead: list[Dead] = []
        for ack in acks:
            first = max(ack.first, self.start_offset)
            for kind, low, high in runs(ack, first):
                for item in self.ranges.between(low, high):
                    self._become(item, kind, token, now_ms, dead)
        return self._transition(token, dead)

    def release(self, member: str, now_ms: int) -> Transition | None:
        """Release all records that a member has acquired; None if there are none."""
        return self._release([item for item in self.ranges if item.member == member], now_ms)

    def expire(self, now_ms: int) -> Transition | None:
        """Release records whose acquisition lock has ended; None if there are none."""
        return self._release([item for item in self.ranges if item.until_ms <= now_ms], now_ms)

    def _release(self, items: list[RecordRange], now_ms: int) -> Transition | None:
        items = [item for item in items if item.state is RecordState.ACQUIRED and not item.write]
        if not items:
            return None
        token = self._begin()
        dead: list[Dead] = []
        for item in items:
            self._become(item, AckType.RELEASE, token, now_ms, dead, pause=False)
        return self._transition(token, dead)

    def clock_set(self, by_ms: int) -> None:
        """The clock was set by `by_ms`. Locks and pauses keep their duration; the due time of a delayed record stays,
        because it is a wall-clock time.
        """
        for item in self.ranges:
            if item.until_ms and item.count:
                item.until_ms += by_ms
            if item.before is not None and item.before[3]:
                item.before = (*item.before[:3], item.before[3] + by_ms)

    def next_lock_ms(self) -> int | None:
        """Return when the next acquisition lock ends."""
        return min(
            (item.until_ms for item in self.ranges if item.state is RecordState.ACQUIRED and not item.write),
            default=None,
        )

    def _become(
        self, item: RecordRange, kind: AckType, token: int, now_ms: int, dead: list[Dead], *, pause: bool = True
    ) -> None:
        assert item.state is RecordState.ACQUIRED and not item.write, f"{item} is not acquired"
        if kind is AckType.RENEW:
            item.until_ms = now_ms + self.rules.lock_ms
            return
        item.before = item.state, item.count, item.member, item.until_ms
        item.write = token
        item.member = ""
        item.until_ms = 0
        if kind is AckType.RELEASE and item.count < self.rules.delivery_limit:
            item.state = RecordState.AVAILABLE
            if pause and self.rules.backoff_ms > 0:
                item.until_ms = now_ms + self.rules.backoff(item.count)
        elif kind is AckType.ACCEPT:
            item.state = RecordState.ACKNOWLEDGED
            self.done += item.size
        else:
            item.state = RecordState.ARCHIVED
            self.done += item.size
            if kind is not AckType.GAP:
                reason = GiveUpReason.REJECTED if kind is AckType.REJECT else GiveUpReason.DELIVERY_LIMIT
                dead.append(Dead(item.first, item.last, item.count, reason))
        self._pending[token].append(item)

    def _begin(self) -> int:
        self._tokens += 1
        self._pending[self._tokens] = []
        return self._tokens

    def _transition(self, token: int, dead: list[Dead]) -> Transition:
        items = self._pending[token]
        if not items:
            del self._pending[token]
        batches = sorted(StateBatch(item.first, item.last, int(item.state), item.count) for item in items)
        if batches and self._buried:
            batches = sorted([*batches, *self._take_buried()])
        return Transition(token, tuple(batches), tuple(dead))

    def settle(self, token: int) -> None:
        """The transition of this token is stored."""
        for item in self._pending.pop(token, ()):
            if item.write != token:
                continue  # the log start has passed it meanwhile
            item.write, item.before = 0, None
            if item.terminal:
                self.open -= item.size
                self.lanes.leave(item.first, item.last)
            else:
                self._low = min(self._low, item.first)
            self.ranges.merge(item.first, item.last)
        self._forward()

    def restore(self, token: int, *, until_ms: int | None = None) -> None:
        """The transition of this token could not be stored: go back to the states before it; locks end at `until_ms` if
        given.
        """
        for item in self._pending.pop(token, ()):
            if item.write != token or item.before is None:
                continue
            if item.terminal:
                self.done -= item.size
            item.state, item.count, item.member, item.until_ms = item.before
            item.until_ms = item.until_ms if until_ms is None else until_ms
            item.write, item.before = 0, None

    # --- offsets without records, and the start

    def bury(self, first: int, last: int) -> None:
        """Archive offsets at which there are no records (any more)."""
        first = max(first, self.start_offset)
        if first > last:
            return
        for hole_first, hole_last in self.ranges.holes(first, last):
            self.ranges.append_or_add(RecordRange(hole_first, hole_last, RecordState.ARCHIVED))
            self.done += hole_last - hole_first + 1
            self._buried.append(StateBatch(hole_first, hole_last, int(RecordState.ARCHIVED), 0))
        index = self.ranges.find(first)
        for item in self.ranges.items[index:]:
            if item.first > last:
                break
            if item.state is RecordState.AVAILABLE and not item.write:
                (item,) = self.ranges.between(max(item.first, first), min(item.last, last))
                if item.count == 0 and item.until_ms:
                    self.delayed -= item.size
                item.state, item.until_ms = RecordState.ARCHIVED, 0
                self.open -= item.size
                self.done += item.size
                self.lanes.leave(item.first, item.last)
                self._buried.append(StateBatch(item.first, item.last, int(RecordState.ARCHIVED), item.count))
        self.ranges.merge(first, last)
        self._forward()

    def buried(self) -> Transition | None:
        """Return the buried offsets that are not stored yet; None if there are none."""
        if not self._buried:
            return None
        token = self._begin()
        del self._pending[token]
        return Transition(token, tuple(self._take_buried()))

    def _take_buried(self) -> list[StateBatch]:
        taken = [batch for batch in self._buried if batch.last_offset >= self.start_offset]
        self._buried = []
        return taken

    def advance(self, log_start_offset: int) -> bool:
        """The log starts at this offset now, so records below are gone even if acquired; return whether the start
        moved.
        """
        if log_start_offset <= self.start_offset:
            return False
        self._drop_below(log_start_offset)
        self._forward()
        return True

    def _forward(self) -> None:
        """Move the start over all records that are done."""
        start = self.start_offset
        for item in self.ranges:
            if item.first > start or item.write or not item.terminal:
                break
            start = item.last + 1
        if start > self.start_offset:
            self._drop_below(start)

    def _drop_below(self, offset: int) -> None:
        assert offset > self.start_offset, f"the start would go from {self.start_offset} back to {offset}"
        for item in self.ranges.drop_below(offset):
            if item.terminal:
                self.done -= item.size
            if item.write or not item.terminal:
                self.open -= item.size
                self.lanes.leave(item.first, item.last)
            if item.state is RecordState.AVAILABLE and item.count == 0 and item.until_ms:
                self.delayed -= item.size
            item.write = 0
        assert 0 <= self.delayed <= self.open, f"{self.delayed} of {self.open} open records are delayed"
        assert self.done >= 0, f"{self.done} records are done"
        self.start_offset = offset
        self._low = max(self._low, offset)
        self.scanned = max(self.scanned, offset)
