"""Whole clusters under chaos: every seed that ever failed, a bounded number of others, and the same seed twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sim.sampling import check, check_sample

from ottla.sim.replicated.run import ClusterSimulation
from ottla.sim.replicated.scenario import clustered
from ottla.sim.run import Outcome
from ottla.sim.seeds import kept_seeds

KEPT = kept_seeds(Path(__file__).with_name("cluster_seeds.txt"))
SAMPLE_START = int(os.environ.get("OTTLA_SIM_START", "700000"))


def simulate(seed: int) -> Outcome:
    return ClusterSimulation(clustered(seed)).run()


@pytest.mark.parametrize("seed", KEPT)
def test_seeds_that_failed_once(seed: int) -> None:
    check("cluster", simulate(seed))


def test_a_sample_of_seeds() -> None:
    check_sample("cluster", simulate, SAMPLE_START, cpu_seconds=20.0, least=30)


def replay(seed: int, hash_seed: str) -> str:
    command = [sys.executable, "-m", "ottla.sim", "--kind", "cluster", "--seed", str(seed), "--quiet"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_a_seed_tells_the_same_story_in_every_process() -> None:
    story = replay(6, "1")
    assert story == replay(6, "2")
    assert story != replay(7, "1")
