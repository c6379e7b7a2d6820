"""`Consumer`: reads partitions, alone or as a member of a group.

    async with Consumer("host:port", ConsumerOptions(group_id="g")) as consumer:
        consumer.subscribe(["topic"])
        async for record in consumer: ...

Rules:
- One task (or thread) at a time reads: asking for more says that the records handed out before are handled.
- Everything that changes the assignment happens inside `poll` (iterating polls): joining, revoking partitions, the
  listener, automatic commits. Only heartbeats and fetches run in between.
- The position is behind the last record that was handed out, and a commit stores it. An automatic commit happens at a
  later `poll`, when the caller is done with these records; so no offset is committed before its record was handled.
- An exception that leaves the block of the consumer (or in whose handling it is closed) means that the records handed
  out last were not handled: `not_handled`. The last commit then ends before them: before the record of the iteration,
  or before all records of the last `poll` or Arrow batch.
- Deliver, then advance: a position moves with the records that are handed out, all of them or none. Records that were
  fetched and not handed out are never behind the position.
- Every partition is read by itself (`consumer.supply`). An unreachable broker or a missing topic is waited for while
  the other partitions are read; `failures` returns it. An error that is not transient is raised after the good records
  were handed out, and the next `poll` tries again.
"""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.client.checks import checked_names, checked_number, checked_offset, checked_options, checked_partitions
from ottla.client.closing import Closing
from ottla.client.cluster import Cluster
from ottla.client.consumer.arrow import LINGER_MS, ROWS_MIN, converted, converter, has_gathered, pick_batches
from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.auto_commit import OffsetCommitter
from ottla.client.consumer.each import NO_GROUP, Each
from ottla.client.consumer.fetched import ConsumedRecord, RawBatch
from ottla.client.consumer.group_metadata import GroupMetadata
from ottla.client.consumer.group_offsets import GroupOffsets, OffsetAndMetadata
from ottla.client.consumer.offsets import EARLIEST, LATEST, OffsetAndTime, Time
from ottla.client.consumer.options import ConsumerOptions, RebalanceListener
from ottla.client.consumer.ownership import Ownership
from ottla.client.consumer.records_in_hand import RecordsInHand
from ottla.client.consumer.supply import Supply
from ottla.client.coordinator import Coordinator, CoordinatorKind
from ottla.client.errors import ClientError, CommitFailed
from ottla.client.membership.classic import ClassicMembership
from ottla.client.membership.modern import ModernMembership
from ottla.client.membership.subscription import SubscribedTopics
from ottla.client.options import ClientOptions, GivenSecurity
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

READ_TWICE = "another task or thread is reading from this consumer: let each have its own, or one read for all"


