"""Transactions under chaos: seeds that failed once, some others, and proof that the ledger sees what is wrong."""

from pathlib import Path

import pytest

from ottla.model.ids import TopicPartition
from ottla.sim.ledger import Ledger, TransactionName
from ottla.sim.seeds import kept_seeds
from ottla.sim.transacting import TransactionSimulation, transacting

KEPT = kept_seeds(Path(__file__).with_name("transacting_seeds.txt"))
SAMPLE = range(700, 708)


@pytest.mark.parametrize("seed", [*KEPT, *SAMPLE])
def test_seed(seed: int) -> None:
    outcome = TransactionSimulation(transacting(seed)).run()
    assert outcome.ok, "\n".join(outcome.violations)
    assert outcome.facts["committed"]


def test_a_seed_tells_the_same_story_twice() -> None:
    first, second = (TransactionSimulation(transacting(1)).run() for _ in range(2))
    assert first.trace == second.trace


A, B = TopicPartition("t", 0), TopicPartition("t", 1)
ONE = TransactionName(0, 1)


@pytest.mark.parametrize(
    ("found", "committed", "wrong"),
    [
        ({A: [(0, ONE.value(0))], B: [(0, ONE.value(1))]}, True, ""),
        ({A: [], B: []}, False, ""),
        ({A: [(0, ONE.value(0))], B: []}, True, "torn"),
        ({A: [(0, ONE.value(0))], B: []}, False, "torn"),
        ({A: [], B: []}, True, "gone"),
        ({A: [(0, ONE.value(0))], B: [(0, ONE.value(1))]}, False, "never committed"),
        ({A: [(0, ONE.value(0)), (1, ONE.value(0))], B: [(0, ONE.value(1))]}, True, "twice"),
    ],
)
def test_the_ledger(found: dict[TopicPartition, list[tuple[int, bytes | None]]], committed: bool, wrong: str) -> None:
    ledger = Ledger()
    ledger.begin(ONE)
    ledger.written[ONE] = {0: A, 1: B}
    if committed:
        del ledger.refused[ONE]
        ledger.committed[ONE] = None
    ledger.judge(found)
    assert bool(ledger.violations) == bool(wrong)
    assert wrong in " ".join(ledger.violations)


def test_the_ledger_remembers_what_was_seen() -> None:
    ledger = Ledger()
    ledger.begin(ONE)
    ledger.written[ONE] = {0: A}
    ledger.seen[A] = [(0, ONE.value(0))]
    ledger.judge({A: []})
    assert ledger.violations == ["t-0: a reader saw what is not committed after all"]
