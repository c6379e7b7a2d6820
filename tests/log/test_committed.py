"""READ_COMMITTED readers never see an aborted record, however many transactions were aborted and wherever."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.logs import NOW_MS, append, batch, open_log

from ottla.log import committed
from ottla.log.config import LogConfig
from ottla.log.files import txn_index as aborted
from ottla.log.log import Log, Origin
from ottla.records.batch import headers
from ottla.records.committed import AbortedFilter
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.sim.world.disk import SimDisk

SMALL = LogConfig(segment_bytes=2_000, index_interval_bytes=300)
BLOCK = 4


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aborted, "BLOCK_ENTRIES", BLOCK)
    monkeypatch.setattr(aborted, "_FIRST_OFFSETS", aborted.Struct(">" + "10xq16x" * BLOCK))
    monkeypatch.setattr(committed, "BLOCK_ENTRIES", BLOCK)
    monkeypatch.setattr(committed, "_FIRST_STEP_ENTRIES", 1)


class Writer:
    """A log, and what of it was committed or is of no transaction."""

    def __init__(self, config: LogConfig = SMALL, disk: SimDisk | None = None) -> None:
        self.disk = disk or SimDisk()
        self.log = open_log(self.disk, config)
        self.plain: list[int] = []
        self.open: dict[int, list[int]] = {}
        self.sequences: dict[int, int] = {}

    def write(self, producer: int) -> None:
        if producer < 0:
            self.plain.append(append(self.log).first_offset)
            return
        sequence = self.sequences.get(producer, 0)
        self.sequences[producer] = sequence + 1
        done = append(self.log, batch(producer=producer, sequence=sequence, transactional=True))
        self.open.setdefault(producer, []).append(done.first_offset)

    def end(self, producer: int, *, commit: bool) -> None:
        if producer not in self.open:
            return
        offsets = self.open.pop(producer)
        self.plain += offsets if commit else []
        made = end_txn_batch(EndTxnMarker(commit, 1), producer_id=producer, producer_epoch=0, timestamp=NOW_MS)
        self.log.append(made, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)

    def abort(self, producer: int, times: int) -> None:
        for _ in range(times):
            self.write(producer)
            self.end(producer, commit=False)


def seen(log: Log, stable: int, *, start: int = 0, max_bytes: int = 1 << 20, aborted_max: int = 3) -> list[int]:
    """The offsets of the records that a consumer gets that fetches again and again."""
    found: list[int] = []
    at, tries = start, 0
    while at < stable:
        fetched, txns = log.read_committed(at, max_bytes, max_offset=stable, at_least_one=True, aborted_max=aborted_max)
        if fetched.slice is None:
            tries += 1
            assert tries < 1_000, "it never gets on"
            continue
        data = memoryview(fetched.slice.read())
        kept = AbortedFilter((txn.producer_id, txn.first_offset) for txn in txns)
        before = at
        for position, header in headers(data):
            out = kept.is_aborted(header, data[position:])
            if header.base_offset >= at and not header.is_control and not out:
                found.append(header.base_offset)
            at = max(at, header.next_offset)
        assert at > before, "a fetch brings the reader forward"
    return found


def test_a_transaction_that_was_aborted_in_a_later_segment_is_found_behind_any_number_of_others() -> None:
    writer = Writer()
    writer.write(1)
    writer.abort(2, 40)
    writer.write(3)
    writer.log.roll(NOW_MS)
    writer.abort(2, 40)
    writer.end(1, commit=False)
    writer.end(3, commit=True)
    log = writer.log
    assert seen(log, log.next_offset) == writer.plain
    fetched, txns = log.read_committed(0, 1, max_offset=log.next_offset, at_least_one=True, aborted_max=3)
    assert fetched.slice is not None and 0 in [txn.first_offset for txn in txns] and len(txns) <= 3


def test_a_small_fetch_is_told_of_its_own_transactions_only() -> None:
    writer = Writer(LogConfig(index_interval_bytes=300))
    writer.abort(2, 400)
    log = writer.log
    one_bytes = log.active.find(2)[0]  # type: ignore[index]  # a record and its marker
    for start in (0, 400, 700):
        fetched, txns = log.read_committed(
            start, 2 * one_bytes, max_offset=log.next_offset, at_least_one=True, aborted_max=1_000
        )
        assert fetched.size_bytes == 2 * one_bytes
        assert [txn.first_offset for txn in txns][:2] == [start, start + 2]
        assert len(txns) <= 2 + 300 // one_bytes + 1, "the index tells where the range ends, about"


def test_at_the_bound_the_range_is_shortened_and_not_the_list() -> None:
    writer = Writer(LogConfig(index_interval_bytes=300))
    writer.abort(2, 100)
    log = writer.log
    fetched, txns = log.read_committed(0, 1 << 20, max_offset=log.next_offset, at_least_one=True, aborted_max=10)
    assert fetched.slice is not None
    ends = [header.next_offset for _, header in headers(fetched.slice.read())]
    assert len(txns) == 10 and ends[-1] == fetched.end_offset == 20
    nothing, txns = log.read_committed(0, 1 << 20, max_offset=log.next_offset, at_least_one=False, aborted_max=0)
    assert nothing.slice is None and txns == []


def test_transactions_that_all_began_before_the_first_end() -> None:
    """Not their markers make the list long but their beginnings, and a first batch has to be given with all of them."""
    writer = Writer()
    for producer in range(20):
        writer.write(producer)
    for producer in reversed(range(20)):
        writer.end(producer, commit=False)
    writer.write(-1)
    log = writer.log
    assert seen(log, log.next_offset) == writer.plain == [40]
    _, txns = log.read_committed(20, 1, max_offset=log.next_offset, at_least_one=True, aborted_max=3)
    assert len(txns) == 20


def test_what_one_read_learns_of_the_index_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed, "ABORTED_BLOCKS_SUMMARIZED_MAX", 2)
    writer = Writer(LogConfig(index_interval_bytes=300))
    writer.write(1)
    writer.abort(2, 40)
    writer.end(1, commit=False)
    log, index = writer.log, writer.log.active.aborted
    given = []
    for _ in range(8):
        known = index.known_blocks
        fetched, txns = log.read_committed(0, 1, max_offset=log.next_offset, at_least_one=True, aborted_max=3)
        given.append((fetched.slice is not None, [txn.producer_id for txn in txns]))
        assert index.known_blocks - known <= 2
    assert given[0] == (False, []) and given[-1] == (True, [1])
    assert seen(log, log.next_offset) == []


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(-1, 4)),
        st.tuples(st.sampled_from(("commit", "abort", "abort", "aborts")), st.integers(0, 4)),
        st.tuples(st.sampled_from(("roll", "cut", "crash")), st.just(0)),
    ),
    max_size=120,
)


@settings(max_examples=80, deadline=None)
@given(steps, st.integers(1, 3_000), st.integers(0, 5), st.floats(0, 1))
def test_exactly_what_was_committed_is_seen(
    plan: list[tuple[str, int]], max_bytes: int, aborted_max: int, start: float
) -> None:
    writer = Writer()
    for verb, producer in plan:
        match verb:
            case "write":
                writer.write(producer)
            case "commit" | "abort":
                writer.end(producer, commit=verb == "commit")
            case "aborts":
                writer.end(producer, commit=True)
                writer.abort(producer, 9)
            case "roll":
                writer.log.roll(NOW_MS)
            case "cut":
                # Appended once more, and cut off again: nothing of it stays.
                end = writer.log.next_offset
                writer.abort(9, 9)
                writer.sequences.pop(9)
                writer.log.truncate_to(end, now_ms=NOW_MS)
            case "crash":
                writer.log.flush()
                writer.log = open_log(writer.disk, SMALL)
    log = writer.log
    log.producers.replicated(log.next_offset)
    unstable = log.first_unstable_offset
    stable = log.next_offset if unstable is None else unstable
    first = int(start * stable)
    expected = sorted(offset for offset in writer.plain if first <= offset < stable)
    assert seen(log, stable, start=first, max_bytes=max_bytes, aborted_max=aborted_max) == expected
