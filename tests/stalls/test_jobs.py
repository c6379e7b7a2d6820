"""Every periodic job on a node with very many opened partitions: no callback takes longer than its budget.

A job that is new fails here until it has a case: what makes it do the most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import pytest
from tests.server.talk import create, eventually
from tests.stalls.measuring.measure import BUDGET_MS, Callback, MeasuredNode, best_of

from ottla.cluster.snapshot import snapshot
from ottla.log.producers.producer import ProducerEntry
from ottla.model import limits
from ottla.records.build import build_batch
from ottla.server.loop.periodic_jobs import Job, PeriodicJobs

PARTITIONS = 3_000  # several times what one turn may look at
SEGMENTS = 500


class Kept(NamedTuple):
    """A node, and its periodic jobs by name."""

    node: MeasuredNode
    jobs: dict[str, Job]

    def do(self, name: str) -> None:
        """The job, once, to its end."""

        async def run() -> None:
            waiting = self.jobs[name]()
            if waiting is not None:
                await waiting

        asyncio.run_coroutine_threadsafe(run(), self.node.loop).result(120)


def nothing(_: Kept) -> None:
    """What there is of partitions is enough."""


def all_unflushed(kept: Kept) -> None:
    for partition in kept.node.node.partitions.opened():
        kept.node.node.partitions.flushed_by_time[partition] = None


def cut(kept: Kept) -> None:
    kept.node.loop.call_later(0.2, kept.node.node.storage.upkeep._too_high.set)  # the job waits for it by then


def all_producers_idle(kept: Kept) -> None:
    """As many as are remembered, in some partitions; fewer in others."""
    for number, partition in enumerate(islice(kept.node.node.partitions.opened(), 50)):
        count = limits.PRODUCERS_PER_PARTITION_MAX // (2 if number < 2 else 50)
        partition.log.producers._states.update({id: ProducerEntry(id, 0) for id in range(count)})


def all_segments_old(kept: Kept) -> None:
    """Of one log; they were rolled by time."""
    now_ms = kept.node.node.runtime.now_ms()
    partition = next(iter(kept.node.node.partitions.opened()))
    for _ in range(SEGMENTS):
        partition.append(bytearray(build_batch([(None, b"")], timestamp=1)), now_ms=now_ms, acks=1)
        partition.log.roll(now_ms)
    assert len(partition.log.segments) > SEGMENTS


def snapshot_due(kept: Kept) -> None:
    metadata = kept.node.node.metadata
    kept.node.node.member.snapshots._next_ms = 0
    assert sum(1 for _ in snapshot(metadata.state)) > PARTITIONS


WORST: dict[str, Callable[[Kept], None]] = {
    "spark readers": nothing,
    "connections": nothing,
    "opening": nothing,
    "removing": nothing,
    "flush": all_unflushed,
    "retention": all_segments_old,
    "lower checkpoints": cut,
    "checkpoints": nothing,
    "certificates": nothing,
    "tenants": nothing,
    "tenants of other brokers": nothing,
    "high watermarks": nothing,
    "failed logins": nothing,  # a few totals
    "metadata": snapshot_due,
    "minutes": all_producers_idle,
    "producers": all_producers_idle,
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    jobs: dict[str, Job] = {}
    plain = PeriodicJobs.every

    def every(self: PeriodicJobs, name: str, interval_ms: float, job: Job) -> None:
        jobs[name] = job
        plain(self, name, interval_ms, job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PeriodicJobs, "every", every)
        patch.setattr("ottla.server.storage.upkeep.OPENING_MS", 0)
        with MeasuredNode(tmp_path_factory.mktemp("node")) as node:
            with node.connect() as connection:
                create(connection, "t", PARTITIONS, **{"retention.ms": 1})
            partitions: Any = node.node.partitions
            eventually(lambda: not partitions.unopened, "all are opened")
            yield Kept(node, jobs)


def test_every_job_has_a_case(kept: Kept) -> None:
    assert set(kept.jobs) == set(WORST)


@pytest.mark.parametrize("name", WORST)
def test_a_job_holds_up_nobody(kept: Kept, name: str) -> None:
    def attempt() -> Callback:
        kept.node.call(lambda: WORST[name](kept))
        return kept.node.cost(lambda: kept.do(name))

    worst = best_of(attempt)
    assert worst.cpu_ms <= BUDGET_MS, worst
