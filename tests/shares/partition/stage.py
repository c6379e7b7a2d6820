"""A stage for one share partition: a log of batches, members that fetch and acknowledge, and a store that may fail."""

from __future__ import annotations

from ottla.model.errors import ApiError
from ottla.shares.partition.partition import SharePartition
from ottla.shares.partition.terms import Ack, AckType, AcquiredRange, FetchedBatch, Rules, Transition, Want
from ottla.shares.state.batches import StateBatch, combine

STATES = {0: "available", 1: "acquired", 2: "acknowledged", 4: "archived"}


class ShareStage:
    """Changes are stored at once, or with `hold` when told; `restart` loads what was stored."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.lines: list[str] = []
        self.rules = Rules(lock_ms=1_000, delivery_limit=3, locks_max=10)
        self.spans: list[FetchedBatch] = []
        self.records: dict[int, tuple[bytes | None, int]] = {}
        self.end = 0
        self.stored: tuple[StateBatch, ...] = ()
        self.start = 0
        self.held: list[Transition] | None = None
        self.partition = SharePartition(0, self.rules)
        self.verbs = {
            "set": self.set,
            "batch": self.batch,
            "marker": self.marker,
            "gap": self.gap,
            "fetch": self.fetch,
            "ack": self.ack,
            "leave": self.leave,
            "log": self.log_starts,
            "store": self.store,
            "fail": self.fail,
            "state": self.state,
        }

    def told(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    # --- settings and the log

    def set(self, **rules: str) -> None:
        self.rules = self.partition.rules = self.rules._replace(**{name: int(text) for name, text in rules.items()})

    def batch(self, *records: str) -> None:
        """`batch 5` records without keys, or `batch a b a:500` with keys, the last one due at 500 ms."""
        if len(records) == 1 and records[0].isdecimal():
            records = ("-",) * int(records[0])
        first = self.end
        for text in records:
            key, _, due_ms = text.partition(":")
            self.records[self.end] = (None if key == "-" else key.encode(), int(due_ms or 0))
            self.end += 1
        self.spans.append(FetchedBatch(first, self.end - 1, True))

    def marker(self) -> None:
        self.spans.append(FetchedBatch(self.end, self.end, False))
        self.end += 1

    def gap(self, size: str) -> None:
        self.end += int(size)

    def log_starts(self, _: str, __: str, offset: str) -> None:
        """`log starts at 5`."""
        self.partition.advance(int(offset))

    # --- members

    def fetch(self, member: str, max_records: str = "100", *, limit: str = "") -> None:
        want = Want(member, int(limit or max_records), 100, bool(limit))
        partition = self.partition
        if self.rules.inspects:
            for span in self.spans:
                if span.last >= partition.scanned and partition.room > 0:
                    offsets = range(span.first, span.last + 1) if span.data else ()
                    partition.inspect(span.first, span.last, [(at, *self.records[at]) for at in offsets], self.now_ms)
            acquired = partition.take(partition.ready(want, self.now_ms).runs, want, self.now_ms)
        else:
            offset = partition.next_offset(self.now_ms)
            spans = [span for span in self.spans if span.last >= offset]
            acquired = partition.acquire(spans, offset, want, self.now_ms)
        self.lines.append(f"{member} gets {_shown(acquired)}")

    def ack(self, member: str, *acks: str) -> None:
        """`ack anna 0-4:accept 5-6:release,reject`."""
        try:
            self._change(member, self.partition.acknowledge(member, [_ack(text) for text in acks], self.now_ms))
        except ApiError as error:
            self.lines.append(f"{member}: {error.code.name}")

    def leave(self, member: str) -> None:
        self._change(member, self.partition.release(member, self.now_ms))

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self._change("locks", self.partition.expire(self.now_ms))

    # --- storing

    def _change(self, who: str, change: Transition | None) -> None:
        if change is None or not change.batches:
            self.lines.append(f"{who}: nothing to store")
            return
        for each in change.dead:
            self.lines.append(f"dead: {each.first}-{each.last} after {each.count}, {each.reason.name.lower()}")
        if self.held is not None:
            self.held.append(change)
            return
        self._store(change)

    def _store(self, change: Transition) -> None:
        self.start = self.partition.start_offset
        self.stored = combine((*self.stored, *change.batches), self.start)
        shown = " ".join(f"{one[0]}-{one[1]}:{STATES[one[2]]}:{one[3]}" for one in change.batches)
        self.lines.append(f"stored: start {self.start}, done {self.partition.done}, {shown}")
        self.partition.settle(change.token)

    def hold(self) -> None:
        self.held = []

    def store(self) -> None:
        held, self.held = self.held or [], None
        for change in held:
            self._store(change)

    def fail(self) -> None:
        held, self.held = self.held or [], None
        for change in held:
            self.partition.restore(change.token)

    def restart(self) -> None:
        self.partition = SharePartition.loaded(self.start, self.stored, self.rules, self.now_ms)

    def state(self) -> None:
        partition = self.partition
        ranges = ", ".join(repr(item) for item in partition.ranges) or "nothing"
        self.lines.append(f"start {partition.start_offset}, next {partition.next_offset(self.now_ms)}: {ranges}")


def _ack(text: str) -> Ack:
    offsets, _, kinds = text.partition(":")
    first, _, last = offsets.partition("-")
    return Ack(int(first), int(last or first), [AckType[kind.upper()] for kind in kinds.split(",")])


def _shown(acquired: list[AcquiredRange]) -> str:
    return " ".join(f"{each.first}-{each.last}:{each.count}" for each in acquired) or "nothing"
