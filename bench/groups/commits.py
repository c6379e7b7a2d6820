"""Offset commits: many groups, several connections, with many requests in flight."""

from __future__ import annotations

import asyncio

from bench import probe
from bench.groups.pipe import Pipe, decode, drive, frame_of, open_all, wait_for_coordinators
from bench.subject import Cost, Subject
from bench.workloads import Figures, Scale
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest

TOPIC = "commits"
PARTITIONS_PER_COMMIT = 4
GROUPS = 64
CONNECTIONS = 8
IN_FLIGHT = 16  # per connection
VERSION = 9


def commits(subject: Subject, scale: Scale, round_: int) -> Figures:
    """Consumers without membership commit four partitions each, repeatedly."""
    if round_ < 0:
        probe.ensure_topic(subject.bootstrap, TOPIC, PARTITIONS_PER_COMMIT)
    groups = [f"commits-{number}" for number in range(GROUPS)]
    frames = [_commit(group) for group in groups]

    async def program() -> Figures:
        pipes = await open_all(subject.bootstrap, CONNECTIONS)
        await wait_for_coordinators(pipes[0], groups)
        each = scale.commits // CONNECTIONS
        try:
            with Cost(subject) as cost:
                await asyncio.gather(
                    *(_keep_busy(pipe, frames[at::CONNECTIONS], each) for at, pipe in enumerate(pipes))
                )
        finally:
            for pipe in pipes:
                pipe.close()
        done = each * CONNECTIONS
        return {
            "us_per_commit": 1e6 * cost.wall_s / done,
            "cpu_us_per_commit": 1e6 * cost.cpu_s / done,
            "commits_per_s": done / cost.wall_s,
        }

    return drive(program)


def _commit(group: str) -> bytes:
    topic = OffsetCommitRequest.Topic
    partitions = [
        topic.Partition(partition_index=index, committed_offset=1_000_000 + index, committed_metadata="")
        for index in range(PARTITIONS_PER_COMMIT)
    ]
    return frame_of(
        OffsetCommitRequest(group_id=group, member_id="", topics=[topic(name=TOPIC, partitions=partitions)]), VERSION
    )


async def _keep_busy(pipe: Pipe, frames: list[bytes], count: int) -> None:
    """Keep requests in flight: send half of the limit; when the older half is answered, send the next half."""
    half = IN_FLIGHT // 2
    older: list[asyncio.Future[memoryview]] = []
    for start in range(0, count, half):
        newer = [pipe.send(frames[at % len(frames)]) for at in range(start, min(start + half, count))]
        for answer in older:
            await answer
        older = newer
    for answer in older:
        found = decode(OffsetCommitRequest.key, VERSION, await answer)
        assert not any(partition.error_code for topic in found.topics for partition in topic.partitions), found
