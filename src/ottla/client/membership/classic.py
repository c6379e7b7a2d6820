"""The classic group protocol: join, let the leader assign, sync, send heartbeats (KIP-62, 345, 394, 429).

    out --join--> joining --answer--> (leader: assign) --sync--> in --REBALANCE_IN_PROGRESS--> joining ...
    in or joining --UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, too long without poll--> lost --> joining

Rules:
- Eager (any assignor that is not cooperative): everything is revoked before joining. Cooperative: a member keeps
  reading while it joins, revokes what the new assignment takes from it, and if that was anything joins once more.
- JoinGroup and SyncGroup wait for the other members, so they run in a task; `advance` puts the result into effect.
- No heartbeats while joining: the coordinator answers a connection in order, and the JoinGroup keeps the member alive.
- After `max_poll_interval_ms` without a poll the member leaves: it may be stuck, and others can read its partitions.
"""

import asyncio
import logging
from collections.abc import Callable

from ottla.client.assign import ASSIGNORS, COOPERATIVE
from ottla.client.assign.members import NO_GENERATION
from ottla.client.cluster import Cluster
from ottla.client.consumer.group_metadata import GroupMetadata
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.consumer.ownership import Ownership
from ottla.client.coordinator import Coordinator
from ottla.client.errors import ClientError, LastingError, check, error_code
from ottla.client.membership import blobs
from ottla.client.membership.subscription import SubscribedTopics, partition_counts
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.groups.leave_group import LeaveGroupRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "consumer"
_JOIN_GRACE_MS = 5_000  # network delay, on top of the time that the other members have for joining
_LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


