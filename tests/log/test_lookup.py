"""Finding records by time (`log/lookup.py`)."""

import pytest
from tests.log.logs import (
    NOW_MS,
    append,
    batch,
    max_timestamp_offset,
    offset_for_time,
    open_log,
)

from ottla.log.config import LogConfig
from ottla.log.log import Origin
from ottla.log.lookup import TimeOffset
from ottla.model import limits
from ottla.model.limits import SCAN_READ_BYTES
from ottla.records.batch import HEADER_BYTES, read_header
from ottla.records.build import assemble, build_batch
from ottla.records.compress import Codec
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.records.record import Record
from ottla.sim.world.disk import SimFile


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_times_are_exact_inside_batches(codec: Codec) -> None:
    log = open_log(config=LogConfig(segment_bytes=600, index_interval_bytes=100))
    for i in range(20):
        append(log, batch(5, timestamp=NOW_MS + 100 * i, step_ms=10, codec=codec))
    for i in range(100):
        time = NOW_MS + 100 * (i // 5) + 10 * (i % 5)
        assert offset_for_time(log, time, max_offset=100) == TimeOffset(i, time, 0)
        assert offset_for_time(log, time - 5, max_offset=100) == TimeOffset(i, time, 0)
    assert offset_for_time(log, 0, max_offset=100) == TimeOffset(0, NOW_MS, 0)
    assert offset_for_time(log, NOW_MS + 1_941, max_offset=100) is None
    assert offset_for_time(log, NOW_MS + 1_940, max_offset=99) is None, "not readable yet"
    assert max_timestamp_offset(log, max_offset=100) == TimeOffset(99, NOW_MS + 1_940, 0)


def test_times_out_of_order() -> None:
    log = open_log(config=LogConfig(index_interval_bytes=1))
    for time in (5, 9, 3, 9, 1):
        append(log, build_batch([Record(-1, time, b"k", b"v"), Record(-1, time - 1, b"k", b"v")]))
    assert [offset_for_time(log, time, max_offset=10) for time in (5, 6, 9)] == [(0, 5, 0), (2, 9, 0), (2, 9, 0)]
    assert max_timestamp_offset(log, max_offset=10) == (2, 9, 0)


def test_times_respect_the_log_start() -> None:
    log = open_log()
    for number in range(10):
        append(log, batch(3, timestamp=NOW_MS + number))
    log.advance_log_start(7)
    assert offset_for_time(log, 0, max_offset=30) == (7, NOW_MS + 2, 0)


def test_times_of_a_batch_that_the_log_start_cuts_through() -> None:
    """All records of it have the time of the append."""
    log = open_log(config=LogConfig(log_append_time=True))
    append(log, batch(10), now_ms=1_000)
    append(log, batch(10), now_ms=5_000)
    log.advance_log_start(5)
    assert offset_for_time(log, 500, max_offset=20) == (5, 1_000, 0)
    assert max_timestamp_offset(log, max_offset=20) == (10, 5_000, 0)
    log.advance_log_start(15)
    assert offset_for_time(log, 500, max_offset=20) == (15, 5_000, 0)
    assert max_timestamp_offset(log, max_offset=20) == (15, 5_000, 0)


def test_times_of_an_empty_log() -> None:
    log = open_log()
    assert offset_for_time(log, 0, max_offset=0) is None and max_timestamp_offset(log, max_offset=0) is None


def test_a_step_of_a_search_reads_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked for comes last; all before it is older, and no index says so."""
    log = open_log()
    older = build_batch([Record(-1, 4, None, bytes(900_000))])
    for each in [build_batch([Record(-1, 6, None, b"")]), *[older] * 10, build_batch([Record(-1, 7, None, b"")])]:
        append(log, bytearray(each))
    steps, read = [], [0]
    honest = SimFile.read

    def counted(self: SimFile, position: int, size_bytes: int) -> bytes:
        data = honest(self, position, size_bytes)
        read[0] += len(data)
        return data

    monkeypatch.setattr(SimFile, "read", counted)
    search, done = log.time_search(7), False
    while not done:
        read[0] = 0
        done = search.step()
        steps.append(read[0])
    assert search.found == (11, 7, 0)
    assert len(steps) > 4 and max(steps) <= 3 * SCAN_READ_BYTES


def lying_batch(count: int, claimed: int) -> bytearray:
    """Its header claims a time that no record has."""
    sound = build_batch([Record(-1, 4, None, b"")] * count, codec=Codec.ZSTD)
    header = read_header(sound)
    return assemble(
        sound[HEADER_BYTES:],
        base_offset=0,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=claimed,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=header.count,
    )


@pytest.mark.parametrize(
    ("records_max", "bytes_max", "found"),
    [
        (1_000_000, 1_000_000, (30_000, 7)),  # all are looked into
        (10_500, 1_000_000, (9_000, 8)),  # three are, and the fourth is believed
        (1_000_000, 60_000, (6_000, 8)),  # two are: each unpacks to somewhat more than 21,000 bytes
    ],
)
def test_a_search_looks_into_so_much_and_believes_the_rest(
    monkeypatch: pytest.MonkeyPatch, records_max: int, bytes_max: int, found: tuple[int, int]
) -> None:
    monkeypatch.setattr(limits, "SEARCHED_RECORDS_MAX", records_max)
    monkeypatch.setattr(limits, "SEARCHED_BYTES_MAX", bytes_max)
    log = open_log()
    for _ in range(10):
        append(log, lying_batch(3_000, claimed=8))
    append(log, build_batch([Record(-1, 7, None, b"")]))
    search = log.time_search(7)
    assert search.whole() == (*found, 0)


def test_a_search_holds_nothing_between_two_batches() -> None:
    """Others of the node may have their turns then, however many searches there are."""
    log = open_log()
    for _ in range(3):
        append(log, lying_batch(3_000, claimed=8))
    search = log.time_search(7)
    at_rest = []
    while not search.step():
        at_rest.append(search.at_rest)
    assert at_rest.count(True) == 3 and not at_rest[0]
    assert search.found is None


def test_when_the_first_record_from_an_offset_on_was_written() -> None:
    """To within its batch; markers and what compaction has emptied are no records."""
    log = open_log(config=LogConfig(segment_bytes=600, index_interval_bytes=100))
    for number in range(20):
        append(log, batch(5, timestamp=NOW_MS + 100 * number, step_ms=10))
    assert [log.written_ms(offset, 100) for offset in (0, 4, 5, 99)] == [
        NOW_MS,
        NOW_MS,
        NOW_MS + 100,
        NOW_MS + 1_900,
    ]
    assert log.written_ms(100, 100) is None
    assert log.written_ms(95, 95) is None, "not readable yet"
    marker = EndTxnMarker(commit=True, coordinator_epoch=1)
    made = end_txn_batch(marker, producer_id=7, producer_epoch=0, timestamp=NOW_MS + 5_000)
    log.append(made, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    assert log.written_ms(100, 101) is None
    append(log, batch(1, timestamp=NOW_MS + 6_000))
    assert log.written_ms(100, 102) == NOW_MS + 6_000


def test_when_a_record_was_written_of_which_the_broker_knows_the_time() -> None:
    log = open_log(config=LogConfig(log_append_time=True))
    append(log, batch(10, timestamp=1), now_ms=5_000)
    assert log.written_ms(3, 10) == 5_000
