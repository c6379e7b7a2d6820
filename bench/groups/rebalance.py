"""Fifty members of one group: they join together, then one leaves and another one joins, repeatedly.

Times are measured until every member has its final assignment. Members do only what the protocol requires. A member
that waits for a rebalance sends heartbeats without pauses, not every 3 s as real consumers do, because that interval
would dominate the time; the leader computes a simple assignment. Timers are off on both brokers: no initial delay for
classic groups, no interval between two assignments for the others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Protocol

from bench import probe
from bench.groups.classic_crowd import ClassicCrowd
from bench.groups.modern_crowd import ModernCrowd
from bench.groups.pipe import Pipe, configure_group, drive, open_all, topic_id, wait_for_coordinators
from bench.subject import Cost, Subject
from bench.workloads import Figures, Scale

TOPIC = "rebalance"
PARTITIONS = 100
MEMBERS = 50
_numbers = count()


class Crowd(Protocol):
    """The members of one group."""

    async def join(self, pipes: list[Pipe]) -> None: ...
    async def leave(self) -> Pipe: ...


def classic(subject: Subject, scale: Scale, round_: int) -> Figures:
    """The eager protocol: every member revokes all partitions and joins again."""

    async def crowd(pipe: Pipe, group: str) -> Crowd:
        return ClassicCrowd(group, TOPIC, PARTITIONS, is_cooperative=False)

    return _measured(subject, scale.rebalances, crowd, is_first=round_ < 0)


def cooperative(subject: Subject, scale: Scale, round_: int) -> Figures:
    """Cooperative-sticky: a member that must revoke partitions joins a second time."""

    async def crowd(pipe: Pipe, group: str) -> Crowd:
        return ClassicCrowd(group, TOPIC, PARTITIONS, is_cooperative=True)

    return _measured(subject, scale.rebalances, crowd, is_first=round_ < 0)


def modern(subject: Subject, scale: Scale, round_: int) -> Figures:
    """KIP-848: the broker assigns partitions, and members get their assignment by heartbeats."""

    async def crowd(pipe: Pipe, group: str) -> Crowd:
        await configure_group(pipe, group, consumer_assignment_interval_ms="0")
        return ModernCrowd(group, TOPIC, await topic_id(pipe, TOPIC), PARTITIONS)

    return _measured(subject, scale.rebalances, crowd, is_first=round_ < 0)


def _measured(
    subject: Subject, changes: int, new_crowd: Callable[[Pipe, str], Awaitable[Crowd]], *, is_first: bool
) -> Figures:
    if is_first:
        probe.ensure_topic(subject.bootstrap, TOPIC, PARTITIONS)

    async def program() -> Figures:
        pipes = await open_all(subject.bootstrap, MEMBERS)
        group = f"rebalance-{next(_numbers)}"
        await wait_for_coordinators(pipes[0], [group])
        crowd = await new_crowd(pipes[0], group)
        try:
            with Cost(subject) as joining:
                await crowd.join(pipes)
            with Cost(subject) as changing:
                for _ in range(changes):
                    pipe = await crowd.leave()
                    await crowd.join([pipe])
        finally:
            for pipe in pipes:
                pipe.close()
        return {
            "join_ms": 1000 * joining.wall_s,
            "change_ms": 1000 * changing.wall_s / (2 * changes),
            "cpu_ms": 1000 * (joining.cpu_s + changing.cpu_s) / (1 + 2 * changes),
        }

    return drive(program)
