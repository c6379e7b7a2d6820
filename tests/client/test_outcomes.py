"""Outcomes per part: what was found is there, what failed is told, and the plain way raises."""

import asyncio

import pytest

from ottla.client.errors import ClientError, ConnectionLost, OffsetOutOfRange
from ottla.client.outcomes import Outcomes, named, outcomes_of
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition

A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("c", 0)
GONE = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic")


def test_all_is_what_was_found():
    assert Outcomes({A: 1, B: 2}).all() == {A: 1, B: 2}


def test_all_raises_the_first_failure_and_names_it():
    with pytest.raises(ApiError, match=r"UNKNOWN_TOPIC_OR_PARTITION: b-0: there is no such topic$") as told:
        Outcomes({A: 1}, {B: GONE}).all()
    assert told.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_all_says_how_many_others_failed():
    outcomes = Outcomes({A: 1}, {B: ConnectionLost("it broke"), C: GONE})
    for _ in range(2):  # the text does not grow
        with pytest.raises(ConnectionLost, match=r"^b-0: it broke \(and 1 other failed\)$") as told:
            outcomes.all()
        assert told.value.maybe_applied
    assert outcomes.failed[C] is GONE


def test_an_error_keeps_what_it_knows():
    with pytest.raises(OffsetOutOfRange, match=r"offset 7 of b-0 .* \(and 2 others failed\)$") as told:
        Outcomes({}, {B: OffsetOutOfRange(B, 7, 0, 5), A: GONE, C: GONE}).all()
    assert (told.value.offset, told.value.end_offset, told.value.partition) == (7, 5, B)


@pytest.mark.parametrize(
    ("part", "text", "told"),
    [
        (TopicPartition("t", 1), "offset 7 of t-10 is gone", "t-1: offset 7 of t-10 is gone"),
        (TopicPartition("t", 1), "offset 7 of my.t-1 is gone", "t-1: offset 7 of my.t-1 is gone"),
        ("t", "topic t.new is gone", "t: topic t.new is gone"),
        ("t", "it has no leader", "t: it has no leader"),
        ("t", "there is no topic 't'", "there is no topic 't'"),
        (TopicPartition("t", 1), "nobody leads t-1.", "nobody leads t-1."),
        (3, "broker 3 is away", "broker 3 is away"),
        (3, "broker 31 is away", "3: broker 31 is away"),
    ],
)
def test_a_part_is_named_by_its_whole_name(part: object, text: str, told: str):
    assert str(named(ClientError(text), part, 0)) == told


def test_later_outcomes_replace_earlier_ones():
    outcomes = Outcomes({A: 1}, {B: GONE})
    outcomes.add(Outcomes({B: 2}, {A: GONE}))
    assert (outcomes.found, outcomes.failed) == ({B: 2}, {A: GONE})


async def _answer(value: int | Exception) -> int:
    await asyncio.sleep(0)
    if isinstance(value, Exception):
        raise value
    return value


def test_work_at_once_has_an_outcome_per_part():
    async def run() -> Outcomes[TopicPartition, int]:
        return await outcomes_of({A: _answer(1), B: _answer(ClientError("no")), C: _answer(3)})

    outcomes = asyncio.run(run())
    assert outcomes.found == {A: 1, C: 3}
    assert list(outcomes.failed) == [B]


def test_a_bug_is_not_an_outcome():
    async def run() -> None:
        await outcomes_of({A: _answer(1), B: _answer(KeyError("oops"))})

    with pytest.raises(KeyError):
        asyncio.run(run())
