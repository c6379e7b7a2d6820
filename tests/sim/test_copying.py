"""The judgement of copies: exactly once, by content, and together with the positions."""

import pytest

from ottla.model.ids import TopicPartition
from ottla.sim.check import Payload
from ottla.sim.copying import CopyBook
from ottla.sim.ledger import TransactionName

A, TARGET = TopicPartition("t", 0), TopicPartition("copies", 0)
CONTENT = {A: {offset: Payload(1, 0, 100 + offset) for offset in range(5)}}


def copied(*offsets: int, sequence: int = 100) -> list[tuple[int, bytes | None]]:
    return [
        (at, TransactionName(0, 1).value(at) + f" 0 {offset} 1 0 {sequence + offset}".encode())
        for at, offset in enumerate(offsets)
    ]


@pytest.mark.parametrize(
    ("found", "committed", "start", "wrong"),
    [
        (copied(0, 1, 2), 3, 0, ""),
        (copied(2, 0, 1), 3, 0, ""),
        (copied(2), 3, 2, ""),  # the others were erased before anybody copied them
        ([], 0, 0, ""),
        (copied(0, 1, 1, 2), 3, 0, "copied twice"),
        (copied(0, 2), 3, 0, "[1] were not copied"),
        (copied(0, 1, 2), 2, 0, "[2] were copied, but committed is 2"),
        (copied(0, 1, 2, sequence=7), 3, 0, "are not what they are copies of"),
    ],
)
def test_copies(found: list[tuple[int, bytes | None]], committed: int, start: int, wrong: str) -> None:
    violations = CopyBook((A,)).judge({TARGET: found}, {A: committed}, CONTENT, {A: start})
    assert bool(violations) == bool(wrong)
    assert wrong in " ".join(violations)
