"""Secondary failures: what an operation asks for on its way fails or is late; seeds, and bugs that must be found."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.sim.sampling import check, check_sample

from ottla.client.consumer import group_offsets as commits
from ottla.model.errors import ErrorCode
from ottla.sim import answers
from ottla.sim.answering import AnsweringSimulation, answering
from ottla.sim.coordinated import CoordinatedSimulation, WorkloadPlans
from ottla.sim.grouping import GroupPlan
from ottla.sim.run import Outcome
from ottla.sim.seeds import kept_seeds

KEPT = kept_seeds(Path(__file__).with_name("answers_seeds.txt"))
GROUP = GroupPlan("g", "classic", ("range",), 2, 0, life_seconds=4.0, crash_rate=0.5)
ERRORS = answers.RETRIABLE_ERRORS
GROUPS = WorkloadPlans(groups=(GROUP,), copying=None, sharing=None)


def simulate(seed: int) -> Outcome:
    return AnsweringSimulation(answering(seed)).run()


@pytest.mark.parametrize("seed", KEPT or [0])
def test_seeds_that_failed_once(seed: int) -> None:
    check("answers", simulate(seed))


def test_a_sample_of_seeds() -> None:
    check_sample("answers", simulate, 900_000, cpu_seconds=8.0, least=3)


def of_a_group(seed: int, monkeypatch: pytest.MonkeyPatch, *apis: str) -> Outcome:
    """Only these fail, and only a group needs them."""
    monkeypatch.setattr(answers, "RETRIABLE_ERRORS", {api: ERRORS[api] for api in apis})
    made = answering(seed)
    writers = tuple(replace(plan, records=100) for plan in made.writers[:1])
    made = replace(made, writers=writers, following_readers=0, jumping_readers=0, chaos_seconds=15.0)
    return CoordinatedSimulation(made, plans=GROUPS).run()


def test_a_commit_that_failed_is_taken_for_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not of_a_group(0, monkeypatch, "OffsetCommit", "FindCoordinator").violations
    monkeypatch.setattr(commits, "_common_error", lambda answer: ErrorCode.NONE)
    monkeypatch.setattr(commits, "error_code", lambda code: ErrorCode.NONE)
    found = [of_a_group(seed, monkeypatch, "OffsetCommit").violations for seed in range(4)]
    assert any("committed" in violation for violations in found for violation in violations)
