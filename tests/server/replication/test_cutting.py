"""A long cut of a follower's log: prepared in a worker, made on the loop, and not made if another leads by then."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest
from tests.log.logs import NOW_MS, append, batch, open_log
from tests.support.neighbours import ALONE

from ottla.log import cut
from ottla.log import state as log_state
from ottla.log.config import LogConfig
from ottla.model.errors import ApiError, ErrorCode
from ottla.replica.partition import Partition
from ottla.replica.terms import Terms
from ottla.server.loop.runtime import Runtime
from ottla.server.replication.cutting import cut_long, is_long_cut

US, OTHER = 1, 2


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> Partition:
    for module in (log_state, cut):
        monkeypatch.setattr(module, "MARK_INTERVAL_BYTES", 400)
    made = open_log(config=LogConfig(index_interval_bytes=100))
    for sequence in range(500):
        append(made, batch(producer=7, sequence=sequence), epoch=0 if sequence < 100 else 1)
    partition = Partition("topic", 0, made, neighbours=ALONE, node_id=US)
    partition.follow(terms(OTHER, 2))
    return partition


def terms(leader: int, epoch: int) -> Terms:
    return Terms(leader=leader, leader_epoch=epoch, partition_epoch=epoch, replicas=(US, OTHER), isr=(US, OTHER))


async def cut_at_100(partition: Partition, cuts: list[Partition]) -> None:
    runtime = Runtime(asyncio.get_running_loop(), now_ms=lambda: NOW_MS, rng=random.Random(1))
    storage: Any = SimpleNamespace(cut=cuts.append, partitions=SimpleNamespace(holds=lambda _: True))
    await cut_long(partition, 0, 100, runtime, storage)


def test_it_is_cut_where_the_leader_says(follower: Partition) -> None:
    cuts: list[Partition] = []
    assert is_long_cut(follower, 0, 100)
    asyncio.run(cut_at_100(follower, cuts))
    state = follower.log.producers.get(7)
    assert state is not None and (state.last_sequence, len(state.batches)) == (99, 5)
    assert (follower.log.next_offset, follower.cuts, cuts) == (100, 1, [follower])


@pytest.mark.parametrize("leader", [US, OTHER])
def test_nothing_is_cut_when_another_leads_by_then(follower: Partition, leader: int) -> None:
    async def elected_meanwhile() -> None:
        cutting = asyncio.ensure_future(cut_at_100(follower, []))
        await asyncio.sleep(0)
        (follower.follow(terms(leader, 3)) if leader == OTHER else follower.lead(terms(leader, 3), NOW_MS))
        await cutting

    with pytest.raises(ApiError) as refused:
        asyncio.run(elected_meanwhile())
    assert refused.value.code == ErrorCode.FENCED_LEADER_EPOCH and follower.log.next_offset == 500
