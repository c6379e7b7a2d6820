"""Simulations in which mainly answers go wrong: see `answers`. Everything else is as in `coordinated`.

An operator deletes records meanwhile, so that readers have to look up where to go on. The claims are those of any run
with coordinators: no record is skipped, no offset is committed whose record was not delivered, all clients finish.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from ottla.sim.coordinated import CoordinatedSimulation, WorkloadPlans, coordinated, draw_workloads
from ottla.sim.decoding.workload import DecodingWorkload
from ottla.sim.grouping import draw_group
from ottla.sim.scenario import Scenario, SimFault

DECODING_RATE = 0.5  # the fraction of runs with a schema registry, and consumers that decode with it


def answering(seed: int) -> Scenario:
    rng = random.Random(f"answering {seed}")
    base = coordinated(seed)
    faults = {SimFault.ANSWERS: 3.0}
    if rng.random() < 0.4:
        faults[rng.choice((SimFault.KILL, SimFault.RESET, SimFault.RESTART))] = 0.5
    return replace(
        base,
        faults=faults,
        partitions=rng.randint(2, 4),
        writers=base.writers[:2],
        following_readers=2,
        erasers=4,
        pause_between_faults_seconds=rng.uniform(1.0, 4.0),
        chaos_seconds=rng.uniform(15.0, 40.0),
    )


class AnsweringSimulation(CoordinatedSimulation):
    """Like its parent, but some client always needs several requests for one operation; half of the runs have a schema
    registry.
    """

    def __init__(
        self,
        scenario: Scenario,
        tell: Callable[[str], None] | None = None,
        plans: WorkloadPlans | None = None,
        *,
        decodes: bool | None = None,
    ) -> None:
        """`plans` and `decodes` say which workloads take part, and whether some decode; by default the seed decides."""
        if plans is None:
            plans = draw_workloads(scenario.seed)
            if not plans.groups and plans.copying is None and plans.sharing is None:
                plans = replace(plans, groups=(draw_group(random.Random(f"group {scenario.seed}"), "group-0"),))
        super().__init__(scenario, tell, plans)
        if decodes is None:
            decodes = random.Random(f"decoding {scenario.seed}").random() < DECODING_RATE
        if decodes:
            self.workloads.append(DecodingWorkload(self.stage, self._slow_down))

    def _slow_down(self, client_id: str) -> None:
        self.machine.script.add("Fetch", None, 2, close=False, delay="2s", after=False, client_id=client_id)
