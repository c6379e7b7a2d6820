"""Any records in any order, against a model that looks at every segment for every question."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.tier.metadata.making import FINISHED, PARTITION, names, segment, update
from tests.tier.metadata.test_snapshot import content

from ottla.model.ids import LeaderEpoch
from ottla.tier.metadata.records import decode, encode
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.segment import RemoteLogEvent, RemoteSegmentMetadata, SegmentUpdate
from ottla.tier.metadata.snapshot import RemoteLogSnapshot, decode_log, encode_log
from ottla.tier.metadata.states import NEXT_OF_SEGMENT, RemoteMetadataError, SegmentState

NAMES = "abcdef"
EPOCHS = range(3)
OFFSETS = range(24)


@dataclass
class Model:
    """Segments by their names, the ranges of each epoch that are read, and the highest offset of each."""

    known: dict[str, RemoteSegmentMetadata] = field(default_factory=dict)
    read: dict[int, list[tuple[int, int, str]]] = field(default_factory=lambda: {epoch: [] for epoch in EPOCHS})
    highest: dict[int, int] = field(default_factory=dict)

    def begin(self, told: RemoteSegmentMetadata) -> bool:
        (name,) = names([told])
        before = self.known.get(name)
        if told.state != SegmentState.COPY_SEGMENT_STARTED or (before is not None and before.state != told.state):
            return False
        self.known[name] = told
        return True

    def update(self, name: str, told: SegmentUpdate) -> bool:
        before = self.known.get(name)
        if before is None or told.state == SegmentState.COPY_SEGMENT_STARTED:
            return False
        if told.state not in (before.state, *NEXT_OF_SEGMENT[before.state]):
            return False
        for ranges in self.read.values():
            ranges[:] = [it for it in ranges if it[2] != name]
        after = before.updated(told)
        self.known[name] = after
        if told.state == SegmentState.DELETE_SEGMENT_FINISHED:
            del self.known[name]
        elif told.state == FINISHED:
            for epoch, start, end in after.epoch_ranges():
                self.finish(epoch, start, end, name)
        return True

    def finish(self, epoch: int, start: int, end: int, name: str) -> None:
        self.highest[epoch] = max(self.highest.get(epoch, end), end)
        ranges = self.read[epoch]
        if any(low <= start and end < high for low, high, _ in ranges):
            return
        ranges[:] = [it for it in ranges if not (start <= it[0] and it[1] <= end)]
        ranges.append((start, end, name))

    def at(self, epoch: int, offset: int) -> str | None:
        return max(((low, name) for low, high, name in self.read[epoch] if low <= offset <= high), default=(0, None))[1]


class Records(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.remote = RemoteLog(PARTITION)
        self.model = Model()

    def tell(self, event: RemoteLogEvent) -> bool:
        try:
            self.remote.apply(decode(encode(event)))
        except RemoteMetadataError:
            return False
        return True

    @rule(
        name=st.sampled_from(NAMES),
        start=st.integers(0, 15),
        length=st.integers(0, 8),
        first=st.sampled_from(EPOCHS),
        more=st.lists(st.integers(0, 5), max_size=2),
        state=st.sampled_from([SegmentState.COPY_SEGMENT_STARTED] * 9 + [FINISHED]),
        empty=st.booleans(),
    )
    def begin(
        self, name: str, start: int, length: int, first: int, more: list[int], state: SegmentState, empty: bool
    ) -> None:
        starts = [(first, start)]
        for step in more:
            if first + len(starts) in EPOCHS and starts[-1][1] + step <= start + length:
                starts.append((first + len(starts), starts[-1][1] + step))
        told = segment(name, start, start + length, *starts, state=state, size=length, txn_index_empty=empty)
        assert self.tell(told) is self.model.begin(told)

    @rule(name=st.sampled_from(NAMES), state=st.sampled_from([FINISHED, *SegmentState]))
    def update(self, name: str, state: SegmentState) -> None:
        told = update(name, state)
        assert self.tell(told) is self.model.update(name, told)

    @rule(name=st.sampled_from(NAMES))
    def go_on(self, name: str) -> None:
        """The next state, so that segments come to their end."""
        found = self.model.known.get(name)
        if found is not None:
            for state in NEXT_OF_SEGMENT[found.state][:1]:
                self.update(name, state)

    @rule()
    def restart(self) -> None:
        data = encode_log(RemoteLogSnapshot(self.remote, 0))
        again = decode_log(data).remote
        assert content(again) == content(self.remote)
        self.remote = again

    @invariant()
    def same_segments(self) -> None:
        assert dict(zip(names(self.remote.segments()), self.remote.segments(), strict=True)) == self.model.known
        finished = [it for it in self.model.known.values() if it.state == FINISHED]
        assert self.remote.finished_bytes == sum(it.size_bytes for it in finished)
        served = {name for ranges in self.model.read.values() for low, high, name in ranges if low <= high}
        assert set(names(self.remote.unread())) == self.model.known.keys() - served
        assert set(names(self.remote.replaced())) == {*names(finished)} - served

    @invariant()
    def same_answers(self) -> None:
        for epoch in map(LeaderEpoch, EPOCHS):
            having = {name for name, it in self.model.known.items() if epoch in dict(it.leader_epochs)}
            assert sorted(names(self.remote.segments_of(epoch))) == sorted(having)
            assert self.remote.highest_offset(epoch) == self.model.highest.get(epoch)
            for offset in OFFSETS:
                found = self.remote.segment_at(epoch, offset)
                assert (found and names([found])[0]) == self.model.at(epoch, offset)
                self.no_offset_is_lost(epoch, offset, found)

    def no_offset_is_lost(self, epoch: LeaderEpoch, offset: int, found: RemoteSegmentMetadata | None) -> None:
        """An offset that a finished copy has is read, unless that copy was replaced by one that is deleted since."""
        aside = self.remote.epochs[epoch].unreferenced if epoch in self.remote.epochs else {}
        having = [
            it.uuid
            for it in self.model.known.values()
            if it.state == FINISHED
            and (epoch, offset)
            in {(known, at) for known, low, high in it.epoch_ranges() for at in range(low, high + 1)}
        ]
        assert found.uuid in having if found else all(each in aside for each in having)


Records.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestRecords = Records.TestCase
