"""The registry inside a decode: its lookups fail or are late, its instances read their topic anew; bugs that must be
found, and every claim of the `DecodingBook`, kept and broken."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from ottla.client.consumer.consumer import Consumer
from ottla.model.ids import LeaderEpoch, TopicPartition
from ottla.registry.tail import Tail
from ottla.sim.answering import AnsweringSimulation, answering
from ottla.sim.coordinated import WorkloadPlans
from ottla.sim.decoding.check import DecodingBook
from ottla.sim.run import Outcome

NO_WORKLOADS = WorkloadPlans(groups=(), copying=None, sharing=None)
SEEDS = range(5)
PARTITION = TopicPartition("framed", 0)


def simulate(seed: int) -> Outcome:
    """Nobody takes part but a registry and those who use it."""
    made = replace(answering(seed), writers=(), following_readers=0, jumping_readers=0, erasers=0, chaos_seconds=15.0)
    return AnsweringSimulation(made, plans=NO_WORKLOADS, decodes=True).run()


def finds(words: str) -> bool:
    return any(words in violation for seed in SEEDS for violation in simulate(seed).violations)


def test_without_a_mutation_nothing_is_found() -> None:
    for seed in SEEDS:
        outcome = simulate(seed)
        assert not outcome.violations
        assert outcome.facts["decoded"] >= outcome.facts["framed"] > 0
    assert outcome.facts["failed lookups"] > 0


def test_a_seed_tells_the_same_story_twice() -> None:
    assert simulate(1).trace == simulate(1).trace


def test_a_record_whose_decoding_failed_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: a consumer that is closed because of an exception committed what it had handed out last."""
    monkeypatch.setattr(Consumer, "_stop_handing", lambda self: self._in_hand.stop())
    assert finds("is committed, but nobody decoded")


def test_a_registry_answers_from_what_it_has_half_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: what is read anew counts from its first record on."""
    honest = Tail._reach

    async def hasty(self: Tail[object], state: object, position: int, end: int, epoch: LeaderEpoch) -> None:
        await honest(self, state, position, 0, epoch)

    monkeypatch.setattr(Tail, "_reach", hasty)
    assert finds("has forgotten it")


# -- the book


def twice(book: DecodingBook) -> None:
    book.registered(1, "a")
    book.registered(1, "b")


def other(book: DecodingBook) -> None:
    book.registered(1, "a")
    book.looked_up("registry-0", 1, "b")


def forgotten(book: DecodingBook) -> None:
    book.looked_up("registry-0", 1, "a")
    book.looked_up("registry-0", 1, None)


def skipped(book: DecodingBook) -> None:
    book.was_decoded(PARTITION, 0, 1, "a", "a")
    book.found({PARTITION: 2}, {})


def wrongly(book: DecodingBook) -> None:
    book.was_decoded(PARTITION, 0, 1, "a", "b")


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (twice, "schema 1 is the one with a, and was registered the one with b"),
        (other, "schema 1 is the one with a, and is, as registry-0 says, the one with b"),
        (forgotten, "registry-0 knew it, and has forgotten it"),
        (skipped, "2 is committed, but nobody decoded [1]"),
        (wrongly, "written with a, decoded with b"),
    ],
)
def test_a_claim_that_is_broken(story: Callable[[DecodingBook], None], words: str) -> None:
    wrong: list[str] = []
    story(DecodingBook(wrong.append))
    assert [words in each for each in wrong] == [True]


def test_what_is_no_violation() -> None:
    wrong: list[str] = []
    book = DecodingBook(wrong.append)
    book.looked_up("registry-1", 1, None)  # it has not heard of it yet
    book.registered(1, "a")
    book.looked_up("registry-0", 1, "a")
    book.looked_up("registry-0 (life 2)", 1, None)
    book.was_decoded(PARTITION, 0, 1, "a", "a")
    book.found({PARTITION: 1}, book.floors())
    assert wrong == []
