"""Members of a classic group, eager or cooperative, each on a connection of its own and all in one program."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.groups.pipe import Pipe
from ottla.wire.compile import encoder
from ottla.wire.journal.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.groups.leave_group import LeaveGroupRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest

JOIN, SYNC, HEARTBEAT, LEAVE = 9, 5, 4, 5
BLOB = 1
MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION = 79, 27, 22
TIMEOUT_MS = 45_000
PAUSE_S = 0.002
BEATS_MAX = 10_000


class Member:
    """One consumer: its ids and the partitions that it owns."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self.id = ""
        self.generation = -1
        self.owned: list[int] = []


class ClassicCrowd:
    """A classic group. Its assignment is settled when a generation has all members and no partition must be revoked."""

    def __init__(self, group: str, topic: str, partitions: int, *, is_cooperative: bool) -> None:
        self.group = group
        self.topic = topic
        self.partitions = partitions
        self.is_cooperative = is_cooperative
        self.protocol = "cooperative-sticky" if is_cooperative else "range"
        self.members: list[Member] = []
        self.settled: int | None = None  # the generation whose assignment stays
        self.dealt: dict[str, list[int]] = {}

    async def join(self, pipes: list[Pipe]) -> None:
        coming = [Member(pipe) for pipe in pipes]
        staying, self.members = self.members, [*self.members, *coming]
        self.settled = None
        await asyncio.gather(
            *(self._settle(member, must_join=True) for member in coming),
            *(self._settle(member, must_join=False) for member in staying),
        )

    async def leave(self) -> Pipe:
        leaver = self.members.pop()
        self.settled = None
        identity = LeaveGroupRequest.MemberIdentity(member_id=leaver.id)
        answer = await leaver.pipe.ask(LeaveGroupRequest(group_id=self.group, members=[identity]), LEAVE)
        assert answer.error_code == 0, answer
        await asyncio.gather(*(self._settle(member, must_join=False) for member in self.members))
        return leaver.pipe

    async def _settle(self, member: Member, *, must_join: bool) -> None:
        """Take part in rebalances until this member has its final assignment."""
        while True:
            if not must_join:
                await self._until_told(member)
            must_join = await self._take_part(member)
            if member.generation == self.settled:
                return

    async def _until_told(self, member: Member) -> None:
        """Send heartbeats until the broker reports a rebalance."""
        beat = HeartbeatRequest(group_id=self.group, generation_id=member.generation, member_id=member.id)
        for _ in range(BEATS_MAX):
            answer = await member.pipe.ask(beat, HEARTBEAT)
            if answer.error_code == REBALANCE_IN_PROGRESS:
                return
            assert answer.error_code == 0, answer
            await asyncio.sleep(PAUSE_S)
        raise TimeoutError("nobody tells of a rebalance")

    async def _take_part(self, member: Member) -> bool:
        """Join and sync; True if the member has to join again at once."""
        joined = await self._join(member)
        member.id, member.generation = joined.member_id, joined.generation_id
        if joined.leader == member.id:
            self.dealt = self._deal([each.member_id for each in joined.members], member.generation)
        assignment = SyncGroupRequest.Assignment
        sync = SyncGroupRequest(
            group_id=self.group,
            generation_id=member.generation,
            member_id=member.id,
            protocol_type="consumer",
            protocol_name=self.protocol,
            assignments=[assignment(member_id=to, assignment=self._assigned(each)) for to, each in self.dealt.items()]
            if joined.leader == member.id
            else [],
        )
        synced = await member.pipe.ask(sync, SYNC)
        if synced.error_code in (REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION):
            return True
        assert synced.error_code == 0, synced
        had, member.owned = member.owned, self.dealt[member.id]
        return self.is_cooperative and not set(had) <= set(member.owned)

    async def _join(self, member: Member) -> Any:
        while True:
            request = JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=TIMEOUT_MS,
                rebalance_timeout_ms=TIMEOUT_MS,
                member_id=member.id,
                protocol_type="consumer",
                protocols=[JoinGroupRequest.Protocol(name=self.protocol, metadata=self._subscription(member))],
            )
            answer = await member.pipe.ask(request, JOIN)
            if answer.error_code == 0:
                return answer
            assert answer.error_code in (MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS), answer
            member.id = answer.member_id or member.id

    def _deal(self, ids: list[str], generation: int) -> dict[str, list[int]]:
        """Assign partitions: members keep as many of theirs as they may; a partition that is revoked from a member is
        not assigned in this generation.
        """
        owned = {member.id: member.owned if self.is_cooperative else [] for member in self.members}
        floor, more = divmod(self.partitions, len(ids))
        dealt: dict[str, list[int]] = {}
        for each in ids:
            limit = floor + 1 if len(owned[each]) > floor and more > 0 else floor
            more -= limit > floor
            dealt[each] = owned[each][:limit]
        taken = {partition for each in ids for partition in owned[each]}
        free = [partition for partition in range(self.partitions) if partition not in taken]
        for each in ids:
            while free and len(dealt[each]) < floor:
                dealt[each].append(free.pop())
        for each in ids:
            if free and more > 0 and len(dealt[each]) == floor:
                dealt[each].append(free.pop())
                more -= 1
        if len(ids) == len(self.members) and sum(map(len, dealt.values())) == self.partitions:
            self.settled = generation
        return dealt

    def _subscription(self, member: Member) -> bytes:
        own = ConsumerProtocolSubscription.TopicPartition(topic=self.topic, partitions=member.owned)
        owned = [own] if self.is_cooperative and member.owned else []
        return _blob(ConsumerProtocolSubscription(topics=[self.topic], owned_partitions=owned))

    def _assigned(self, partitions: list[int]) -> bytes:
        part = ConsumerProtocolAssignment.TopicPartition(topic=self.topic, partitions=partitions)
        return _blob(ConsumerProtocolAssignment(assigned_partitions=[part]))


def _blob(message: Any) -> bytes:
    out = bytearray(BLOB.to_bytes(2, "big"))
    encoder(type(message), BLOB)(message, out, [])
    return bytes(out)
