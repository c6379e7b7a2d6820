"""Simulations with coordinators: consumer groups, transactional copiers and share groups beside the plain writers and
readers, through all faults.

Only scenarios in which acknowledged data must survive: with power faults everything is synced before it is
acknowledged, including the internal topics, and no bits flip.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from ottla.sim.check import Guarantee
from ottla.sim.copying import CopyPlan, CopyWorkload, draw_copying
from ottla.sim.grouping import GROUP_SETTINGS, GroupPlan, GroupWorkload, draw_group
from ottla.sim.run import Simulation
from ottla.sim.scenario import DISK_FAULTS, Durability, Scenario, SimFault, scenario, survivable_faults
from ottla.sim.shares.sharing import SHARE_SETTINGS, SharePlan, ShareWorkload, draw_sharing
from ottla.sim.transactional import TRANSACTION_SETTINGS


@dataclass(frozen=True, slots=True)
class WorkloadPlans:
    """The plans of the workloads of a run, besides the plain writers and readers."""

    groups: tuple[GroupPlan, ...]
    copying: CopyPlan | None
    sharing: SharePlan | None

    def lines(self) -> list[str]:
        """Return descriptions of the workloads for the story of the run."""
        return [str(plan) for plan in (*self.groups, self.copying, self.sharing) if plan is not None]


def draw_workloads(seed: int) -> WorkloadPlans:
    rng = random.Random(f"cast {seed}")
    return WorkloadPlans(
        groups=tuple(draw_group(rng, f"group-{number}") for number in range(rng.randint(0, 2))),
        copying=draw_copying(rng) if rng.random() < 0.6 else None,
        sharing=draw_sharing(rng) if rng.random() < 0.6 else None,
    )


def coordinated(seed: int) -> Scenario:
    """Return a scenario in which acknowledged data must survive."""
    base = scenario(seed)
    faults = survivable_faults(base)
    rng = random.Random(f"clients {seed}")
    if rng.random() < 0.4:
        faults[SimFault.CLIENT_PAUSE] = rng.uniform(0.5, 2.0)
    return replace(base, guarantee=Guarantee.SAFE, faults=faults or {SimFault.KILL: 1.0})


class CoordinatedSimulation(Simulation):
    """A simulation with workloads (see `process`)."""

    def __init__(
        self, scenario: Scenario, tell: Callable[[str], None] | None = None, plans: WorkloadPlans | None = None
    ) -> None:
        self.plans = draw_workloads(scenario.seed) if plans is None else plans
        super().__init__(scenario, tell)
        for line in self.plans.lines():
            self.tell(line)
        self.workloads.extend(GroupWorkload(self.stage, plan) for plan in self.plans.groups)
        if self.plans.copying is not None:
            self.workloads.append(CopyWorkload(self.stage, self.plans.copying))
        if self.plans.sharing is not None:
            locks_last = not any(fault in scenario.faults for fault in DISK_FAULTS)
            self.workloads.append(ShareWorkload(self.stage, self.plans.sharing, locks_last=locks_last))

    def _settings(self) -> dict[str, str]:
        durable = self.scenario.durability is not Durability.PAGE_CACHE
        sharing = self.plans.sharing
        every = "share.coordinator.snapshot.update.records.per.snapshot"
        return (
            super()._settings()
            | GROUP_SETTINGS
            | TRANSACTION_SETTINGS
            | SHARE_SETTINGS
            | ({every: str(sharing.snapshot_every)} if sharing is not None else {})
            | {"ottla.fsync.before.ack": str(durable).lower()}
        )
