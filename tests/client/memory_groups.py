"""The coordinator of one group in memory, for members of both protocols: who is in it, and who may read what.

It is as strict as Kafka's about generations and epochs, and simpler in all else: members of the classic protocol are
forgotten only in a rebalance, or when a test says so.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse

E = ErrorCode
REBALANCE_S = 5.0  # how long a rebalance waits for members that do not join again
SESSION_S = 45.0  # how long a member may be silent
Place = tuple[bytes, int]  # topic id and partition


@dataclass
class ClassicMember:
    """A member of a classic group: its subscriptions by assignor, and whether it has joined the next generation."""

    protocols: dict[str, bytes]
    has_joined: bool = False


class ClassicGroup:
    """Joining waits for all members, syncing for the leader's assignment."""

    def __init__(self) -> None:
        self.members: dict[str, ClassicMember] = {}
        self.generation = 0
        self._is_rebalancing = False
        self._is_over = asyncio.Event()  # of the rebalance under way
        self._assigned: dict[str, bytes] | None = None
        self._is_assigned = asyncio.Event()
        self._made = 0

    def check(self, member_id: str, generation: int) -> ErrorCode:
        if member_id not in self.members:
            return E.UNKNOWN_MEMBER_ID
        return E.NONE if generation == self.generation else E.ILLEGAL_GENERATION

    def forget(self, member_id: str) -> None:
        """The member has left, or its session has ended."""
        if self.members.pop(member_id, None) is not None:
            self.rebalance()

    def rebalance(self) -> None:
        if not self._is_rebalancing:
            self._is_rebalancing, self._is_over, self._assigned = True, asyncio.Event(), None
            self._is_assigned.set()  # who waits for the old assignment has to join again
            for member in self.members.values():
                member.has_joined = False
            asyncio.get_running_loop().call_later(REBALANCE_S, self._end, self._is_over)
        self._end_if_complete()

    def _end_if_complete(self) -> None:
        if all(member.has_joined for member in self.members.values()):
            self._end(self._is_over)

    def _end(self, over: asyncio.Event) -> None:
        if over is self._is_over and not over.is_set():
            self.members = {name: each for name, each in self.members.items() if each.has_joined}
            self.generation += 1
            self._is_rebalancing, self._is_assigned = False, asyncio.Event()
            over.set()

    async def join(self, request: JoinGroupRequest) -> JoinGroupResponse:
        if not request.member_id:
            self._made += 1
            return self._refused(E.MEMBER_ID_REQUIRED, f"member-{self._made}")
        protocols = {each.name: bytes(each.metadata) for each in request.protocols}
        if request.member_id not in self.members and not request.member_id.startswith("member-"):
            return self._refused(E.UNKNOWN_MEMBER_ID, request.member_id)
        self.rebalance()
        self.members[request.member_id] = ClassicMember(protocols, has_joined=True)
        over = self._is_over
        self._end_if_complete()
        await over.wait()
        if request.member_id not in self.members or over is not self._is_over:
            return self._refused(E.UNKNOWN_MEMBER_ID, request.member_id)
        common = [name for name in protocols if all(name in each.protocols for each in self.members.values())]
        leader = min(self.members)
        told = [
            JoinGroupResponse.Member(member_id=name, metadata=each.protocols[common[0]])
            for name, each in self.members.items()
        ]
        return JoinGroupResponse(
            error_code=0,
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=common[0],
            leader=leader,
            member_id=request.member_id,
            members=told if request.member_id == leader else [],
        )

    def _refused(self, code: ErrorCode, member_id: str) -> JoinGroupResponse:
        return JoinGroupResponse(error_code=int(code), leader="", member_id=member_id, members=[])

    async def sync(self, request: SyncGroupRequest) -> SyncGroupResponse:
        code = self.heartbeat(request)
        if code:
            return SyncGroupResponse(error_code=int(code), assignment=b"")
        if request.assignments:
            self._assigned = {each.member_id: bytes(each.assignment) for each in request.assignments}
            self._is_assigned.set()
        await self._is_assigned.wait()
        code = self.heartbeat(request)
        if code or self._assigned is None:
            return SyncGroupResponse(error_code=int(code or E.REBALANCE_IN_PROGRESS), assignment=b"")
        return SyncGroupResponse(error_code=0, assignment=self._assigned.get(request.member_id, b""))

    def heartbeat(self, request: HeartbeatRequest | SyncGroupRequest) -> ErrorCode:
        code = self.check(request.member_id, request.generation_id)
        return code or (E.REBALANCE_IN_PROGRESS if self._is_rebalancing else E.NONE)


