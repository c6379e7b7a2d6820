"""Dead letters are stamped with offsets that were not known when they were made."""

from __future__ import annotations

import pytest

from ottla.records.batch import check, read_header
from ottla.records.record import Record, records
from ottla.server.dead_letters.letters import Letters


def made(first: int, count: int = 40, most_bytes: int = 1_000) -> Letters:
    letters = Letters("t", 3, 1_000, most_bytes)
    for at in range(count):
        letters.add(Record(at, 7, b"k", b"v" * at, (("own", None),)), first + at, b"schema", (("error", b"bad"),))
    return letters


@pytest.mark.parametrize(("made_with", "appended_at"), [(100, 100), (100, 101), (100, 900), (5_000, 1_234)])
def test_letters_are_as_if_made_with_their_offsets(made_with: int, appended_at: int) -> None:
    letters = made(made_with)
    stamped = letters.batches()
    assert letters.move(appended_at - made_with)
    assert stamped == made(appended_at).batches()
    for batch in stamped:
        check(batch, 0, read_header(batch))
        assert len(batch) <= 1_000
    found = [dict(each.headers) for batch in stamped for each in records(batch)]
    assert [int(headers["ottla.dlq.offset"] or b"") for headers in found] == list(range(appended_at, appended_at + 40))
    assert all(headers["own"] is None and headers["ottla.dlq.reason"] == b"schema" for headers in found)


@pytest.mark.parametrize(("made_with", "written_at"), [(1_000, 3), (990, 95)])
def test_lower_offsets_get_leading_zeros(made_with: int, written_at: int) -> None:
    letters = made(made_with)
    stamped = letters.batches()
    assert letters.move(written_at - made_with)
    found = [dict(each.headers)["ottla.dlq.offset"] or b"" for batch in stamped for each in records(batch)]
    assert [int(offset) for offset in found] == list(range(written_at, written_at + 40))
    for batch in stamped:
        check(batch, 0, read_header(batch))


@pytest.mark.parametrize(("made_with", "appended_at"), [(5, 6), (90, 91), (100, 990), (900, 1_000)])
def test_offsets_of_other_lengths_have_no_room(made_with: int, appended_at: int) -> None:
    letters = made(made_with)
    before = [bytes(batch) for batch in letters.batches()]
    assert not letters.move(appended_at - made_with)
    assert before == letters.batches()


def test_a_letter_larger_than_a_batch_is_alone_in_one() -> None:
    letters = made(0, 3, most_bytes=10)
    assert [read_header(batch).count for batch in letters.batches()] == [1, 1, 1]
