"""One partition on three replicas under leader changes, crashes, fencing, late metadata and answers that take their
time: what was acknowledged is never lost nor reordered, logs are equal below the high watermark, which never goes back
within an epoch. Seeded: a failing seed fails again."""

from __future__ import annotations

import random

import pytest
from tests.replica.cluster import LAG_MS, Cluster, contents

from ottla.log.config import LogConfig
from ottla.sim.world.disk import Crash

SEEDS = 80
STEPS = 250

MIN_TWO = LogConfig(min_insync_replicas=2)
WORLDS = {
    "two are enough": (MIN_TWO, Crash.PROCESS),
    "one is enough": (LogConfig(min_insync_replicas=1), Crash.PROCESS),
    # On all nodes at once if it must be.
    "the power goes": (MIN_TWO._replace(fsync_before_ack=True), Crash.POWER),
}
ACTIONS = {
    "produce": 30,
    "produce anywhere": 3,
    "ask": 25,
    "answer": 25,
    "replicate": 12,
    "sync": 20,
    "tell": 14,
    "elect": 3,
    "fence": 3,
    "unfence": 8,
    "propose": 14,
    "judge": 14,
    "hear": 14,
    "hear nothing": 1,
    "wait": 4,
    "wait long": 2,
    "crash": 2,
    "restart": 6,
}


def step(cluster: Cluster, action: str, rng: random.Random, kind: Crash) -> None:
    node = rng.choice((1, 2, 3))
    match action:
        case "produce":
            cluster.produce(max(cluster.terms.leader, 1))
        case "produce anywhere":
            cluster.produce(node)
        case "ask":
            cluster.ask(node, max_bytes=rng.choice((1, 200, 1 << 20)))
        case "answer":
            cluster.answer(rng.choice((0, 0, 0, 1, 2)))
        case "sync":
            cluster.nodes[node].sync()
        case "replicate":  # what mostly happens: all goes well for a moment
            for each in cluster.nodes.values():
                each.sync()
                cluster.replicate(each.id)
        case "hear" | "hear nothing":
            cluster.hear(lose=action == "hear nothing")
        case "judge":
            cluster.judge()
        case "wait" | "wait long":
            cluster.now_ms += 10 if action == "wait" else LAG_MS + 1
        case "crash":
            cluster.crash(node, kind)
        case _:
            getattr(cluster, action)(node)


@pytest.mark.parametrize("world", WORLDS)
def test_replicas(world: str) -> None:
    config, kind = WORLDS[world]
    acknowledged = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        cluster = Cluster(config=config, seed=seed)
        try:
            for _ in range(STEPS):
                (action,) = rng.choices(tuple(ACTIONS), tuple(ACTIONS.values()))
                step(cluster, action, rng, kind)
                cluster.check()
            cluster.heal()
            cluster.check()
            assert set(cluster.terms.isr) == {1, 2, 3}, "all are back"
            assert not cluster.waiting
            first, *others = [contents(node.partition) for node in cluster.live()]
            assert all(other == first for other in others)
        except Exception as error:
            raise AssertionError(f"seed {seed} of {world!r}: {error!r}") from error
        acknowledged += len(cluster.acknowledged)
    assert acknowledged > SEEDS * 5, "or nothing was tried at all"
