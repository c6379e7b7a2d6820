"""The small parts of a share partition: which batches count, when a record is due, what an acknowledgement may say."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import INT64_MAX
from ottla.records.batch import BatchHeader, read_header
from ottla.records.build import build_batch
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.records.record import Record
from ottla.shares.partition.acknowledgement_checks import acks_of
from ottla.shares.partition.data_batches import spans
from ottla.shares.partition.delivery_delay import due_ms
from ottla.shares.partition.key_order import Lanes
from ottla.shares.partition.partition import SharePartition
from ottla.shares.partition.terms import Ack, FetchedBatch, Rules, Want


def header(at: int, size: int, producer_id: int = -1) -> BatchHeader:
    transactional = producer_id >= 0
    batch = build_batch(
        [(None, b"x")] * size,
        base_offset=at,
        producer_id=producer_id,
        producer_epoch=0 if transactional else -1,
        base_sequence=0 if transactional else -1,
        transactional=transactional,
    )
    return read_header(batch)


def marker(at: int, producer_id: int, *, commit: bool) -> BatchHeader:
    found = EndTxnMarker(commit, 0)
    return read_header(end_txn_batch(found, producer_id=producer_id, producer_epoch=0, timestamp=0, base_offset=at))


def test_markers_and_aborted_batches_hold_no_data() -> None:
    log = [
        header(0, 2, producer_id=7),  # aborted
        header(2, 2, producer_id=8),  # committed
        header(4, 1),
        marker(5, 7, commit=False),
        header(6, 1, producer_id=7),  # the next transaction of the same producer, committed
        marker(7, 8, commit=True),
        marker(8, 7, commit=True),
        header(9, 3, producer_id=7),  # aborted again
    ]
    found = list(spans(log, [(7, 9), (7, 0)]))
    assert [(span.first, span.last) for span in found if span.data] == [(2, 3), (4, 4), (6, 6)]
    assert [(span.first, span.last) for span in spans(log) if not span.data] == [(5, 5), (7, 7), (8, 8)]


@pytest.mark.parametrize(
    ("headers", "due"),
    [
        ((), 0),
        ((("ottla.deliver-at", b"5000"),), 5_000),
        ((("ottla.deliver-at", (5_000).to_bytes(8, "big")),), 5_000),
        ((("ottla.deliver-at", b"12345678"),), 12_345_678),
        ((("ottla.delay-ms", b"500"),), 1_500),
        ((("ottla.delay-ms", b"0"),), 0),
        ((("ottla.delay-ms", b"-5"),), 0),
        ((("ottla.delay-ms", (-5).to_bytes(8, "big", signed=True)),), 0),
        ((("ottla.delay-ms", b"soon"), ("other", b"5")), 0),
        ((("ottla.delay-ms", None),), 0),
        ((("ottla.deliver-at", b"5000"), ("ottla.delay-ms", b"1")), 1_001),
        ((("ottla.deliver-at", b"9" * 19),), INT64_MAX),
        ((("ottla.deliver-at", b"9" * 5_000),), 0),
    ],
)
def test_due(headers: tuple[tuple[str, bytes | None], ...], due: int) -> None:
    assert due_ms(Record(0, 1_000, None, b"", headers)) == due


class Batch(NamedTuple):
    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]


@pytest.mark.parametrize(
    "batches",
    [
        [Batch(3, 2, [1])],
        [Batch(4, 5, [1]), Batch(1, 2, [1])],
        [Batch(0, 1, [])],
        [Batch(0, 2, [1, 1])],
        [Batch(0, 0, [5])],
        [Batch(0, 0, [-1])],
        [Batch(0, 0, [4])],
    ],
)
def test_acknowledgements_that_make_no_sense(batches: list[Batch]) -> None:
    with pytest.raises(ApiError) as refused:
        acks_of(batches, renew=False)  # type: ignore[arg-type]
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_acknowledgements_that_do() -> None:
    batches = [Batch(0, 1, [1, 2]), Batch(2, 9, [4])]
    assert acks_of(batches, renew=True) == [Ack(0, 1, [1, 2]), Ack(2, 9, [4])]  # type: ignore[arg-type]


def test_pauses_double_up_to_a_limit_and_never_overflow() -> None:
    rules = Rules(backoff_ms=100, backoff_max_ms=1_000)
    assert [rules.backoff(count) for count in (1, 2, 3, 4, 5, 10_000)] == [100, 200, 400, 800, 1_000, 1_000]
    assert Rules(backoff_ms=100, backoff_max_ms=10).backoff(1) == 100
    assert Rules().backoff(3) == 0


def test_lanes() -> None:
    lanes = Lanes()
    for offset, key in ((5, b"a"), (3, b"a"), (4, b"x" * 100), (9, b"x" * 100), (5, b"b")):
        lanes.enter(offset, key)
    assert [offset for offset in (3, 4, 5, 9, 77) if lanes.first_in_line(offset)] == [3, 4, 77]
    lanes.leave(0, 4)
    assert [offset for offset in (5, 9) if lanes.first_in_line(offset)] == [5, 9]
    lanes.leave(0, 1 << 60)
    assert len(lanes) == 0


@pytest.mark.parametrize("by_ms", [3_600_000, -3_600_000])
def test_locks_do_not_care_for_the_time_of_day_and_times_of_delivery_do(by_ms: int) -> None:
    records = Rules(lock_ms=30_000, delayed=True)
    noon_ms = 12 * 3_600_000
    queue = SharePartition(0, records)
    queue.inspect(0, 0, [(0, None, noon_ms + 7_200_000)], noon_ms)  # to be delivered at a given time
    queue.acquire([FetchedBatch(1, 2, True)], 1, Want("a", 10, 10, False), noon_ms)
    assert queue.next_lock_ms() == noon_ms + 30_000
    queue.clock_set(by_ms)
    assert queue.next_lock_ms() == noon_ms + by_ms + 30_000
    assert queue.next_due_ms(noon_ms + by_ms) == noon_ms + 7_200_000
    assert queue.expire(noon_ms + by_ms + 29_999) is None
    assert queue.expire(noon_ms + by_ms + 30_000) is not None