class Consumer(Closing):
    """Reads records; see the module's rules."""

    def __init__(
        self,
        cluster: Cluster | str | Sequence[str] | ClientOptions,
        options: ConsumerOptions | None = None,
        *,
        security: GivenSecurity = None,
    ) -> None:
        self.options = checked_options(options, ConsumerOptions)
        self._owns_cluster = not isinstance(cluster, Cluster)
        self.cluster = Cluster.of(cluster, security)
        self._ownership = Ownership(self._commit_before_revoking)
        self._wakened = asyncio.Event()
        self._membership: ClassicMembership | ModernMembership | None = None
        self._coordinators: list[Coordinator] = []
        self._committer: OffsetCommitter | None = None
        offsets: GroupOffsets | None = None
        if self.options.group_id is not None:
            offsets = GroupOffsets(self.cluster, self._coordinator(), self.options.group_id)
            self._committer = OffsetCommitter(
                offsets, self.options, self.cluster.options, self._committing_member, self._forfeit
            )
        places = self._ownership.places
        self._supply = Supply(self.cluster, self.options, offsets, places, self._wake)
        self.each = Each(self.cluster, self._committer, places, read_committed=self.options.read_committed)
        self._advancing: asyncio.Task[None] | None = None
        self._is_waiting = False  # a task is in `_ready`
        self._in_hand = RecordsInHand()
        self._closed = False

    async def close(self) -> None:
        """Commit (if that is automatic), revoke the partitions, leave the group. A static member does not leave.

        If an exception is being handled, the records handed out last count as not handled.
        """
        if self._closed:
            return
        self._closed = True
        self._wake()  # ends a `poll` in another task
        self._stop_handing()
        await asyncio.gather(*filter(None, (self._advancing,)), return_exceptions=True)
        await self._supply.close()
        try:
            await self._give_back()
        finally:
            if self._committer is not None:
                await self._committer.close()
            for coordinator in self._coordinators:
                coordinator.close()
            if self._owns_cluster:
                await self.cluster.close()

    async def _give_back(self) -> None:
        membership = self._membership
        if membership is None:
            await self._commit_before_revoking(self._ownership.partitions)
            return
        try:
            if membership.metadata.generation_id < 0:
                await self._ownership.lose()
            else:
                await self._ownership.revoke(self._ownership.partitions)
        finally:
            await membership.leave()
            self._membership = None

    # --- subscription -------------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener | None = None) -> None:
        """Read these topics (or all topics whose whole name the pattern matches) as a member of the group."""
        if self.options.group_id is None:
            raise ValueError(NO_GROUP)
        if isinstance(topics, str):
            raise TypeError("subscribe takes a list of names, or a compiled pattern")
        subscribed = SubscribedTopics(topics if isinstance(topics, re.Pattern) else checked_names(topics, "topic"))
        if self._membership is None:
            if self._ownership.places:
                raise ValueError("a consumer subscribes or has partitions assigned, not both")
            kind = ClassicMembership if self.options.group_protocol == "classic" else ModernMembership
            self._membership = kind(self.cluster, self._coordinator(), self.options, self._ownership, self._wake)
        self._ownership.listener = listener
        self._membership.subscribe(subscribed)
        self._wake()

    async def unsubscribe(self) -> None:
        """Leave the group, or stop reading the assigned partitions; afterwards `subscribe` or `assign` may be called
        anew.
        """
        self._stop_handing()
        if self._advancing is not None:
            await asyncio.wait([self._advancing])
            self._advancing = None
        await self._give_back()
        for place in self._ownership.places.values():
            place.move(None)
        self._ownership.places.clear()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without being a member of a group."""
        if self._membership is not None:
            raise ValueError("a consumer subscribes or has partitions assigned, not both")
        self._in_hand.stop()
        wanted = dict.fromkeys(checked_partitions(partitions))
        places = self._ownership.places
        for partition in [each for each in places if each not in wanted]:
            places.pop(partition).move(None)
        for partition in wanted:
            if partition not in places:
                places[partition] = AssignedPartition(partition)
        self._wake()

    @property
    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read at the moment."""
        return self._ownership.partitions

    def group_metadata(self) -> GroupMetadata:
        """Return this member's identity in the group, for a transactional producer that commits this consumer's
        offsets.
        """
        if self._membership is not None:
            return self._membership.metadata
        if self.options.group_id is None:
            raise ValueError(NO_GROUP)
        return GroupMetadata(self.options.group_id, group_instance_id=self.options.group_instance_id)

    # --- reading ------------------------------------------------------------------------------------------------

    async def poll(
        self, max_records: int | None = None, timeout_ms: float = 1_000
    ) -> dict[TopicPartition, list[ConsumedRecord]]:
        """Return records by partition as soon as there are any; an empty dict when the time is over."""
        if max_records is not None:
            checked_number(max_records, "max_records", at_least=1)
        await self._come_back()
        if not await self._ready(timeout_ms):
            return {}
        places = [place for place in self._ownership.places.values() if place.is_open]
        records_max = self.options.max_poll_records if max_records is None else max_records
        handed = self._in_hand.hand_out(places, records_max)
        self._handed_out(handed.found, handed.failed)
        if not handed.found:
            await self._raise_failure()
        return handed.found

    async def _come_back(self) -> None:
        """Note that the caller is back: it has handled the records it got. Raise failures that it has not been told
        of.
        """
        self._in_hand.come_back()
        await self._raise_failure()

    async def _raise_failure(self) -> None:
        """Raise a failure that the caller has not been told of. Let fetches and heartbeats run before, because the
        caller may do nothing but poll again.
        """
        if self._supply.has_news and not self._closed:
            self._supply.start()
            await asyncio.sleep(0)
            self._supply.raise_failure()

    def _handed_out(self, partitions: Iterable[TopicPartition], failed: Mapping[TopicPartition, Exception]) -> None:
        """Put these partitions behind the others for the next call. A failure is raised now if nothing was handed out,
        or else by the next call.
        """
        for partition, error in failed.items():
            self._supply.set_aside(self._ownership.places[partition], error)
        for partition in {**dict.fromkeys(partitions), **failed}:
            self._ownership.put_last(partition)
        self._supply.start()  # fetch while the caller works

    def __aiter__(self) -> "Consumer":
        return self

    async def __anext__(self) -> ConsumedRecord:
        while (record := self.next_at_hand()) is None:
            if self._closed:
                raise StopAsyncIteration
            await self._next_handing()
        return record

    def next_at_hand(self) -> ConsumedRecord | None:
        """Return the next record of the iteration if there is one without waiting, else None."""
        return self._in_hand.next_record()

    async def _next_handing(self) -> None:
        await self._come_back()
        try:
            while not await self._ready(None):
                pass
        except ClientError:
            if self._closed:
                return  # the iteration ends
            raise
        failed: dict[TopicPartition, Exception] = {}
        for place in self._ownership.places.values():
            if place.has_records and place.is_open:
                try:
                    self._in_hand.begin(place, self.options.max_poll_records)
                except Exception as error:
                    failed[place.partition] = error
                else:
                    self._handed_out([place.partition], failed)
                    return
        self._handed_out([], failed)
        await self._raise_failure()

    def _stop_handing(self) -> None:
        if sys.exception() is None:
            self._in_hand.stop()
        else:
            self._in_hand.take_back()

    def not_handled(self) -> None:
        """Declare that the records handed out last could not be handled: they are handed out again, by this consumer
        or the next owner of the partition, and no automatic commit goes beyond them. Offsets stored by `commit`
        meanwhile stay.
        """
        self._in_hand.take_back()
        self._wake()

    async def arrow(
        self, *, rows_min: int = ROWS_MIN, linger_ms: float = LINGER_MS
    ) -> "AsyncGenerator[pa.RecordBatch, None]":
        """Yield records as `pyarrow.RecordBatch`es of about `rows_min` rows, fewer if those do not come in
        `linger_ms`.

        As with `poll`, the position is behind the records that were handed out.
        """
        convert, places = converter(), self._ownership.places
        enough = partial(has_gathered, places, rows_min, self.options.max_partition_fetch_bytes)
        while True:
            await self._come_back()
            try:
                await self._ready(None)
                # Not enough in time: what there is, unless partitions are being revoked just now.
                if not await self._ready(linger_ms, enough) and not await self._ready(0):
                    continue
            except ClientError:
                if self._closed:
                    return
                raise
            columns, batches, failed = converted(convert, pick_batches(places, rows_min))
            self._hand_out_batches(batches, failed)
            if columns is not None:
                yield columns
            else:
                await self._raise_failure()

    def _hand_out_batches(self, batches: list[RawBatch], failed: Mapping[TopicPartition, Exception]) -> None:
        places = self._ownership.places
        self._in_hand.hold(places.values())
        for raw in batches:
            places[raw.partition].hand_out_batch()
        for partition, error in failed.items():
            self._supply.set_aside(places[partition], error)
        self._supply.start()

    def _has_records(self) -> bool:
        return any(place.has_records and place.is_open for place in self._ownership.places.values())

    async def _ready(self, timeout_ms: float | None, is_enough: Callable[[], bool] | None = None) -> bool:
        """Do what is due until there are records to hand out (or `is_enough` of them), or the time is over.

        Only after True may records be handed out, and before anything else is awaited: otherwise partitions may be
        in the middle of a revocation, whose commit would go beyond records that nobody has handled.
        """
        if self._is_waiting:
            raise RuntimeError(READ_TWICE)
        self._is_waiting = True
        try:
            return await self._until(is_enough or self._has_records, timeout_ms)
        finally:
            self._is_waiting = False

    async def _until(self, is_enough: Callable[[], bool], timeout_ms: float | None) -> bool:
        loop = asyncio.get_running_loop()
        deadline_s = None if timeout_ms is None else loop.time() + timeout_ms / 1000
        while True:
            self._wakened.clear()
            membership = None if self._closed else self._membership
            if membership is not None and not await self._advance(membership, deadline_s):
                return False
            if self._closed:  # maybe since the group's decisions were put into effect
                raise ClientError("the consumer is closed")
            if self._committer is not None and (self._membership is None or self._membership.may_commit):
                self._committer.commit_when_due(list(self._ownership.places.values()))
            self._supply.take_in()
            if is_enough():
                return True
            if not self._has_records():
                await self._raise_failure()
            self._supply.start()
            # Even without a deadline, wake up now and then: automatic commits are due by time.
            wait_s = 1.0 if deadline_s is None else min(1.0, deadline_s - loop.time())
            if wait_s <= 0:
                await asyncio.sleep(0)  # let the loop run even if the caller polls without waiting
                return False
            try:
                async with asyncio.timeout(wait_s):
                    await self._wakened.wait()
            except TimeoutError:
                pass

    async def _advance(self, membership: ClassicMembership | ModernMembership, deadline_s: float | None) -> bool:
        """Put the group's decisions into effect; return False if that takes longer than the caller wants to wait."""
        # In a task of its own, because a caller that is cancelled must not leave half a rebalance behind.
        if self._advancing is None:
            if not membership.is_due():
                return True
            self._advancing = asyncio.create_task(membership.advance())
        timeout_s = None if deadline_s is None else max(deadline_s - asyncio.get_running_loop().time(), 0)
        await asyncio.wait([self._advancing], timeout=timeout_s)
        if not self._advancing.done():
            return False
        task, self._advancing = self._advancing, None
        task.result()
        return True

    # --- positions ----------------------------------------------------------------------------------------------

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset of the next record to be handed out; None until it is known (see `poll`)."""
        return self._ownership.place(partition).position

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue from this offset."""
        offset = checked_offset(partition, offset)
        place = self._ownership.place(partition)
        self._in_hand.stop()
        place.move(offset)
        self._wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue from the first record that exists (in all partitions, unless some are named)."""
        self._seek_to(EARLIEST, partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Continue behind the last record that exists."""
        self._seek_to(LATEST, partitions)

    def _seek_to(self, time: Time, partitions: Sequence[TopicPartition]) -> None:
        places = self._ownership.all_of(partitions or self.assignment)
        self._in_hand.stop()
        for place in places:
            place.move(time)
        self._wake()

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out no records of these partitions until `resume`; they stay assigned."""
        places = self._ownership.all_of(partitions)
        self._in_hand.stop()
        for place in places:
            place.paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand out records of these partitions again."""
        for place in self._ownership.all_of(partitions):
            place.paused = False
        self._wake()

    def paused(self) -> list[TopicPartition]:
        return [each for each in self.assignment if self._ownership.place(each).paused]

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the number of records between the position and the end, as of the last fetch; None before it."""
        return self._ownership.place(partition).lag(read_committed=self.options.read_committed)

    def failures(self) -> dict[TopicPartition, Exception]:
        """Return the errors because of which partitions are not read at the moment: transient errors that are waited
        for, and errors that were raised last and are tried again.
        """
        return self._supply.failures()

    # --- commits ------------------------------------------------------------------------------------------------

    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commit these offsets (default: all current positions) and wait; raises `CommitFailed` when the partitions
        are gone. If it raises, other partitions may have been committed: `each.commit` returns which.
        """
        (await self.each.commit(offsets)).all()

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's committed offsets; partitions without one are left out."""
        found = (await self.each.committed(partitions)).all()
        return {partition: place for partition, place in found.items() if place is not None}

    def hold_back(self, held: Callable[[], Mapping[TopicPartition, int]]) -> None:
        """Set the limit of commits for code that holds records back between this consumer and its caller: `held`
        returns the first such offset of each partition, and no commit of positions goes beyond it.
        """
        if self._committer is not None:
            self._committer.held = held

    def _committing_member(self) -> GroupMetadata:
        """Return the member that commits. Raise if this consumer has lost its membership: a commit without a member id
        could be accepted by the coordinator.
        """
        member = self.group_metadata()
        if self._membership is not None and member.generation_id < 0:
            raise CommitFailed(ErrorCode.UNKNOWN_MEMBER_ID, "this consumer has no place in its group at the moment")
        return member

    def _forfeit(self, member: GroupMetadata) -> None:
        if self._membership is not None:
            self._membership.forfeit(member)

    async def _commit_before_revoking(self, partitions: Sequence[TopicPartition]) -> None:
        if self._committer is not None:
            await self._committer.commit_last([self._ownership.places[partition] for partition in partitions])

    # --- lookups ------------------------------------------------------------------------------------------------

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTime | None]:
        """Return the first record at or after each time; None for partitions without one."""
        return (await self.each.offsets_for_times(times_ms)).all()

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return (await self.each.beginning_offsets(partitions)).all()

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets behind the last records; with read_committed the last stable offsets."""
        return (await self.each.end_offsets(partitions)).all()

    # --- plumbing -----------------------------------------------------------------------------------------------

    def _wake(self, _: object = None) -> None:
        self._wakened.set()

    def _coordinator(self) -> Coordinator:
        """Create a coordinator connection: one for offsets and one for the membership, so that a JoinGroup that waits
        does not hold up a commit.
        """
        coordinator = Coordinator(self.cluster, self.options.group_id or "", CoordinatorKind.GROUP)
        self._coordinators.append(coordinator)
        return coordinator
