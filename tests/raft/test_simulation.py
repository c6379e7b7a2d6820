"""RaftNodes in a bad world: whatever happens, nothing that was committed is lost, and afterwards all is well again."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.raft.stored import StoredJournal
from tests.raft.world import CLUSTER, World, disk_of, endpoint, in_memory

from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterRequest

SEEDS = {3: 50, 5: 12}
SEEDS_ON_DISKS = 6
# Seeds that once failed; they are run for ever.
FAILED = Path(__file__).with_name("failed_seeds.txt")


def storm(seed: int, size: int, *, dynamic: bool, on_disks: bool = False) -> World:
    ids = list(range(1, size + 1))
    world = World(seed, ids, dynamic=dynamic, make_journal=StoredJournal if on_disks else in_memory)
    rng = world.rng
    spare = size + 1
    for number in range(60):
        world.run(rng.randrange(1, 600))
        for _ in range(rng.randrange(0, 4)):
            world.append(b"%d" % number)
        happens = rng.random()
        node_id = ids[rng.randrange(0, len(ids))]
        if happens < 0.15:
            if node_id in world.nodes and len(world.nodes) > 1:
                world.crash(node_id, tell=rng.random() < 0.7)
        elif happens < 0.4:
            if node_id not in world.nodes:
                world.start(node_id)
        elif happens < 0.5:
            other = ids[rng.randrange(0, len(ids))]
            world.faults.cut.add((node_id, other))
            if rng.random() < 0.5:
                world.faults.cut.add((other, node_id))
        elif happens < 0.6:
            world.faults.cut.clear()
        elif happens < 0.65:
            world.faults.lost = rng.random() * 0.3
            world.faults.repeated = rng.random() * 0.3
            world.faults.delay_ms_max = rng.randrange(1, 400)
        elif happens < 0.7:
            world.faults.calm()
        elif happens < 0.8 and node_id in world.nodes:
            world.take_snapshot(node_id)
        elif happens < 0.9 and dynamic:
            if spare not in world.journals:
                world.add(spare)
                ids.append(spare)
            change_voters(world, number, ids)
    return world


def change_voters(world: World, number: int, ids: list[int]) -> None:
    leader = world.leader
    if leader is None:
        return
    target = ids[world.rng.randrange(0, len(ids))]
    if target in leader.voters:
        if len(leader.voters) > 2:
            removal = RemoveRaftVoterRequest(
                cluster_id=CLUSTER, voter_id=target, voter_directory_id=leader.voters[target].directory
            )
            world.ask(leader.me.id, f"remove {number}", removal)
        return
    end = endpoint(target)
    listener = AddRaftVoterRequest.Listener(name=end.name, host=end.host, port=end.port)
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER,
        timeout_ms=1_000,
        voter_id=target,
        voter_directory_id=disk_of(target),
        listeners=[listener],
    )
    world.ask(leader.me.id, f"add {number}", request)


def check(seed: int, size: int, *, dynamic: bool, on_disks: bool = False) -> None:
    world = storm(seed, size, dynamic=dynamic, on_disks=on_disks)
    world.settle()
    assert world.committed, "nothing was ever committed"


def run(seed: int, size: int, *, dynamic: bool, on_disks: bool = False) -> None:
    """`check`, and a seed that fails is kept."""
    try:
        check(seed, size, dynamic=dynamic, on_disks=on_disks)
    except BaseException:
        with FAILED.open("a") as file:
            file.write(f"{size} {seed} {int(dynamic)} {int(on_disks)}\n")
        raise


@pytest.mark.parametrize(("size", "dynamic"), [(3, False), (5, False), (3, True), (5, True)])
def test_storms(size: int, dynamic: bool) -> None:
    for seed in range(SEEDS[size]):
        run(seed, size, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
def test_storms_on_disks_that_lose_power(dynamic: bool) -> None:
    for seed in range(SEEDS_ON_DISKS):
        run(seed, 3, dynamic=dynamic, on_disks=True)


def test_seeds_that_once_failed() -> None:
    lines = FAILED.read_text().split("\n") if FAILED.exists() else []
    for line in dict.fromkeys(line for line in lines if line):
        size, seed, dynamic, on_disks = map(int, line.split())
        check(seed, size, dynamic=bool(dynamic), on_disks=bool(on_disks))
