"""An inspector is handed to the append: it changes a batch, refuses it, or puts records elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Generator
from types import SimpleNamespace

import pytest
from tests.log.logs import NOW_MS, batch, open_log, read_records

from ottla.log.append import Appended
from ottla.log.config import ContractTerms, LogConfig
from ottla.log.inspection import Decision, Placed
from ottla.log.log import Log
from ottla.log.look import Look
from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import BatchHeader, read_header

TERMS = ContractTerms(full=False, of="value", own_subjects=True, action="reject", dead_letters="")


class Scripted:
    """An inspector that finds what the test says."""

    def __init__(self, decide: Callable[[int], Decision] | None) -> None:
        self.decide = decide
        self.begun = 0
        self.seen = 0

    def begin(self) -> None:
        self.begun += 1

    def look(self, data: bytes, header: BatchHeader) -> Generator[None, None, Decided | None]:
        self.seen += header.count
        yield
        return None if self.decide is None else Decided(self.decide)


ELSEWHERE = SimpleNamespace(cuts=0, high_watermark=0, counts_later=False)


class Decided:
    def __init__(self, decide: Callable[[int], Decision]) -> None:
        self.decide = decide

    def decide_again(self, offset: int) -> tuple[Placed, ...]:
        return (Placed(ELSEWHERE, 0, offset + 10),)


def contracted() -> Log:
    return open_log(config=LogConfig(contract=TERMS))


def append(log: Log, records: bytearray, inspector: Scripted) -> Appended:
    look = Look(records, read_header(records), log.config, NOW_MS, log.name, 1 << 20, inspector).whole()
    return log.append(records, 0, NOW_MS, look=look)


def test_a_batch_with_nothing_against_it_is_written_as_it_is() -> None:
    log, inspector = contracted(), Scripted(None)
    appended = append(log, batch(3), inspector)
    assert (inspector.begun, inspector.seen) == (1, 3)
    assert (appended.first_offset, appended.last_offset, appended.placed) == (0, 2, ())


def test_findings_decide_what_is_written_and_where_the_rest_is() -> None:
    log = contracted()
    append(log, batch(2), Scripted(None))
    elsewhere = Placed(ELSEWHERE, 0, 1)
    offsets: list[int] = []

    def decide(offset: int) -> Decision:
        offsets.append(offset)
        return Decision(batch(2, key=b"other"), (elsewhere,))

    appended = append(log, batch(2, key=b"first"), Scripted(decide))
    assert offsets == [2] and appended.placed == (elsewhere,)
    assert [(each.offset, each.key) for each in read_records(log, 2)] == [(2, b"other"), (3, b"other")]


def test_a_duplicate_is_decided_on_only_for_its_records_elsewhere() -> None:
    log = contracted()
    append(log, batch(1), Scripted(None))
    append(log, batch(1, producer=7, epoch=0, sequence=0), Scripted(None))

    def decide(offset: int) -> Decision:
        raise AssertionError("it is in the log already")

    again = append(log, batch(1, producer=7, epoch=0, sequence=0), Scripted(decide))
    assert again.duplicate and again.placed == (Placed(ELSEWHERE, 0, 11),)


@pytest.mark.parametrize("code", [ErrorCode.INVALID_RECORD, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_a_batch_that_is_to_come_again_is_not_overtaken(code: ErrorCode) -> None:
    log = contracted()

    def decide(offset: int) -> Decision:
        raise ApiError(code)

    with pytest.raises(ApiError) as refused:
        append(log, batch(1, producer=7, epoch=0, sequence=0), Scripted(decide))
    assert refused.value.code == code and log.next_offset == 0
    behind = batch(1, producer=7, epoch=0, sequence=1)
    if code.retriable:
        with pytest.raises(ApiError) as overtaking:
            append(log, behind, Scripted(None))
        assert overtaking.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    else:
        assert append(log, behind, Scripted(None)).last_offset == 0


def test_nothing_is_written_under_a_contract_that_was_not_inspected() -> None:
    log = contracted()
    with pytest.raises(AssertionError):
        log.append(batch(1), 0, NOW_MS)
    assert log.next_offset == 0
