"""Fixed voters that lose their disks and come back empty, at most a minority at a time: what was committed stays."""

from __future__ import annotations

from random import Random

import pytest
from tests.raft.stored import StoredJournal
from tests.raft.world import World, in_memory

from ottla.raft import lost_disk as doubt

SEEDS = {3: 20, 5: 6}
SEEDS_ON_DISKS = 4


def storm(seed: int, size: int, *, on_disks: bool = False, at_first: bool = False) -> World:
    """Crashes, cuts, delays, lost disks. `at_first`: in the very first elections, too, when nobody could say of a new
    voter that it has lost nothing: so there may be no leader afterwards."""
    ids = list(range(1, size + 1))
    world = World(seed, ids, make_journal=StoredJournal if on_disks else in_memory, in_doubt=True)
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
            unsure = world.in_doubt & world.amnesiacs if at_first else world.in_doubt
            if len(unsure | {node_id}) <= size - majority:
                if node_id in world.nodes:
                    world.crash(node_id)
                world.lose_disk(node_id)
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
            world.faults.calm()
        elif node_id in world.nodes:
            world.take_snapshot(node_id)
    return world


def check(seed: int, size: int, *, on_disks: bool = False, at_first: bool = False) -> World:
    """A storm; and afterwards all is well again, if that can be."""
    try:
        world = storm(seed, size, on_disks=on_disks, at_first=at_first)
        if not at_first:
            world.settle()
            assert not world.in_doubt, "doubt never ends"
        assert world.committed, "nothing was ever committed"
        return world
    except AssertionError as error:
        error.add_note(f"seed {seed}")
        raise


@pytest.mark.parametrize("size", [3, 5])
def test_storms(size: int) -> None:
    lost = sum(len(check(seed, size).amnesiacs) for seed in range(SEEDS[size]))
    assert lost > SEEDS[size] // 2, "hardly anybody lost anything"


@pytest.mark.parametrize("size", [3, 5])
def test_storms_from_the_very_first_election_on(size: int) -> None:
    for seed in range(SEEDS[size]):
        check(seed, size, at_first=True)


def test_storms_on_disks_that_lose_power() -> None:
    for seed in range(SEEDS_ON_DISKS):
        check(seed, 3, on_disks=True)


def test_voters_that_trust_their_empty_disks_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same storms, without what they are there to prove."""
    monkeypatch.setattr(doubt, "may_take_part", lambda *_: True)
    monkeypatch.setattr(doubt, "may_answer", lambda *_: True)
    with pytest.raises(AssertionError, match=r"committed|two leaders"):
        test_storms_from_the_very_first_election_on(3)
