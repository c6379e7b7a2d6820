"""When a consumer commits: on demand, by the clock, and before partitions are revoked.

Rules:
- Commits of one consumer are stored in the order in which they were asked for, one at a time: an older position never
  replaces a newer one because it was refused first and tried again. What is stored is the positions at the time when
  the commit was asked for: later ones may be behind records that the caller has in hand.
- A partition that was revoked since is left out: its next owner may have committed more.
- Before partitions are revoked, all commits that were asked for are over, even if commits are not automatic.
- An automatic commit that fails is logged, not raised. Records whose offsets were not committed are read again by the
  next owner of the partition: at least once, as promised.
- An automatic commit stores only positions that have changed.
- A commit has an outcome per partition: partitions that were stored count as committed, even if others failed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.commit_turns import CommitTurn, CommitTurns
from ottla.client.consumer.group_metadata import GroupMetadata
from ottla.client.consumer.group_offsets import GroupOffsets, OffsetAndMetadata
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.errors import ClientError, CommitFailed
from ottla.client.options import ClientOptions
from ottla.client.outcomes import Outcomes
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

Positions = dict[TopicPartition, OffsetAndMetadata]


class OffsetCommitter:
    """The offset commits of one consumer in a group."""

    def __init__(
        self,
        offsets: GroupOffsets,
        options: ConsumerOptions,
        client_options: ClientOptions,
        member: Callable[[], GroupMetadata],
        forfeit: Callable[[GroupMetadata], None],
    ) -> None:
        self.offsets = offsets
        self._options = options
        self._client_options = client_options
        self._member = member
        self._forfeit = forfeit  # called with a member that the group no longer knows
        # The first offset per partition of records that code between consumer and caller holds back: no commit goes
        # beyond.
        self.held: Callable[[], Mapping[TopicPartition, int]] = dict
        self._turns = CommitTurns()
        self._task: asyncio.Task[None] | None = None  # of the last automatic commit
        self._due_at_s: float | None = None

    async def commit(
        self, positions: Mapping[TopicPartition, OffsetAndMetadata], places: Sequence[AssignedPartition]
    ) -> Outcomes[TopicPartition, OffsetAndMetadata]:
        """Commit the positions that the caller asks for, and note the stored ones at the assigned partitions."""
        for place in places:
            if place.partition in positions:
                place.asked = positions[place.partition].offset
        return await self._store_in_turn(positions, places, self._turns.take())

    def commit_when_due(self, places: Sequence[AssignedPartition]) -> None:
        """Start the automatic commit if it is due: in the background, one at a time, of what
        earlier polls handed out.
        """
        if not self._options.enable_auto_commit:
            return
        now_s = asyncio.get_running_loop().time()
        if self._due_at_s is not None and now_s >= self._due_at_s and (self._task is None or self._task.done()):
            self._due_at_s = None
            changed = self.positions(place for place in places if place.committed != place.position)
            if changed:
                turn = self._turns.take()
                self._task = asyncio.create_task(self._store_quietly(changed, places, turn))
                self._task.add_done_callback(lambda _: turn.end())  # it may be cancelled before it begins
        if self._due_at_s is None:
            self._due_at_s = now_s + self._options.auto_commit_interval_ms / 1000

    async def commit_last(self, places: Sequence[AssignedPartition]) -> None:
        """Commit the positions of partitions that are about to be revoked, if commits are automatic; wait for the
        commits before in any case.
        """
        is_automatic = self._options.enable_auto_commit
        changed = [place for place in places if is_automatic and place.committed != place.position]
        await self._store_quietly(self.positions(changed), places, self._turns.take())

    def positions(self, places: Iterable[AssignedPartition]) -> Positions:
        """Return the positions that a commit of these partitions stores; partitions without a position yet are left
        out.
        """
        found = {
            place.partition: OffsetAndMetadata(place.position, place.leader_epoch)
            for place in places
            if place.position is not None
        }
        for partition, offset in self.held().items():
            if partition in found and offset < found[partition].offset:
                found[partition] = OffsetAndMetadata(offset)
        return found

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _store_in_turn(
        self,
        positions: Mapping[TopicPartition, OffsetAndMetadata],
        places: Sequence[AssignedPartition],
        turn: CommitTurn,
    ) -> Outcomes[TopicPartition, OffsetAndMetadata]:
        timeout_ms = self._client_options.api_timeout_ms
        try:
            if await turn.come(timeout_ms / 1000):
                return await self._store(positions, places)
        finally:
            turn.end()
        late = ClientError(f"the commits before were not answered within {timeout_ms} ms, so nothing was committed")
        return Outcomes(failed=dict.fromkeys(positions, late))

    async def _store(
        self, positions: Mapping[TopicPartition, OffsetAndMetadata], places: Sequence[AssignedPartition]
    ) -> Outcomes[TopicPartition, OffsetAndMetadata]:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._client_options.api_timeout_ms / 1000
        outcomes: Outcomes[TopicPartition, OffsetAndMetadata] = Outcomes()
        left = dict(positions)
        topic_ids = {place.partition: place.topic_id for place in places}
        while True:
            for gone in [place.partition for place in places if place.is_revoked and place.partition in left]:
                del left[gone]
                outcomes.failed[gone] = CommitFailed(ErrorCode.ILLEGAL_GENERATION, f"{gone} was revoked meanwhile")
            if left:
                outcomes.add(await self._store_as_member(left, topic_ids))
            # KIP-848: the member epoch moved during the commit; the heartbeat brings the new one.
            left = {each: positions[each] for each, error in outcomes.failed.items() if _is_stale_epoch(error)}
            if not left or loop.time() > deadline_s:
                break
            await asyncio.sleep(self._client_options.retry_backoff_ms / 1000)
        for place in places:
            stored = outcomes.found.get(place.partition)
            if stored is not None:
                place.committed = stored.offset
        return outcomes

    async def _store_as_member(
        self, positions: Positions, topic_ids: Mapping[TopicPartition, bytes]
    ) -> Outcomes[TopicPartition, OffsetAndMetadata]:
        try:
            member = self._member()
        except CommitFailed as error:
            return Outcomes(failed=dict.fromkeys(positions, error))
        outcomes = await self.offsets.commit(positions, member, topic_ids)
        if any(isinstance(error, CommitFailed) for error in outcomes.failed.values()):
            self._forfeit(member)
        return outcomes

    async def _store_quietly(self, positions: Positions, places: Sequence[AssignedPartition], turn: CommitTurn) -> None:
        try:
            (await self._store_in_turn(positions, places, turn)).all()
        except (ApiError, ClientError) as error:
            log.warning("group %s: automatic commit failed: %s", self._options.group_id, error)


def _is_stale_epoch(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.code == ErrorCode.STALE_MEMBER_EPOCH
