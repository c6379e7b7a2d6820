"""The KIP-848 protocol: the coordinator assigns, members reconcile one heartbeat at a time.

`reconcile.ClientMemberState` decides what to send and what to do; this module sends it, and does it inside `poll`.

Rules:
- One task sends heartbeats, one at a time: at the interval that the coordinator names, or at once when there is
  something to report (`must_report`).
- Partitions are revoked and taken in `advance`; the heartbeat after it is the acknowledgement.
- After `max_poll_interval_ms` without a poll the member leaves, and joins again with the next poll.
"""

import asyncio
import logging
from collections.abc import Callable

from ottla.client.cluster import Cluster
from ottla.client.consumer.group_metadata import GroupMetadata
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.consumer.ownership import Ownership
from ottla.client.coordinator import Coordinator
from ottla.client.errors import ClientError, LastingError, UnsupportedApi, check, error_code
from ottla.client.membership.reconcile import (
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ClientMemberState,
    Held,
    MemberReport,
    Subscribed,
    held_of,
)
from ottla.client.membership.subscription import SubscribedTopics
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition, random_uuid, uuid_text
from ottla.wire.messages.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

log = logging.getLogger(__name__)

_REGEX_SINCE = ConsumerGroupHeartbeatRequest.since("subscribed_topic_regex")
_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class ModernMembership:
    """One member of one KIP-848 group."""

    def __init__(
        self,
        cluster: Cluster,
        coordinator: Coordinator,
        options: ConsumerOptions,
        ownership: Ownership,
        wake: Callable[[object], None],
    ) -> None:
        assert options.group_id is not None
        self._cluster = cluster
        self._coordinator = coordinator
        self._options = options
        self._ownership = ownership
        self._wake = wake
        self._state = ClientMemberState()
        # Chosen by the client and kept for the life of the member (KIP-1082).
        self._member_id = uuid_text(random_uuid(cluster.options.rng))
        self._interval_ms = options.heartbeat_interval_ms
        self._beating: asyncio.Task[None] | None = None
        self._speak = asyncio.Event()
        self._failure: Exception | None = None
        self._polled_at_s = 0.0

    @property
    def metadata(self) -> GroupMetadata:
        assert self._options.group_id is not None
        epoch = self._state.epoch if self._state.is_joined else -1
        member_id = self._member_id if self._state.is_joined else ""
        return GroupMetadata(self._options.group_id, epoch, member_id, self._options.group_instance_id)

    # --- called by the consumer ---------------------------------------------------------------------------------

    def subscribe(self, wanted: SubscribedTopics) -> None:
        """Change the subscription; the next heartbeat carries it."""
        regex = None if wanted.pattern is None else wanted.pattern.pattern
        self._state.subscribed = Subscribed(wanted.topics, regex)
        self._speak.set()

    @property
    def may_commit(self) -> bool:
        return self._state.is_joined

    def is_due(self) -> bool:
        """Return whether there is anything for `advance` to do. Every poll calls it, which shows that the caller is
        alive.
        """
        self._polled_at_s = asyncio.get_running_loop().time()
        resting = self._beating is None or self._beating.done()
        return self._failure is not None or self._state.fenced or resting or self._state.must_reconcile

    async def advance(self) -> None:
        """Revoke partitions that are not in the target assignment, take the new ones; calls the listener."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._state.fenced:
            await self._ownership.lose()
            self._state.rejoin()
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())
        if self._state.must_reconcile:
            await self._reconcile()
        if self._state.must_report:
            self._speak.set()

    def forfeit(self, member: GroupMetadata) -> None:
        """Drop the membership, because a commit showed that the group has gone on without this member."""
        if self._state.is_joined and self.metadata == member:
            self._state.fence()
            self._wake(None)

    async def leave(self) -> None:
        """Leave the group; a static member says that it will be back."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None
        if self._state.is_joined:
            await self._say_goodbye()
            self._state.left()

    # --- reconciling --------------------------------------------------------------------------------------------

    async def _reconcile(self) -> None:
        target = self._state.target
        names = await self._names_of(target)
        known = {topic_id: indexes for topic_id, indexes in target.items() if topic_id in names}
        wanted = [TopicPartition(names[topic_id], index) for topic_id, indexes in known.items() for index in indexes]
        keep = frozenset(wanted)
        await self._ownership.revoke([each for each in self._ownership.partitions if each not in keep])
        if self._state.target is not target:
            return  # the coordinator has sent another target meanwhile
        # Note the partitions before taking them: a heartbeat in between must not report fewer than the member owns.
        self._state.took(held_of((topic_id, index) for topic_id, indexes in known.items() for index in indexes))
        await self._ownership.give(wanted)
        self._speak.set()
        self._wake(None)

    async def _names_of(self, target: Held) -> dict[bytes, str]:
        """Return the names of the topics; those that are not in the metadata yet are left for the next round."""

        def known() -> dict[bytes, str]:
            return {each.topic_id: each.name for each in self._cluster.metadata.topics.values()}

        names = known()
        if any(topic_id not in names for topic_id in target):
            subscribed = self._state.subscribed
            await self._cluster.refresh(None if subscribed.regex is not None else subscribed.names)
            names = known()
        return names

    # --- heartbeats ---------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        while True:
            self._speak.clear()
            if not self._state.fenced:
                try:
                    await self._beat_once()
                except (ClientError, ApiError) as error:
                    self._state.unanswered()
                    if isinstance(error, LastingError) or (isinstance(error, ApiError) and not error.code.retriable):
                        self._failure = error
                        self._wake(None)
                        return
                    log.info("group %s: no heartbeat: %s", self._options.group_id, error)
            try:
                async with asyncio.timeout(self._interval_ms / 1000):
                    await self._speak.wait()
            except TimeoutError:
                pass

    async def _beat_once(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._state.is_joined and now_s - self._polled_at_s > self._options.max_poll_interval_ms / 1000:
            log.warning("group %s: no poll for max_poll_interval_ms, leaving", self._options.group_id)
            await self._say_goodbye()
            self._state.left()
            return
        report, answer = await self._send()
        code = error_code(answer.error_code)
        if code in _FENCED:
            self._state.fence()
            self._wake(None)
            return
        check(code, answer.error_message)
        self._member_id = answer.member_id or self._member_id
        self._interval_ms = answer.heartbeat_interval_ms or self._interval_ms
        self._state.answered(report, answer.member_epoch, _target_of(answer))
        if self._state.must_reconcile:
            self._wake(None)
        elif self._state.must_report:
            self._speak.set()

    async def _send(self) -> tuple[MemberReport, ConsumerGroupHeartbeatResponse]:
        """Send a heartbeat; return what it said (in the last attempt) and the answer."""
        report = self._state.next_report()
        subscribed = report.subscribed
        if subscribed is not None and subscribed.regex is not None:
            version = (await self._coordinator.connection()).version_of(ConsumerGroupHeartbeatRequest)
            if version < _REGEX_SINCE:
                raise UnsupportedApi("the broker does not evaluate patterns: subscribe to names")

        def again() -> ConsumerGroupHeartbeatRequest:
            nonlocal report
            self._state.unanswered()
            report = self._state.next_report()
            return self._heartbeat(report)

        answer = await self._coordinator.call(
            self._heartbeat(report),
            error_of=lambda answer: answer.error_code,
            again=again,
        )
        return report, answer

    def _heartbeat(self, report: MemberReport) -> ConsumerGroupHeartbeatRequest:
        options = self._options
        subscribed = report.subscribed
        assert options.group_id is not None
        entry = ConsumerGroupHeartbeatRequest.TopicPartitions
        return ConsumerGroupHeartbeatRequest(
            group_id=options.group_id,
            member_id=self._member_id,
            member_epoch=report.epoch,
            instance_id=options.group_instance_id,
            rack_id=options.client_rack if report.full else None,
            rebalance_timeout_ms=options.max_poll_interval_ms if report.full else -1,
            subscribed_topic_names=None if subscribed is None else list(subscribed.names),
            subscribed_topic_regex=None if subscribed is None else subscribed.regex or "",
            server_assignor=options.group_remote_assignor if report.full else None,
            topic_partitions=None
            if report.held is None
            else [entry(topic_id=topic_id, partitions=list(indexes)) for topic_id, indexes in report.held.items()],
        )

    async def _say_goodbye(self) -> None:
        assert self._options.group_id is not None
        static = self._options.group_instance_id is not None
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._options.group_id,
            member_id=self._member_id,
            member_epoch=LEAVE_STATIC_EPOCH if static else LEAVE_EPOCH,
            instance_id=self._options.group_instance_id,
        )
        try:
            await self._coordinator.call(request, error_of=lambda answer: answer.error_code)
        except (ClientError, ApiError) as error:
            # The coordinator removes the member when its session times out.
            log.info("group %s: could not leave: %s", self._options.group_id, error)


def _target_of(answer: ConsumerGroupHeartbeatResponse) -> Held | None:
    if answer.assignment is None:
        return None
    return held_of((each.topic_id, index) for each in answer.assignment.topic_partitions for index in each.partitions)