@dataclass
class ModernMember:
    """A member of a KIP-848 group: its epoch, what it owns, and what it was told to own."""

    epoch: int
    heard_s: float
    owned: set[Place] = field(default_factory=set)
    told: set[Place] | None = None


class ModernGroup:
    """The coordinator assigns; a partition is given to a member when no other owns it, or was told to."""

    def __init__(self) -> None:
        self.members: dict[str, ModernMember] = {}
        self.epoch = 0

    def check(self, member_id: str, epoch: int) -> ErrorCode:
        member = self.members.get(member_id)
        if member is None:
            return E.UNKNOWN_MEMBER_ID
        return E.NONE if epoch == member.epoch else E.STALE_MEMBER_EPOCH

    def forget(self, member_id: str) -> None:
        if self.members.pop(member_id, None) is not None:
            self.epoch += 1

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, places: list[Place]) -> ConsumerGroupHeartbeatResponse:
        name, epoch, now_s = request.member_id, request.member_epoch, asyncio.get_running_loop().time()
        for silent in [each for each, member in self.members.items() if now_s - member.heard_s > SESSION_S]:
            self.forget(silent)
        if epoch < 0:
            self.forget(name)
            return self._answer(E.NONE, name, epoch)
        member = self.members.get(name)
        if epoch == 0 and member is None:
            self.epoch += 1
            member = self.members[name] = ModernMember(0, now_s)
        if member is None:
            return self._answer(E.UNKNOWN_MEMBER_ID, name, 0)
        if epoch not in (0, member.epoch):
            return self._answer(E.FENCED_MEMBER_EPOCH, name, 0)
        member.heard_s = now_s
        if request.topic_partitions is not None:
            member.owned = {(each.topic_id, index) for each in request.topic_partitions for index in each.partitions}
            member.told = None if member.told != member.owned else member.told
        target = {place for at, place in enumerate(places) if sorted(self.members)[at % len(self.members)] == name}
        taken = {
            place for each in self.members.values() if each is not member for place in each.owned | (each.told or set())
        }
        now = target - taken
        if member.owned <= target:
            member.epoch = self.epoch
        if now == member.told and request.topic_partitions is None:
            return self._answer(E.NONE, name, member.epoch)
        member.told = now
        return self._answer(E.NONE, name, member.epoch, now)

    def _answer(
        self, code: ErrorCode, name: str, epoch: int, places: set[Place] | None = None
    ) -> ConsumerGroupHeartbeatResponse:
        kind = ConsumerGroupHeartbeatResponse.Assignment
        told = None
        if places is not None:
            topics = sorted({topic_id for topic_id, _ in places})
            told = kind(
                topic_partitions=[
                    TopicPartitions(topic_id=each, partitions=sorted(at for topic_id, at in places if topic_id == each))
                    for each in topics
                ]
            )
        return ConsumerGroupHeartbeatResponse(
            error_code=int(code), member_id=name, member_epoch=epoch, heartbeat_interval_ms=1_000, assignment=told
        )


class MemoryGroup:
    """One group of either protocol, as the brokers in memory ask it."""

    def __init__(self, protocol: str) -> None:
        self.state: ClassicGroup | ModernGroup = ClassicGroup() if protocol == "classic" else ModernGroup()

    def may_commit(self, member_id: str, generation: int) -> ErrorCode:
        return self.state.check(member_id, generation)

    async def answer(self, request: Any, refused: ErrorCode, places: dict[TopicPartition, Place]) -> Any:
        """The answer to a request of a member; `refused` is an error that it gets instead."""
        state = self.state
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            assert isinstance(state, ModernGroup)
            if refused:
                return ConsumerGroupHeartbeatResponse(
                    error_code=int(refused), member_epoch=0, heartbeat_interval_ms=1_000
                )
            return state.heartbeat(request, [places[each] for each in sorted(places)])
        assert isinstance(state, ClassicGroup)
        if isinstance(request, JoinGroupRequest):
            if refused:
                return JoinGroupResponse(error_code=int(refused), leader="", member_id=request.member_id, members=[])
            return await state.join(request)
        if isinstance(request, SyncGroupRequest):
            return SyncGroupResponse(error_code=int(refused), assignment=b"") if refused else await state.sync(request)
        if isinstance(request, HeartbeatRequest):
            return HeartbeatResponse(error_code=int(refused or state.heartbeat(request)))
        assert isinstance(request, LeaveGroupRequest)
        for each in request.members:
            if not refused:
                state.forget(each.member_id)
        return LeaveGroupResponse(error_code=int(refused), members=[])
