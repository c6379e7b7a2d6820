"""Handout: the records that one fetch acquires from one share partition.

Records that were first acquired together are a lot. A lot that was delivered few times is delivered whole. From half of
the delivery limit on it is delivered alone, and in portions that are halved with each delivery, the last time record by
record: a record that crashes every consumer must not take the rest of its lot to the delivery limit. These are the
rules of Kafka's share partitions.
"""

from __future__ import annotations

from ottla.shares.partition.ranges import Lot, RecordRange, RecordRanges
from ottla.shares.partition.terms import DELIVERED_OFTEN_MIN, AcquiredRange, RecordState, Rules, Want


class Handout:
    def __init__(self, want: Want, rules: Rules, ranges: RecordRanges, now_ms: int) -> None:
        self.found: list[AcquiredRange] = []
        self.left = want.max_records
        self.full = False
        self._want = want
        self._often = rules.often
        self._alone = rules.delivery_limit - 1 if rules.delivery_limit > DELIVERED_OFTEN_MIN else None
        self._ranges = ranges
        self._now_ms = now_ms
        self._given = 0
        self._lot: Lot | None = None  # the lot being delivered; None: records that were never delivered
        self._slowed = False  # whether that lot was delivered often
        self._of_lot = 0
        self._of_lot_max: int | None = None
        self._joins: Lot | None = None  # the lot of the last acquired records

    def share(self, item: RecordRange, size: int) -> int:
        """Return how many of the next `size` records, which lie in `item` and are available, this fetch gets."""
        if item.lot is not self._lot:
            self._enter(item.lot)
        if self.full or (self._want.strict and self.left <= 0):
            return 0
        if self._want.strict:
            size = min(size, self.left)
        if self._slowed:
            size = self._portion(item.count, size)
        self.left -= size
        self._given += size
        self._of_lot += size
        return size

    def _enter(self, lot: Lot | None) -> None:
        if self._slowed:
            self.full = True
            return
        self._lot, self._of_lot, self._of_lot_max = lot, 0, None
        self._slowed = lot is not None and self._delivered_often(lot)
        self.full = self._slowed and self._given > 0

    def _delivered_often(self, lot: Lot) -> bool:
        items = self._ranges.items
        for index in range(self._ranges.find(lot.first), len(items)):
            item = items[index]
            if item.first > lot.last:
                break
            if item.count >= self._often and item.state is RecordState.AVAILABLE and item.free(self._now_ms):
                return True
        return False

    def _portion(self, count: int, size: int) -> int:
        assert self._lot is not None, "only a lot can have been delivered often"
        if count == self._alone:
            self.full = True
            return 0 if self._of_lot else 1
        if count >= self._often and self._of_lot_max is None:
            self._of_lot_max = max(1, self._lot.size >> (count - self._often + 1))
        if self._of_lot_max is not None and self._of_lot < self._of_lot_max <= self._of_lot + size:
            self.full = True
            return self._of_lot_max - self._of_lot
        return size

    def add(self, item: RecordRange) -> None:
        """Add acquired records: to the range before if they continue the same lot, else as a new range."""
        last = self.found[-1] if self.found else None
        follows = last is not None and last.last + 1 == item.first and last.count == item.count
        if item.lot is not None:
            follows = follows and item.lot is self._joins
        elif last is not None and follows and self._joins is not None and self._joins.size < self._want.batch_size:
            self._joins.last = item.last
            item.lot = self._joins
        else:
            follows = False
            item.lot = Lot(item.first, item.last)
        self._joins = item.lot
        if last is not None and follows:
            self.found[-1] = AcquiredRange(last.first, item.last, item.count)
        else:
            self.found.append(AcquiredRange(item.first, item.last, item.count))
