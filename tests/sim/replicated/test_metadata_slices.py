"""Clusters whose metadata is decided, applied and followed two records at a time: what large ones do, small ones show.

Everything that is claimed of a cluster holds, also if leaders change, nodes die and commands come between two slices.
"""

import pytest

from ottla.server.api import dispatch
from ottla.server.quorum.quorum import Quorum
from ottla.sim.replicated.run import ClusterSimulation
from ottla.sim.replicated.scenario import clustered
from ottla.sim.scaled import scaled

SEEDS = range(720_000, 720_003)


def test_slices_change_nothing_that_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch.load_handlers()  # what is imported while limits are small would keep them
    slices = 0
    next_slice = Quorum.next_slice

    def counted(self: Quorum, slice_: object) -> None:
        nonlocal slices
        slices += 1
        next_slice(self, slice_)  # type: ignore[arg-type]

    monkeypatch.setattr(Quorum, "next_slice", counted)
    with scaled({"ottla.model.limits.METADATA_RECORDS_PER_SLICE": 2}):
        for seed in SEEDS:
            outcome = ClusterSimulation(clustered(seed)).run()
            assert outcome.ok, f"seed {seed}: " + "\n".join(outcome.violations)
    assert slices > 10 * len(SEEDS)
