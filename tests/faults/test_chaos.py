"""A bounded sample of `make chaos`: a cluster of three is broken for a while, and nothing that was promised is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.chaos import network
from tests.chaos.runner import run

SECONDS = 25


@pytest.mark.parametrize("seed", [1, 2])
def test_broken_cluster_keeps_its_promises(tmp_path: Path, seed: int) -> None:
    missing = network.unavailable()
    if missing and os.environ.get("CI") == "true":
        pytest.fail(missing)
    said: list[str] = []
    verdict = run("ottla", tmp_path, SECONDS, seed, said.append)
    assert not verdict.problems, (verdict.problems, said)
    assert verdict.facts["faults"] >= 2
    assert verdict.facts["writers: acknowledged"] > 100
