"""Reading batches out of a log without its help, and comparing them as they are."""

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.records.build import build_batch
from ottla.sim.replicated.committed_batches import BatchReader, CommittedBatch, CommittedLog
from ottla.sim.world.disk import SimDisk


def log_of(*sizes: int) -> Log:
    log = Log.open(SimDisk(), "t-0", LogConfig(segment_bytes=200), now_ms=0)
    for size in sizes:
        log.append(build_batch([(None, b"x" * 20)] * size, timestamp=1), 7, 1)
    return log


def places(batches: list[CommittedBatch]) -> list[tuple[int, int]]:
    return [(batch.base_offset, batch.next_offset) for batch in batches]


def test_each_batch_is_read_once_over_segments() -> None:
    log = log_of(2, 3, 1, 4)
    assert len(log.segments) > 1
    reader = BatchReader(log)
    assert places(list(reader.read(5))) == [(0, 2), (2, 5)]
    assert places(list(reader.read(9))) == [(5, 6)], "the last one is not wholly below"
    assert places(list(reader.read(10))) == [(6, 10)]
    assert list(reader.read(10)) == []
    assert {batch.epoch for batch in BatchReader(log).read(10)} == {7}


def test_a_log_that_starts_later_or_was_cut() -> None:
    log = log_of(2, 3, 1, 4)
    reader = BatchReader(log)
    log.advance_log_start(3)
    assert places(list(reader.read(6))) == [(2, 5), (5, 6)]
    log.truncate_to(5)
    reader.cut(5)
    log.append(build_batch([(None, b"other")], timestamp=1), 8, 1)
    assert places(list(reader.read(6))) == [(5, 6)]


def test_the_same_batch_is_the_same_wherever_it_lies() -> None:
    committed = CommittedLog()
    for batch in BatchReader(log_of(2, 3)).read(5):
        committed.extend(batch)
    assert [committed.compare(batch) for batch in BatchReader(log_of(2, 3, 1)).read(5)] == [None, None]
    assert [committed.compare(batch) is None for batch in BatchReader(log_of(3, 2)).read(5)] == [False, False]
