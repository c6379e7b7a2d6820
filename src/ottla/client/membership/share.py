"""Membership of a share group (KIP-932): the broker assigns, and there is nothing to reconcile.

Rules:
- The client chooses the member id and keeps it for the life of the member. One task sends heartbeats, one at a time: at
  the interval that the broker names, or at once when the subscription changes.
- Several members may read one partition, so an assignment is valid as soon as it is known.
- A member that the broker no longer knows joins again. After `max_poll_interval_ms` without a poll the member leaves,
  and joins again with the next poll.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from ottla.client.cluster import Cluster
from ottla.client.coordinator import Coordinator
from ottla.client.errors import ClientError, LastingError, check, error_code
from ottla.client.share.options import ShareOptions
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition, random_uuid, uuid_text
from ottla.wire.messages.shares.share_group_heartbeat import ShareGroupHeartbeatRequest

log = logging.getLogger(__name__)

_JOIN_EPOCH, _LEAVE_EPOCH = 0, -1
_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class ShareMembership:
    """One member of one share group."""

    def __init__(
        self, cluster: Cluster, coordinator: Coordinator, options: ShareOptions, wake: Callable[[object], None]
    ) -> None:
        self.member_id = uuid_text(random_uuid(cluster.options.rng))
        self.assignment: dict[tuple[bytes, int], TopicPartition] = {}
        self._cluster = cluster
        self._coordinator = coordinator
        self._options = options
        self._wake = wake
        self._topics: tuple[str, ...] = ()
        self._said: tuple[str, ...] | None = None  # the subscription that the broker knows
        self._epoch = _JOIN_EPOCH
        self._target: list[tuple[bytes, int]] = []
        self._interval_ms = options.heartbeat_interval_ms
        self._beating: asyncio.Task[None] | None = None
        self._speak = asyncio.Event()
        self._failure: Exception | None = None
        self._polled_at_s = 0.0

    def subscribe(self, topics: Iterable[str]) -> None:
        """Change the subscription; the next heartbeat carries it."""
        self._topics = tuple(sorted(set(topics)))
        self._speak.set()

    def polled(self) -> None:
        """Note that the caller is alive, and join the group if necessary. Raises an error that is not transient."""
        self._polled_at_s = asyncio.get_running_loop().time()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat())

    async def leave(self) -> None:
        """Leave the group."""
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
            self._beating = None
        await self._say_goodbye()

    async def _beat(self) -> None:
        while True:
            self._speak.clear()
            wait_ms: float = self._interval_ms
            try:
                now_s = asyncio.get_running_loop().time()
                if now_s - self._polled_at_s > self._options.max_poll_interval_ms / 1000:
                    log.warning("share group %s: no poll for max_poll_interval_ms, leaving", self._options.group_id)
                    await self._say_goodbye()
                    return
                if not await self._beat_once():
                    continue
                if len(self.assignment) < len(self._target):
                    wait_ms = self._cluster.options.retry_backoff_max_ms  # a topic is not in the metadata yet
            except (ClientError, ApiError) as error:
                self._said = None
                if isinstance(error, LastingError) or (isinstance(error, ApiError) and not error.code.retriable):
                    self._failure = error
                    self._wake(None)
                    return
                log.info("share group %s: no heartbeat: %s", self._options.group_id, error)
            try:
                async with asyncio.timeout(min(wait_ms, self._interval_ms) / 1000):
                    await self._speak.wait()
            except TimeoutError:
                pass

    async def _beat_once(self) -> bool:
        """Send a heartbeat; return False if the broker did not know this member, which then has to join at once."""
        topics = self._topics
        joining = self._epoch == _JOIN_EPOCH
        answer = await self._coordinator.call(
            self._heartbeat(topics, full=joining or topics != self._said),
            error_of=lambda each: each.error_code,
            again=lambda: self._heartbeat(topics, full=True),
        )
        if error_code(answer.error_code) in _FENCED and not joining:
            self._forget()
            return False
        check(answer.error_code, answer.error_message)
        self._said = topics
        self._epoch = answer.member_epoch
        self._interval_ms = answer.heartbeat_interval_ms or self._interval_ms
        if answer.assignment is not None:
            self._target = [
                (each.topic_id, index) for each in answer.assignment.topic_partitions for index in each.partitions
            ]
        if [*self.assignment] != self._target:
            await self._name_target()
        return True

    def _heartbeat(self, topics: tuple[str, ...], *, full: bool) -> ShareGroupHeartbeatRequest:
        """Return a heartbeat. The answer to a full one has the assignment; to any other only if the assignment has
        changed.
        """
        return ShareGroupHeartbeatRequest(
            group_id=self._options.group_id,
            member_id=self.member_id,
            member_epoch=self._epoch,
            rack_id=self._options.client_rack if self._epoch == _JOIN_EPOCH else None,
            subscribed_topic_names=list(topics) if full else None,
        )

    async def _name_target(self) -> None:
        """Turn the topic ids of the assignment into names; ids that are not in the metadata wait for the next
        heartbeat.
        """
        names = self._names()
        if any(topic_id not in names for topic_id, _ in self._target):
            await self._cluster.refresh(self._topics)
            names = self._names()
        self.assignment = {
            (topic_id, index): TopicPartition(names[topic_id], index)
            for topic_id, index in self._target
            if topic_id in names
        }
        self._wake(None)

    def _names(self) -> dict[bytes, str]:
        return {each.topic_id: each.name for each in self._cluster.metadata.topics.values()}

    def _forget(self) -> None:
        self._epoch, self._said, self._target, self.assignment = _JOIN_EPOCH, None, [], {}
        self._wake(None)

    async def _say_goodbye(self) -> None:
        joined = self._epoch != _JOIN_EPOCH
        self._forget()
        if not joined:
            return
        request = ShareGroupHeartbeatRequest(
            group_id=self._options.group_id, member_id=self.member_id, member_epoch=_LEAVE_EPOCH
        )
        try:
            # One attempt only: leaving does not wait for an unreachable broker. The session times out instead.
            connection = await self._coordinator.connection()
            await connection.request(request)
        except (ClientError, ApiError) as error:
            log.info("share group %s: could not leave: %s", self._options.group_id, error)
