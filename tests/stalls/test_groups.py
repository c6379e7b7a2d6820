"""A classic group of very many members: its first rebalance, and one more who joins."""

import asyncio
from pathlib import Path

from bench.classic_crowd import ClassicCrowd
from bench.pipe import Pipe
from tests.stalls.measure import BUDGET_MS, MeasuredNode
from tests.support.waiting import until

from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

MEMBERS = 400
AT_ONCE = 100


def test_a_group_of_very_many(tmp_path: Path) -> None:
    """All of them talk at once: whoever looks after their connections must not do so in one go."""
    settings = {"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 1_000}
    with MeasuredNode(tmp_path, settings) as node, asyncio.Runner() as runner:
        with node.connect() as connection:
            find = FindCoordinatorRequest(key_type=0, coordinator_keys=["crowd"])
            until(lambda: connection.call(find, 4), lambda found: not found.coordinators[0].error_code)

        pipes: list[Pipe] = []

        async def joined(group: ClassicCrowd, count: int) -> None:
            first = len(pipes)
            for begun in range(0, count, AT_ONCE):
                more = min(AT_ONCE, count - begun)
                pipes.extend(await asyncio.gather(*(Pipe.open(node.bootstrap) for _ in range(more))))
            await group.join(pipes[first:])

        async def left() -> None:
            for pipe in pipes:
                pipe.close()
            await asyncio.sleep(0)

        runner.run(joined(ClassicCrowd("few", "t", 2, is_cooperative=False), 2))  # what is made when first needed
        group = ClassicCrowd("crowd", "t", MEMBERS, is_cooperative=False)
        for more in (MEMBERS - 1, 1):
            worst = node.cost(lambda more=more: runner.run(joined(group, more)))
            assert worst.cpu_ms <= BUDGET_MS, worst
        runner.run(left())
