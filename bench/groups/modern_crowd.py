"""Members of a consumer group (KIP-848), each on a connection of its own and all in one program.

Members send heartbeats in rounds: each member once, at the same time, until the assignment is complete. So each broker
gets as many heartbeats as it needs for that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import count

from bench.groups.pipe import Pipe
from ottla.wire.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

HEARTBEAT = 1
TIMEOUT_MS = 45_000
LEAVING, JOINING = -1, 0
ROUNDS_MAX = 10_000
_numbers = count(1)


class Member:
    """One consumer: its id and the partitions that it owns."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.id = f"member-{next(_numbers)}"
        self.epoch = JOINING
        self.owned: list[int] = []
        self.must_tell = True  # the broker does not know yet which partitions the member owns


class ModernCrowd:
    """A consumer group. Its assignment is complete when all members have the same epoch, and all partitions are owned
    and evenly shared.
    """

    def __init__(self, group: str, topic: str, topic_id: bytes, partitions: int) -> None:
        self.group = group
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions
        self.members: list[Member] = []

    async def join(self, pipes: list[Pipe]) -> None:
        coming = [Member(pipe) for pipe in pipes]
        self.members.extend(coming)
        await self._beat_all(coming)
        await self._settle()

    async def leave(self) -> Pipe:
        leaver = self.members.pop()
        leaver.epoch = LEAVING
        await self._beat_all([leaver])
        await self._settle()
        return leaver.pipe

    async def _settle(self) -> None:
        for _ in range(ROUNDS_MAX):
            if self._stands():
                return
            await self._beat_all(self.members)
        raise TimeoutError("the assignment does not come to rest")

    def _stands(self) -> bool:
        least = self.partitions // len(self.members)
        return (
            len({member.epoch for member in self.members}) == 1
            and sum(len(member.owned) for member in self.members) == self.partitions
            and all(least <= len(member.owned) <= least + 1 and not member.must_tell for member in self.members)
        )

    async def _beat_all(self, members: Iterable[Member]) -> None:
        await asyncio.gather(*(self._beat(member) for member in members))

    async def _beat(self, member: Member) -> None:
        own = ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=self.topic_id, partitions=member.owned)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=member.id, member_epoch=member.epoch, rebalance_timeout_ms=-1
        )
        if member.epoch == JOINING:
            request.rebalance_timeout_ms = TIMEOUT_MS
            request.subscribed_topic_names = [self.topic]
            request.topic_partitions = []
        elif member.must_tell:
            request.topic_partitions = [own] if member.owned else []
        answer: ConsumerGroupHeartbeatResponse = await member.pipe.ask(request, HEARTBEAT)
        assert answer.error_code == 0, answer
        member.epoch = answer.member_epoch
        member.must_tell = answer.assignment is not None
        if answer.assignment is not None:
            member.owned = [each for part in answer.assignment.topic_partitions for each in part.partitions]