class ClassicMembership:
    """One member of one classic group."""

    def __init__(
        self,
        cluster: Cluster,
        coordinator: Coordinator,
        options: ConsumerOptions,
        ownership: Ownership,
        wake: Callable[[object], None],
    ) -> None:
        assert options.group_id is not None
        self.metadata = GroupMetadata(options.group_id, group_instance_id=options.group_instance_id)
        self._cluster = cluster
        self._coordinator = coordinator
        self._options = options
        self._ownership = ownership
        self._wake = wake
        self._cooperative = all(name in COOPERATIVE for name in options.assignors)
        self._wanted = SubscribedTopics(())
        self._rejoin_why: str | None = "joining"  # why to join again; None: nothing to do
        self._lost = False
        self._joining: asyncio.Task[list[TopicPartition] | None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._polled_at_s = 0.0
        # For the sticky assignors: the last assignment, and its generation.
        self._previous: tuple[list[TopicPartition], int] = ([], NO_GENERATION)
        self._counts: dict[str, int] | None = None  # as the leader saw them when it assigned; None for other members
        self._group_topics: tuple[str, ...] = ()

    # --- called by the consumer ---------------------------------------------------------------------------------

    def subscribe(self, wanted: SubscribedTopics) -> None:
        """Change the subscription and rejoin, so that the group knows it."""
        self._wanted = wanted
        self._rejoin_why = "the subscription changed"

    @property
    def may_commit(self) -> bool:
        """Whether commits are accepted: between generations the coordinator refuses them."""
        return self._joining is None and self.metadata.generation_id != NO_GENERATION

    def is_due(self) -> bool:
        """Return whether there is anything for `advance` to do. Every poll calls it, which shows that the caller is
        alive.
        """
        self._polled_at_s = asyncio.get_running_loop().time()
        joining = self._joining is not None
        joined = self._joining is not None and self._joining.done()
        return self._failure is not None or self._lost or joined or (not joining and self._rejoin_why is not None)

    async def advance(self) -> None:
        """Put the group's decisions into effect; calls the listener."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self._rejoin_why = "joining again after a failure"
            raise failure
        if self._lost:
            self._lost = False
            self._previous = ([], NO_GENERATION)
            await self._ownership.lose()
        if self._joining is None and self._rejoin_why is not None:
            await self._start_joining()
        if self._joining is not None and self._joining.done():
            await self._finish_joining()

    def forfeit(self, member: GroupMetadata) -> None:
        """Drop the membership, because a commit showed that the group has gone on; not if this member is joining
        already.
        """
        if self._joining is None and self.metadata == member:
            self._was_lost(keep_id=self._options.group_instance_id is not None)

    async def leave(self) -> None:
        """Leave the group; only a dynamic member sends LeaveGroup, a static one is expected back."""
        await self._stop()
        if self._options.group_instance_id is None and self.metadata.member_id:
            await self._send_leave("the consumer is being closed")
        self._reset()

    # --- joining ------------------------------------------------------------------------------------------------

    async def _start_joining(self) -> None:
        await self._wanted.refresh(self._cluster)
        if self._cooperative:
            wanted = frozenset(self._wanted.topics)
            await self._ownership.revoke([each for each in self._ownership.partitions if each.topic not in wanted])
        else:
            await self._ownership.revoke(self._ownership.partitions)
        reason, self._rejoin_why = self._rejoin_why, None
        self._joining = asyncio.create_task(self._join(self._protocols(), reason))
        self._joining.add_done_callback(self._wake)

    async def _finish_joining(self) -> None:
        assert self._joining is not None
        task, self._joining = self._joining, None
        try:
            assigned = task.result()
        except (ApiError, ClientError):
            self._rejoin_why = "joining again after a failure"
            raise
        if assigned is None:
            return  # joining has to start again, in the next round
        owned = self._ownership.partitions
        self._previous = (assigned, self.metadata.generation_id)
        kept = frozenset(assigned)
        revoked = [each for each in owned if each not in kept]
        self._keep_beating()
        try:
            if revoked:
                self._rejoin_why = "some partitions were revoked"
                await self._ownership.revoke(revoked)
        finally:  # even if the listener raises
            await self._ownership.give(assigned)
            self._wake(None)

    def _protocols(self) -> list[JoinGroupRequest.Protocol]:
        previous, generation = self._previous
        owned = self._ownership.partitions if self._cooperative else []
        return [
            JoinGroupRequest.Protocol(
                name=name,
                metadata=blobs.write_subscription(
                    self._wanted.topics,
                    owned,
                    generation,
                    user_data=blobs.user_data_of(name, previous, generation),
                    rack_id=self._options.client_rack,
                ),
            )
            for name in self._options.assignors
        ]

    async def _join(
        self, protocols: list[JoinGroupRequest.Protocol], reason: str | None
    ) -> list[TopicPartition] | None:
        """Join and sync; return the assignment, or None if it has to start again."""
        answer = await self._send_join(protocols, reason)
        code = error_code(answer.error_code)
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.metadata = self.metadata._replace(member_id=answer.member_id)
            answer = await self._send_join(protocols, reason)
            code = error_code(answer.error_code)
        if self._is_over(code):
            return None
        check(code)
        self.metadata = self.metadata._replace(generation_id=answer.generation_id, member_id=answer.member_id)
        return await self._sync(answer)

    async def _send_join(self, protocols: list[JoinGroupRequest.Protocol], reason: str | None) -> JoinGroupResponse:
        options = self._options
        request = JoinGroupRequest(
            group_id=self.metadata.group_id,
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.max_poll_interval_ms,
            member_id=self.metadata.member_id,
            group_instance_id=options.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=reason,
        )
        return await self._coordinator.call(
            request,
            error_of=lambda answer: answer.error_code,
            timeout_ms=options.max_poll_interval_ms + _JOIN_GRACE_MS,
        )

    async def _sync(self, joined: JoinGroupResponse) -> list[TopicPartition] | None:
        protocol = joined.protocol_name or ""
        assignments: list[SyncGroupRequest.Assignment] = []
        self._counts = None
        if joined.leader == joined.member_id:
            assignments = await self._assign(protocol, joined)
        request = SyncGroupRequest(
            group_id=self.metadata.group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=self._options.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=protocol,
            assignments=assignments,
        )
        answer = await self._coordinator.call(
            request,
            error_of=lambda answer: answer.error_code,
            timeout_ms=self._options.max_poll_interval_ms + _JOIN_GRACE_MS,
        )
        code = error_code(answer.error_code)
        if self._is_over(code):
            return None
        check(code)
        return blobs.read_assignment(answer.assignment)

    async def _assign(self, protocol: str, joined: JoinGroupResponse) -> list[SyncGroupRequest.Assignment]:
        """Assign partitions to all members, as the group's leader."""
        members = {
            each.member_id: blobs.read_member(protocol, each.metadata, each.group_instance_id)
            for each in joined.members
        }
        self._group_topics = tuple(sorted({topic for member in members.values() for topic in member.topics}))
        self._counts = await partition_counts(self._cluster, self._group_topics)
        if joined.skip_assignment:  # a static leader came back; the group keeps its assignment (KIP-814)
            return []
        result = ASSIGNORS[protocol](members, self._counts)
        return [
            SyncGroupRequest.Assignment(member_id=member_id, assignment=blobs.write_assignment(partitions))
            for member_id, partitions in result.items()
        ]

    # --- staying ------------------------------------------------------------------------------------------------

    def _keep_beating(self) -> None:
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        watched_at_s = loop.time()
        while True:
            await asyncio.sleep(self._options.heartbeat_interval_ms / 1000)
            if self._joining is not None or self._lost or self.metadata.generation_id == NO_GENERATION:
                continue
            try:
                if loop.time() - self._polled_at_s > self._options.max_poll_interval_ms / 1000:
                    await self._give_up_place()
                    continue
                await self._say_alive()
                if loop.time() - watched_at_s > self._watch_every_s():
                    watched_at_s = loop.time()
                    await self._watch_topics()
            except (ClientError, ApiError) as error:
                if isinstance(error, LastingError) or (isinstance(error, ApiError) and not error.code.retriable):
                    self._failure = error
                    self._wake(None)
                log.info("group %s: no heartbeat: %s", self.metadata.group_id, error)

    async def _say_alive(self) -> None:
        member = self.metadata
        request = HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.generation_id,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
        )
        answer = await self._coordinator.call(request, error_of=lambda answer: answer.error_code)
        code = error_code(answer.error_code)
        if self.metadata != member:
            return  # the answer belongs to a generation that is over
        if not self._is_over(code):
            check(code)

    def _watch_every_s(self) -> float:
        options = self._cluster.options
        missing = self._counts is not None and len(self._counts) < len(self._group_topics)
        return (options.retry_backoff_max_ms if missing else options.metadata_max_age_ms) / 1000

    async def _watch_topics(self) -> None:
        """Rejoin if topics have changed: the leader checks the partition counts, each member the topics of its own
        pattern.
        """
        if await self._wanted.refresh(self._cluster):
            self._again("the pattern matches other topics")
        elif self._counts is not None and await partition_counts(self._cluster, self._group_topics) != self._counts:
            self._again("topics have other partitions")

    async def _give_up_place(self) -> None:
        log.warning("group %s: no poll for max_poll_interval_ms, leaving", self.metadata.group_id)
        if self._options.group_instance_id is None:
            await self._send_leave("no poll within max_poll_interval_ms")
        self._was_lost(keep_id=self._options.group_instance_id is not None)

    # --- changes of state ---------------------------------------------------------------------------------------

    def _is_over(self, code: ErrorCode) -> bool:
        """Return whether an error code says that this generation, or the membership, has ended; if so, prepare to
        rejoin.
        """
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._again("the group rebalances")
        elif code in _LOST:
            self._was_lost(keep_id=code == ErrorCode.ILLEGAL_GENERATION)
        else:
            return False
        return True

    def _again(self, why: str) -> None:
        if self._rejoin_why is None:
            self._rejoin_why = why
        self._wake(None)

    def _was_lost(self, *, keep_id: bool = False) -> None:
        self._reset(keep_id=keep_id)
        self._lost = True
        self._again("the group went on without this member")

    def _reset(self, *, keep_id: bool = False) -> None:
        member_id = self.metadata.member_id if keep_id else ""
        self.metadata = self.metadata._replace(generation_id=NO_GENERATION, member_id=member_id)

    async def _send_leave(self, reason: str) -> None:
        member = self.metadata
        identity = LeaveGroupRequest.MemberIdentity(member_id=member.member_id, reason=reason)
        request = LeaveGroupRequest(group_id=member.group_id, member_id=member.member_id, members=[identity])
        try:
            await self._coordinator.call(request, error_of=lambda answer: answer.error_code)
        except (ClientError, ApiError) as error:
            # The coordinator removes the member when its session times out.
            log.info("group %s: could not leave: %s", member.group_id, error)

    async def _stop(self) -> None:
        tasks = [task for task in (self._joining, self._beating) if task is not None]
        joining = self._joining is not None and not self._joining.done()
        self._joining = self._beating = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if joining:
            self._coordinator.close()  # the next request must not wait behind the cancelled JoinGroup
