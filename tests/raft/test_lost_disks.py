"""Fixed voters that lose their disks and come back empty, at most a minority at a time: what was committed stays."""

from __future__ import annotations

from random import Random

import pytest
from tests.raft.stored import StoredJournal
from tests.raft.world import World, in_memory

SEEDS = {3: 60, 5: 25}
SEEDS_ON_DISKS = 8


def storm(seed: int, size: int, *, on_disks: bool = False, forgetful_only: bool = True, trusted: bool = False) -> World:
    """Crashes, cuts, delays, lost disks. `forgetful_only`: those that are new count as able to vote, so that disks are
    lost during the very first election, too. `trusted`: the mistake that all this is about."""
    ids = list(range(1, size + 1))
    journals = StoredJournal if on_disks else in_memory
    world = World(seed, ids, make_journal=journals, in_doubt=not trusted)
    fate = Random(seed)
    majority = size // 2 + 1
    for number in range(80):
        world.run(fate.randrange(1, 900))
        for _ in range(fate.randrange(0, 4)):
            world.append(b"%d" % number)
        happens = fate.random()
        node_id = fate.choice(ids)
        if happens < 0.2:
            if node_id in world.nodes and len(world.nodes) > 1:
                world.crash(node_id, tell=fate.random() < 0.7)
        elif happens < 0.45:
            if node_id not in world.nodes:
                world.start(node_id)
        elif happens < 0.6:
            unsure = world.in_doubt & world.amnesiacs if forgetful_only else world.in_doubt
            if len((unsure if not trusted else set()) | {node_id}) <= size - majority:
                if node_id in world.nodes:
                    world.crash(node_id)
                world.lose_disk(node_id, in_doubt=not trusted)
                if fate.random() < 0.8:
                    world.start(node_id)
        elif happens < 0.75:
            for other in fate.sample(ids, fate.randrange(1, size)):
                world.faults.cut |= {(node_id, other), (other, node_id)}
        elif happens < 0.85:
            world.faults.cut.clear()
        elif happens < 0.9:
            world.faults.lost, world.faults.repeated = fate.random() * 0.2, fate.random() * 0.3
            world.faults.delay_ms_max = fate.randrange(1, 400)
        elif happens < 0.95:
            world.faults.lost = world.faults.repeated = 0.0
            world.faults.delay_ms_max = 5
        elif node_id in world.nodes:
            node = world.nodes[node_id]
            world.journals[node_id].take_snapshot(node.high_watermark, node.history.controls_at(node.high_watermark))
    return world


@pytest.mark.parametrize("size", [3, 5])
def test_storms(size: int) -> None:
    for seed in range(SEEDS[size]):
        world = storm(seed, size, forgetful_only=False)
        world.settle()
        assert not world.in_doubt, f"seed {seed}: doubt never ends"
