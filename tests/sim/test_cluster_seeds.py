"""Whole clusters under chaos: every seed that ever failed, a bounded number of others, and the same seed twice."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ottla.sim.replicated.run import ClusterSimulation
from ottla.sim.replicated.scenario import clustered
from ottla.sim.run import Outcome
from ottla.sim.seeds import kept_seeds

KEPT = kept_seeds(Path(__file__).with_name("cluster_seeds.txt"))
SAMPLE_SECONDS = 45.0  # of CPU, so that a slow machine does fewer
SAMPLE_WALL_SECONDS = 180.0  # so that one that has much else to do does fewer, too, and no test takes too long
SAMPLE_MIN = 30
SAMPLE_MAX = 200
SAMPLE_START = int(os.environ.get("OTTLA_SIM_START", "700000"))


def check(outcome: Outcome) -> None:
    assert outcome.ok, f"replay with: make sim KIND=cluster SEED={outcome.seed}\n" + "\n".join(outcome.violations)


@pytest.mark.parametrize("seed", KEPT)
def test_seeds_that_failed_once(seed: int) -> None:
    check(ClusterSimulation(clustered(seed)).run())


def test_hundreds_of_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the sample begins. `make sim` tries new ones; a submission is judged by the same each time."""
    began, until = time.process_time(), time.monotonic() + SAMPLE_WALL_SECONDS
    done, changing = 0, 0
    for seed in range(SAMPLE_START, SAMPLE_START + SAMPLE_MAX):
        spent_all = time.process_time() > began + SAMPLE_SECONDS or time.monotonic() > until
        if done >= SAMPLE_MIN and spent_all:
            break
        scenario = clustered(seed)
        check(ClusterSimulation(scenario).run())
        done += 1
        changing += scenario.changes > 0
    with capsys.disabled():
        spent = time.process_time() - began
        line = f"{done} clusters simulated in {spent:.0f} s of CPU; {changing} of them changed their members"
        print(f"\n{line}", file=sys.stderr)


def replay(seed: int, hash_seed: str) -> str:
    command = [sys.executable, "-m", "ottla.sim", "--kind", "cluster", "--seed", str(seed), "--quiet"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


def test_a_seed_tells_the_same_story_in_every_process() -> None:
    story = replay(6, "1")
    assert story == replay(6, "2")
    assert story != replay(7, "1")
