"""A share partition against a model that has one entry per record, through everything that may happen to it.

The log has batches, markers and holes. Changes are stored at once, later, or never (a failed write), and at any time
the partition may be thrown away and loaded from what was stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ottla.model.errors import ApiError
from ottla.shares.partition.partition import SharePartition
from ottla.shares.partition.terms import Ack, AckType, AcquiredRange, FetchedBatch, RecordState, Rules, Transition, Want
from ottla.shares.state.batches import StateBatch, combine

MEMBERS = ("ann", "bob")
LOCK_MS = 100
KEYS = (None, b"a", b"b", b"a key that is longer than its digest")


@dataclass(frozen=True)
class Fate:
    """What the model knows about one record."""

    state: RecordState = RecordState.AVAILABLE
    count: int = 0
    member: str = ""
    until_ms: int = 0


FINAL = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class Model(RuleBasedStateMachine):
    rules_of_group = Rules(lock_ms=LOCK_MS, delivery_limit=3, locks_max=12)

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_000
        self.spans: list[FetchedBatch] = []
        self.end = 0
        self.log_start = 0
        self.records: dict[int, Fate] = {}
        self.before: dict[int, dict[int, Fate]] = {}  # of records whose change is being stored, by token
        self.waiting: list[Transition] = []
        self.stored: tuple[StateBatch, ...] = ()
        self.stored_start = 0
        self.partition = SharePartition(0, self.rules_of_group)

    # --- the log

    @rule(size=st.integers(1, 6), gap=st.integers(0, 2), data=st.sampled_from((True, True, True, False)))
    def append(self, size: int, gap: int, data: bool) -> None:
        first = self.end + gap
        self.spans.append(FetchedBatch(first, first + size - 1, data))
        self.end = first + size
        if data:
            self.records |= {offset: Fate() for offset in range(first, first + size)}

    @precondition(lambda self: self.log_start + 10 < self.end)
    @rule(by=st.integers(1, 4))
    def delete_records(self, by: int) -> None:
        to = self.log_start + by
        self.log_start = to
        self.partition.advance(to)
        for offset in [offset for offset in self.records if offset < to]:
            del self.records[offset]
        for fates in self.before.values():
            for offset in [offset for offset in fates if offset < to]:
                del fates[offset]

    # --- handing out

    def hand_out(self, want: Want) -> list[AcquiredRange]:
        offset = self.partition.next_offset(self.now_ms)
        assert all(not self.available(each) for each in self.records if self.partition.start_offset <= each < offset)
        spans = [span for span in self.spans if span.last >= offset]
        return self.partition.acquire(spans, offset, want, self.now_ms)

    @rule(member=st.sampled_from(MEMBERS), max_records=st.integers(1, 8), strict=st.booleans())
    def acquire(self, member: str, max_records: int, strict: bool) -> None:
        could = [offset for offset in self.records if self.available(offset)]
        room = self.partition.room
        acquired = self.hand_out(Want(member, max_records, 4, strict))
        offsets = [offset for each in acquired for offset in range(each.first, each.last + 1)]
        assert offsets == sorted(set(offsets))
        if strict:
            assert len(offsets) <= max_records
        if room > 0 and self.within_reach(could):
            assert offsets, "there was something to hand out"
        for each in acquired:
            for offset in range(each.first, each.last + 1):
                assert self.available(offset), f"{offset} was not available"
                fate = self.records[offset]
                assert fate.count + 1 == each.count
                self.records[offset] = Fate(RecordState.ACQUIRED, each.count, member, self.now_ms + LOCK_MS)

    def within_reach(self, offsets: list[int]) -> bool:
        return bool(offsets)

    def available(self, offset: int) -> bool:
        fate = self.records.get(offset)
        return (
            fate is not None
            and fate.state is RecordState.AVAILABLE
            and fate.until_ms <= self.now_ms
            and not any(offset in fates for fates in self.before.values())
        )

    # --- what becomes of records

    def mine(self, member: str) -> list[int]:
        return [
            offset
            for offset, fate in self.records.items()
            if fate.state is RecordState.ACQUIRED and fate.member == member
        ]

    @precondition(lambda self: any(self.mine(member) for member in MEMBERS))
    @rule(data=st.data(), kinds=st.sampled_from(((AckType.RELEASE,), tuple(AckType))))
    def acknowledge(self, data: Any, kinds: tuple[AckType, ...]) -> None:
        member = data.draw(st.sampled_from([member for member in MEMBERS if self.mine(member)]))
        mine = self.mine(member)
        first = data.draw(st.sampled_from(mine))
        last = first
        while last + 1 in mine and data.draw(st.integers(0, 3)):
            last += 1
        one = data.draw(st.booleans())
        types = [data.draw(st.sampled_from(kinds)) for _ in range(1 if one else last - first + 1)]
        change = self.partition.acknowledge(member, [Ack(first, last, types)], self.now_ms)
        before = {}
        for offset in range(first, last + 1):
            kind = types[0] if one else types[offset - first]
            fate = self.records[offset]
            if kind is AckType.RENEW:
                self.records[offset] = replace(fate, until_ms=self.now_ms + LOCK_MS)
            else:
                before[offset] = fate
                self.records[offset] = self.after(fate, kind, pause=True)
        self.begun(change, before)

    def after(self, fate: Fate, kind: AckType, *, pause: bool = False) -> Fate:
        rules = self.rules_of_group
        if kind is AckType.ACCEPT:
            return Fate(RecordState.ACKNOWLEDGED, fate.count)
        if kind is AckType.RELEASE and fate.count < rules.delivery_limit:
            backoff_ms = rules.backoff(fate.count) if pause else 0
            return Fate(RecordState.AVAILABLE, fate.count, "", self.now_ms + backoff_ms if backoff_ms else 0)
        return Fate(RecordState.ARCHIVED, fate.count)

    def begun(self, change: Transition, before: dict[int, Fate]) -> None:
        """The change says exactly what the model says."""
        told = {
            offset: (batch.delivery_state, batch.delivery_count)
            for batch in change.batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
            if offset in self.records
        }
        assert told == {offset: (self.records[offset].state, self.records[offset].count) for offset in before}
        dead = {offset for each in change.dead for offset in range(each.first, each.last + 1)}
        assert dead <= {offset for offset in before if self.records[offset].state is RecordState.ARCHIVED}
        if change.batches:
            self.before[change.token] = before
            self.waiting.append(change)

    @rule(member=st.sampled_from(MEMBERS), offset=st.integers(0, 40))
    def acknowledge_what_one_has_not(self, member: str, offset: int) -> None:
        assume(offset >= self.partition.start_offset and offset not in self.mine(member))
        shown = repr(self.partition.ranges.items)
        with pytest.raises(ApiError):
            self.partition.acknowledge(member, [Ack(offset, offset, [AckType.ACCEPT])], self.now_ms)
        assert repr(self.partition.ranges.items) == shown

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        mine = self.mine(member)
        self.given_back(self.partition.release(member, self.now_ms), mine)

    @rule(ms=st.integers(1, 150))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms
        late = [
            offset
            for offset, fate in self.records.items()
            if fate.state is RecordState.ACQUIRED and fate.until_ms <= self.now_ms
        ]
        self.given_back(self.partition.expire(self.now_ms), late)

    def given_back(self, change: Transition | None, offsets: list[int]) -> None:
        assert (change is None) == (not offsets)
        if change is not None:
            before = {offset: self.records[offset] for offset in offsets}
            self.records |= {offset: self.after(self.records[offset], AckType.RELEASE) for offset in offsets}
            self.begun(change, before)

    # --- storing, failing, restarting

    @precondition(lambda self: self.waiting)
    @rule(fails=st.sampled_from((False, False, True)))
    def store(self, fails: bool) -> None:
        change = self.waiting.pop(0)
        before = self.before.pop(change.token)
        if fails:
            self.partition.restore(change.token)
            self.records |= before
        else:
            self.write(change)
            self.partition.settle(change.token)

    def write(self, change: Transition) -> None:
        self.stored_start = self.partition.start_offset
        self.stored = combine((*self.stored, *change.batches), self.stored_start)

    @rule()
    def store_buried(self) -> None:
        change = self.partition.buried()
        if change is not None:
            self.write(change)
            self.partition.settle(change.token)

    @rule()
    def restart(self) -> None:
        for change in self.waiting:
            self.records |= self.before.pop(change.token)
        self.waiting = []
        known = {offset: batch for batch in self.stored for offset in range(batch.first_offset, batch.last_offset + 1)}
        for offset, fate in self.records.items():
            if fate.state is RecordState.ACKNOWLEDGED:
                assert offset < self.stored_start or known[offset].delivery_state == fate.state, "it was stored"
            elif fate.state is not RecordState.ARCHIVED:
                count = known[offset].delivery_count if offset in known else 0
                pause_ms = self.rules_of_group.backoff(count) if count else 0
                self.records[offset] = Fate(RecordState.AVAILABLE, count, "", self.now_ms + pause_ms if pause_ms else 0)
        start = max(self.stored_start, self.log_start)
        self.partition = SharePartition.loaded(start, self.stored, self.rules_of_group, self.now_ms)

    # --- always

    @invariant()
    def agrees(self) -> None:
        partition = self.partition
        seen = {offset: item for item in partition.ranges for offset in range(item.first, item.last + 1)}
        for offset, fate in self.records.items():
            if offset < partition.start_offset:
                assert fate.state in FINAL, f"{offset} is not dealt with"
                continue
            item = seen.get(offset)
            if item is None:
                assert (fate.state, fate.count) == (RecordState.AVAILABLE, 0)
            else:
                assert item.state is fate.state, f"{offset}: {item}, {fate}"
                if fate.state not in FINAL:
                    assert (item.count, item.member, item.until_ms) == (fate.count, fate.member, fate.until_ms)
        items = partition.ranges.items
        assert all(left.last < right.first for left, right in pairwise(items))
        assert partition.done == sum(item.size for item in items if item.terminal)
        assert partition.open == sum(item.size for item in items if item.write or not item.terminal)
        assert partition.delayed == sum(
            item.size for item in items if item.state is RecordState.AVAILABLE and not item.count and item.until_ms
        )
        if items and items[0].first == partition.start_offset:
            assert items[0].write or not items[0].terminal


class PausingModel(Model):
    """With a growing pause after each release."""

    rules_of_group = Rules(lock_ms=LOCK_MS, delivery_limit=4, locks_max=12, backoff_ms=20, backoff_max_ms=60)


class OrderedModel(Model):
    """One key at a time; delays too."""

    rules_of_group = Rules(lock_ms=LOCK_MS, delivery_limit=3, locks_max=12, key_ordered=True, delayed=True)

    def key(self, offset: int) -> bytes | None:
        return KEYS[offset * 7 % 11 % len(KEYS)]

    def due_ms(self, offset: int) -> int:
        return 1_000 + offset * 10 if offset % 3 == 0 else 0

    def hand_out(self, want: Want) -> list[AcquiredRange]:
        for span in self.spans:
            if span.first >= self.partition.scanned or span.first < self.partition.scanned <= span.last:
                if self.partition.room <= 0:
                    break
                offsets = range(span.first, span.last + 1) if span.data else ()
                notices = [(offset, self.key(offset), self.due_ms(offset)) for offset in offsets]
                self.partition.inspect(span.first, span.last, notices, self.now_ms)
                for offset in offsets:
                    if offset in self.records and self.records[offset] == Fate() and self.due_ms(offset) > self.now_ms:
                        self.records[offset] = Fate(until_ms=self.due_ms(offset))
        return self.partition.take(self.partition.ready(want, self.now_ms).runs, want, self.now_ms)

    def within_reach(self, offsets: list[int]) -> bool:
        """Behind as many records that wait for their key as may be out, nobody looks."""
        return any(offset < self.partition.scanned for offset in offsets)

    def available(self, offset: int) -> bool:
        if not super().available(offset) or (self.records[offset].count == 0 and self.due_ms(offset) > self.now_ms):
            return False
        key = self.key(offset)
        return key is None or all(
            fate.state in FINAL and not any(earlier in fates for fates in self.before.values())
            for earlier, fate in self.records.items()
            if earlier < offset and self.key(earlier) == key
        )


TestModel = Model.TestCase
TestPausing = PausingModel.TestCase
TestOrdered = OrderedModel.TestCase
TestModel.settings = TestPausing.settings = TestOrdered.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None
)
