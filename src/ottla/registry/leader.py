"""Which of several registries writes: an election through the group protocol of the log itself.

    start --look--> (alone in the group: this one writes meanwhile) --join, sync--> member --heartbeats--> …
    member --REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, `again`--> joining, with the last verdict in force

Rules:
- The group only decides which instance *should* write. The transactional id ensures that no two ever do (see `writer`),
  so an old or provisional verdict does no harm: an instance that acts on it is fenced, and calls `again`.
- Before the first join the group is described. If no other instance is in it (or only the former member of this very
  instance), this one is provisionally the leader: it waits neither for the group's initial delay nor for the session
  of a killed process to end. If the group has elected another one, that one is the leader.
- Between generations the last verdict stays in force.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from ottla.client.cluster import Cluster
from ottla.client.coordinator import Coordinator, CoordinatorKind, call_once
from ottla.client.errors import AuthenticationError, ClientError, check, error_code
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.registry.identity import (
    PROTOCOL,
    PROTOCOL_TYPE,
    Elected,
    RegistryIdentity,
    choose,
    client_id_of,
    read_elected,
    read_identity,
    write_elected,
    write_identity,
)
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.wire.messages.groups.leave_group import LeaveGroupRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest

log = logging.getLogger(__name__)

_JOIN_GRACE_MS = 5_000  # network delay, on top of the time that the other members have for joining
_NO_GENERATION = -1
_OVER = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)
_STABLE = "Stable"


class ElectionRefused(Exception):
    """The group will never accept this member: a retry would be refused as well. The reason has been logged."""


@dataclass(frozen=True, slots=True)
class ElectionOptions:
    """The group id, and how soon a silent member is removed (brokers require at least 6 s by default)."""

    group_id: str = "schema-registry"
    session_timeout_ms: int = 6_000
    rebalance_timeout_ms: int = 60_000

    @property
    def heartbeat_interval_ms(self) -> int:
        return self.session_timeout_ms // 6


class ElectionResult(NamedTuple):
    """The leader: unknown (None), this instance, or another; `number` grows with each decision of the group."""

    number: int
    leader: RegistryIdentity | None
    is_self: bool


class RegistryElection:
    """One member of the election group. `verdict` is its last result, `changed` waits for the next one."""

    def __init__(self, cluster: Cluster, identity: RegistryIdentity, options: ElectionOptions) -> None:
        self.identity = identity
        self.verdict = ElectionResult(0, None, is_self=False)
        self._cluster = cluster
        self._options = options
        self._coordinator = Coordinator(cluster, options.group_id, CoordinatorKind.GROUP)
        self._member_id = ""
        self._generation = _NO_GENERATION
        self._rejoin = asyncio.Event()
        self._news = asyncio.Condition()
        self._refused = asyncio.Event()
        self._refusal = ""
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Leave the group, so that another takes over at once."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        self._coordinator.close()  # LeaveGroup would wait behind a JoinGroup that waits for others
        if self._member_id:
            try:
                async with asyncio.timeout(self._options.heartbeat_interval_ms / 1000):
                    await self._leave()
            except (ApiError, ClientError, TimeoutError) as error:
                log.info("could not leave group %s: %s", self._options.group_id, error)
        self._coordinator.close()

    def again(self) -> None:
        """Ask the group again, because the last verdict proved wrong."""
        self._rejoin.set()

    async def changed(self, since: int) -> ElectionResult:
        """Wait for the first verdict with a higher number."""
        async with self._news:
            await self._news.wait_for(lambda: self.verdict.number > since)
            return self.verdict

    async def refused(self) -> NoReturn:
        """Wait until the group refuses this member for good, and raise ElectionRefused."""
        await self._refused.wait()
        raise ElectionRefused(self._refusal)

    # --- the member ---------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        tries, looked = 0, False
        while True:
            try:
                if not looked:
                    await self._look()
                    looked = True
                self._rejoin.clear()
                if await self._join():
                    tries = 0
                    await self._stay()
            except Exception as error:  # the member must go on after any error, or it would never learn of a leader
                if isinstance(error, ApiError) and error.code == ErrorCode.INVALID_SESSION_TIMEOUT:
                    self._refuse()
                    return
                tries += 1
                if isinstance(error, AuthenticationError):
                    if looked:  # otherwise the store fails with the same error, and this instance ends
                        log.warning("group %s: %s", self._options.group_id, error)
                    await asyncio.sleep(limits.REGISTRY_LOGIN_PAUSE_S)
                    continue
                is_defect = not isinstance(error, ApiError | ClientError)
                log.warning("group %s: %s", self._options.group_id, error, exc_info=is_defect)
                await asyncio.sleep(self._cluster.options.backoff_ms(tries) / 1000)

    def _refuse(self) -> None:
        options = self._options
        self._refusal = (
            f"group {options.group_id}: the broker refuses a session timeout of {options.session_timeout_ms} ms; "
            "choose one (--session-timeout) within its group.min.session.timeout.ms and group.max.session.timeout.ms"
        )
        log.error("%s", self._refusal)
        self._refused.set()

    async def _decide(self, leader: RegistryIdentity | None, *, is_self: bool) -> None:
        before = self.verdict
        async with self._news:
            self.verdict = ElectionResult(before.number + 1, leader, is_self)
            self._news.notify_all()
        if (before.leader, before.is_self) != (leader, is_self):
            log.info("the leader is %s%s", leader.url if leader else "unknown", " (this instance)" if is_self else "")

    async def _look(self) -> None:
        """Find out whether the group has elected a leader already, or whether this instance is alone."""
        group_id = self._options.group_id
        answer = await call_once(
            self._cluster,
            group_id,
            CoordinatorKind.GROUP,
            DescribeGroupsRequest(groups=[group_id]),
            lambda each: each.groups[0].error_code,
        )
        found = answer.groups[0]
        if error_code(found.error_code) != ErrorCode.GROUP_ID_NOT_FOUND:
            check(found.error_code)
        if found.members and found.protocol_type not in ("", PROTOCOL_TYPE):
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"group {group_id} is not one of registries; choose another one"
            )
        own = client_id_of(self.identity)
        if all(each.client_id == own for each in found.members):
            await self._decide(self.identity, is_self=True)
        elif found.group_state == _STABLE:
            elected = read_elected(found.members[0].member_assignment)
            if elected.identity is not None and elected.identity.url != self.identity.url:
                await self._decide(elected.identity, is_self=False)

    async def _join(self) -> bool:
        """Join and sync; return False if it has to be done again."""
        joined = await self._send_join()
        if error_code(joined.error_code) == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            joined = await self._send_join()
        if self._is_over(error_code(joined.error_code)):
            return False
        check(joined.error_code)
        self._member_id, self._generation = joined.member_id, joined.generation_id
        answer = await self._coordinator.call(
            SyncGroupRequest(
                group_id=self._options.group_id,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=None,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL,
                assignments=self._assign(joined) if joined.leader == joined.member_id else [],
            ),
            error_of=lambda each: each.error_code,
            timeout_ms=self._options.rebalance_timeout_ms + _JOIN_GRACE_MS,
        )
        if self._is_over(error_code(answer.error_code)):
            return False
        check(answer.error_code)
        await self._hear(read_elected(answer.assignment))
        return True

    async def _hear(self, elected: Elected) -> None:
        if elected.failed:
            log.error("two registries have one URL (%s?), or the chosen one has none: no leader", self.identity.url)
        await self._decide(elected.identity, is_self=elected.member_id == self._member_id)

    def _assign(self, joined: JoinGroupResponse) -> list[SyncGroupRequest.Assignment]:
        present = self.verdict.leader
        members = {each.member_id: read_identity(each.metadata) for each in joined.members}
        blob = write_elected(choose(members, present.url if present is not None else None))
        return [SyncGroupRequest.Assignment(member_id=member_id, assignment=blob) for member_id in members]

    async def _send_join(self) -> JoinGroupResponse:
        protocol = JoinGroupRequest.Protocol(name=PROTOCOL, metadata=write_identity(self.identity))
        return await self._coordinator.call(
            JoinGroupRequest(
                group_id=self._options.group_id,
                session_timeout_ms=self._options.session_timeout_ms,
                rebalance_timeout_ms=self._options.rebalance_timeout_ms,
                member_id=self._member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[protocol],
            ),
            error_of=lambda each: each.error_code,
            timeout_ms=self._options.rebalance_timeout_ms + _JOIN_GRACE_MS,
        )

    async def _stay(self) -> None:
        """Send heartbeats until the member has to join again."""
        while not await self._is_asked_again():
            answer = await self._coordinator.call(
                HeartbeatRequest(
                    group_id=self._options.group_id, generation_id=self._generation, member_id=self._member_id
                ),
                error_of=lambda each: each.error_code,
            )
            if self._is_over(error_code(answer.error_code)):
                return
            check(answer.error_code)

    async def _is_asked_again(self) -> bool:
        try:
            async with asyncio.timeout(self._options.heartbeat_interval_ms / 1000):
                await self._rejoin.wait()
            return True
        except TimeoutError:
            return False

    async def _leave(self) -> None:
        request = LeaveGroupRequest(
            group_id=self._options.group_id,
            member_id=self._member_id,
            members=[LeaveGroupRequest.MemberIdentity(member_id=self._member_id, group_instance_id=None)],
        )
        await self._coordinator.call(request, error_of=lambda each: each.error_code)

    def _is_over(self, code: ErrorCode) -> bool:
        """Return whether an error code says that this generation, or the membership, has ended."""
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id, self._generation = "", _NO_GENERATION
        return code in _OVER
