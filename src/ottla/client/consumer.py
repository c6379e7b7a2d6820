"""`Consumer`: reads partitions, alone or as a member of a group.

    async with Consumer("host:port", ConsumerOptions(group_id="g")) as consumer:
        consumer.subscribe(["topic"])
        async for record in consumer: ...

Rules:
- Everything that changes what is read happens inside `poll` (iterating polls): joining, letting partitions go, the
  listener, automatic commits. Only heartbeats and fetches run in between.
- The position is behind the last record that was handed out, and that is what a commit stores. An automatic commit
  happens at a later `poll`, when the caller is done with what it got; so nothing is committed before it was handled.
- An exception that leaves the block of the consumer (or in whose handling it is closed) means that what was handed out
  last was not handled: `not_handled`. The last commit then ends before it: the record of the iteration, or all that
  the last `poll` or Arrow batch held.
- A broker that is away is waited for; `poll` returns nothing meanwhile. What will not pass is raised, and the next
  `poll` tries again.
"""

import asyncio
import logging
import re
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.client.arrow import LINGER_MS, ROWS_MIN, converter, has_gathered, take_batches
from ottla.client.closing import Closing
from ottla.client.cluster import Cluster
from ottla.client.commits import GroupOffsets, OffsetAndMetadata
from ottla.client.committing import Committer, positions_of
from ottla.client.consumer_options import ConsumerOptions, RebalanceListener
from ottla.client.coordinator import Coordinator, CoordinatorKind
from ottla.client.errors import ClientError, CommitFailed, LogTruncated, OffsetOutOfRange
from ottla.client.fetching import ConsumedRecord, Fetched, Fetcher
from ottla.client.group_metadata import GroupMetadata
from ottla.client.handing import Handing
from ottla.client.locating import locate
from ottla.client.membership.classic import ClassicMembership
from ottla.client.membership.modern import ModernMembership
from ottla.client.membership.wanted import Wanted
from ottla.client.offsets import EARLIEST, LATEST, OffsetAndTime, Time, list_offsets, resolve
from ottla.client.options import ClientOptions
from ottla.client.ownership import Ownership
from ottla.client.places import Place
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_NO_GROUP = "this needs a group_id"


class Consumer(Closing):
    """Reads records; see the module's rules."""

    def __init__(
        self, cluster: Cluster | str | Sequence[str] | ClientOptions, options: ConsumerOptions | None = None
    ) -> None:
        self.options = options or ConsumerOptions()
        self._owns_cluster = not isinstance(cluster, Cluster)
        self.cluster = cluster if isinstance(cluster, Cluster) else Cluster(cluster)
        self._ownership = Ownership(self._commit_before_revoking)
        self._wakened = asyncio.Event()
        self._fetcher = Fetcher(
            self.cluster,
            self.options.read_options(),
            patient=True,
            wake=self._wake,
            rack_id=self.options.client_rack or "",
        )
        self._membership: ClassicMembership | ModernMembership | None = None
        self._coordinators: list[Coordinator] = []
        self._committer: Committer | None = None
        if self.options.group_id is not None:
            offsets = GroupOffsets(self.cluster, self._coordinator(), self.options.group_id)
            self._committer = Committer(
                offsets, self.options, self.cluster.options, self._committing_member, self._forfeit
            )
        self._advancing: asyncio.Task[None] | None = None
        self._locating: asyncio.Task[None] | None = None
        self._handing = Handing()
        self._closed = False

    async def close(self) -> None:
        """Commit (if that is automatic), give the partitions back, leave the group. A static member does not leave.

        While an exception is on its way, what was handed out last counts as not handled."""
        if self._closed:
            return
        self._closed = True
        self._wake()  # whoever polls in another task stops
        self._stop_handing()
        if self._locating is not None:
            self._locating.cancel()
        await asyncio.gather(*filter(None, (self._advancing, self._locating)), return_exceptions=True)
        await self._fetcher.close()
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

    # --- what to read -------------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener | None = None) -> None:
        """Read these topics (or all whose whole name the pattern matches) as a member of the group."""
        if self.options.group_id is None:
            raise ValueError(_NO_GROUP)
        if isinstance(topics, str):
            raise TypeError("subscribe takes a list of names, or a compiled pattern")
        if self._membership is None:
            if self._ownership.places:
                raise ValueError("a consumer subscribes or has partitions assigned, not both")
            kind = ClassicMembership if self.options.group_protocol == "classic" else ModernMembership
            self._membership = kind(self.cluster, self._coordinator(), self.options, self._ownership, self._wake)
        self._ownership.listener = listener
        self._membership.subscribe(Wanted(topics))
        self._wake()

    async def unsubscribe(self) -> None:
        """Leave the group, or stop reading what was assigned; afterwards either may be asked for anew."""
        self._stop_handing()
        if self._advancing is not None:
            await asyncio.wait([self._advancing])
            self._advancing = None
        await self._give_back()
        self._ownership.places.clear()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without being a member of anything."""
        if self._membership is not None:
            raise ValueError("a consumer subscribes or has partitions assigned, not both")
        self._handing.stop()
        wanted = dict.fromkeys(TopicPartition(*each) for each in partitions)
        places = self._ownership.places
        for partition in [each for each in places if each not in wanted]:
            places.pop(partition).move(None)
        for partition in wanted:
            if partition not in places:
                places[partition] = Place(partition)
        self._wake()

    @property
    def assignment(self) -> list[TopicPartition]:
        """What is read at the moment."""
        return self._ownership.partitions

    def group_metadata(self) -> GroupMetadata:
        """Who this member is, for a transactional producer that commits this consumer's offsets."""
        if self._membership is not None:
            return self._membership.metadata
        if self.options.group_id is None:
            raise ValueError(_NO_GROUP)
        return GroupMetadata(self.options.group_id, group_instance_id=self.options.group_instance_id)

    # --- reading ------------------------------------------------------------------------------------------------

    async def poll(
        self, max_records: int | None = None, timeout_ms: float = 1_000
    ) -> dict[TopicPartition, list[ConsumedRecord]]:
        """Records by partition, as soon as there are any; nothing when the time is over."""
        self._handing.come_back()
        found: dict[TopicPartition, list[ConsumedRecord]] = {}
        left = self.options.max_poll_records if max_records is None else max_records
        if not await self._ready(timeout_ms):
            return found
        self._handing.hold(self._ownership.places.values())
        for place in list(self._ownership.places.values()):
            while left > 0 and not place.paused and place.has_records:
                try:
                    records, next_offset = place.take(left)
                except ApiError:
                    if not found:
                        self._ownership.put_last(place.partition)
                        raise
                    left = 0  # what came before is handed out; a later poll says what is wrong here
                    break
                place.hand_out(records, next_offset)
                left -= len(records)
                earlier = found.get(place.partition)
                if earlier is None:
                    found[place.partition] = records
                else:
                    earlier.extend(records)
        for partition in found:
            self._ownership.put_last(partition)
        self._start_fetches()  # the brokers work while the caller does
        return found

    def __aiter__(self) -> "Consumer":
        return self

    async def __anext__(self) -> ConsumedRecord:
        while (record := self.next_at_hand()) is None:
            if self._closed:
                raise StopAsyncIteration
            await self._next_handing()
        return record

    def next_at_hand(self) -> ConsumedRecord | None:
        """The next record of the iteration, if there is one without waiting."""
        return self._handing.next_record()

    async def _next_handing(self) -> None:
        self._handing.come_back()
        try:
            while not await self._ready(None):
                pass
        except ClientError:
            if self._closed:
                return  # the iteration ends
            raise
        for place in self._ownership.places.values():
            if place.has_records and not place.paused:
                self._ownership.put_last(place.partition)
                self._handing.begin(place, self.options.max_poll_records)
                self._start_fetches()
                return

    def _stop_handing(self) -> None:
        if sys.exception() is None:
            self._handing.stop()
        else:
            self._handing.take_back()

    def not_handled(self) -> None:
        """What was handed out last could not be handled: it is handed out again, here or to whoever reads next, and no
        automatic commit goes beyond it. What was committed by `commit` meanwhile stays."""
        self._handing.take_back()
        self._wake()

    async def arrow(
        self, *, rows_min: int = ROWS_MIN, linger_ms: float = LINGER_MS
    ) -> "AsyncGenerator[pa.RecordBatch, None]":
        """Records as `pyarrow.RecordBatch`es, some `rows_min` rows each, fewer if so many do not come in `linger_ms`.

        As with `poll`, the position is behind what was handed out.
        """
        convert, places = converter(), self._ownership.places
        enough = partial(has_gathered, places, rows_min, self.options.max_partition_fetch_bytes)
        while True:
            self._handing.come_back()
            try:
                await self._ready(None)
                await self._ready(linger_ms, enough)
            except ClientError:
                if self._closed:
                    return
                raise
            self._handing.hold(places.values())
            batches = take_batches(places, rows_min)
            self._start_fetches()
            if batches:
                try:
                    columns = convert(batches)
                except BaseException:
                    self.not_handled()
                    raise
                yield columns

    def _has_records(self) -> bool:
        return any(place.has_records and not place.paused for place in self._ownership.places.values())

    async def _ready(self, timeout_ms: float | None, is_enough: Callable[[], bool] | None = None) -> bool:
        """Do what is due until there are records to hand out (or `is_enough` of them), or the time is over."""
        is_enough = is_enough or self._has_records
        loop = asyncio.get_running_loop()
        deadline_s = None if timeout_ms is None else loop.time() + timeout_ms / 1000
        while True:
            if self._closed:
                raise ClientError("the consumer is closed")
            self._wakened.clear()
            if self._membership is not None and not await self._advance(self._membership, deadline_s):
                return False
            if self._committer is not None and (self._membership is None or self._membership.may_commit):
                self._committer.commit_when_due(list(self._ownership.places.values()))
            self._collect()
            self._find_positions()
            if is_enough():
                return True
            self._start_fetches()
            # Even without a deadline one looks around now and then: automatic commits are due by time.
            wait_s = 1.0 if deadline_s is None else min(1.0, deadline_s - loop.time())
            if wait_s <= 0:
                return False
            try:
                async with asyncio.timeout(wait_s):
                    await self._wakened.wait()
            except TimeoutError:
                pass

    async def _advance(self, membership: ClassicMembership | ModernMembership, deadline_s: float | None) -> bool:
        """Put into effect what the group decided; False if that takes longer than the caller wants to wait."""
        # In a task of its own, because a caller that gives up must not leave half a rebalance behind.
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

    def _start_fetches(self) -> None:
        """Ask for what is not paused and not buffered well enough."""
        wanted, full = [], False
        for place in self._ownership.places.values():
            if place.cursor is None or place.paused:
                continue
            if place.buffered_bytes < self.options.max_partition_fetch_bytes:
                wanted.append(place.cursor)
            else:
                full = True
        # A long poll for the others would keep the busy partitions waiting behind it.
        self._fetcher.start(wanted, hurried=full)

    def _collect(self) -> None:
        failure: Exception | None = None
        for fetched in self._fetcher.collect():
            place = self._ownership.places.get(fetched.cursor.partition)
            if place is None:
                continue
            if fetched.error is None:
                place.add(fetched)
            elif fetched.cursor is place.cursor and not place.has_records:
                failure = self._recover_position(place, fetched) or failure
        if failure is not None:
            raise failure

    def _recover_position(self, place: Place, fetched: Fetched) -> Exception | None:
        """A position that the log does not have is reset, if the options say where to."""
        error = fetched.error
        if isinstance(error, LogTruncated) and self.options.reset is not None:
            log.warning("%s; going on from there", error)
            place.move(error.end_offset)
        elif isinstance(error, OffsetOutOfRange) and self.options.reset is not None:
            log.warning("%s; going on from %s", error, self.options.auto_offset_reset)
            place.move(None, wanted=self.options.reset)
        else:
            return error
        return None

    # --- positions ----------------------------------------------------------------------------------------------

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record to be handed out; None until it is known (see `poll`)."""
        return self._place(partition).position

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on from this offset."""
        self._handing.stop()
        self._place(partition).move(offset)
        self._wake()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on from the first record there is (in all partitions, unless some are named)."""
        self._seek_to(EARLIEST, partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on behind the last record there is."""
        self._seek_to(LATEST, partitions)

    def _seek_to(self, time: Time, partitions: Sequence[TopicPartition]) -> None:
        self._handing.stop()
        for partition in partitions or self.assignment:
            self._place(partition).move(None, wanted=time)
        self._wake()

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these partitions until `resume`; they stay assigned."""
        self._handing.stop()
        for partition in partitions:
            self._place(partition).paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """The end of `pause`."""
        for partition in partitions:
            self._place(partition).paused = False
        self._wake()

    def paused(self) -> list[TopicPartition]:
        return [partition for partition in self.assignment if self._place(partition).paused]

    def lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the end, as of the last fetch; None before it."""
        return self._place(partition).lag(read_committed=self.options.read_committed)

    def _place(self, partition: TopicPartition) -> Place:
        place = self._ownership.places.get(partition)
        if place is None:
            raise ValueError(f"{partition} is not assigned to this consumer")
        return place

    def _find_positions(self) -> None:
        """Places without a position get one: where a seek wants it, where the group left off, or by the options."""
        if self._locating is not None:
            if not self._locating.done():
                return
            task, self._locating = self._locating, None
            task.result()
        lost = [place for place in self._ownership.places.values() if place.position is None]
        if lost:
            group = None if self._committer is None else self._committer.offsets
            self._locating = asyncio.create_task(locate(self.cluster, self.options, group, lost))
            self._locating.add_done_callback(self._wake)

    # --- commits ------------------------------------------------------------------------------------------------

    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Store these positions (or all present ones) and wait for it; `CommitFailed` when the partitions are gone."""
        places = list(self._ownership.places.values())
        if offsets is None:
            wanted = positions_of(places)
        else:
            wanted = {
                TopicPartition(*partition): OffsetAndMetadata(place) if isinstance(place, int) else place
                for partition, place in offsets.items()
            }
        await self._group_committer().commit(wanted, places)

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has stored; partitions without anything are left out."""
        return await self._group_committer().offsets.fetch(partitions)

    def _group_committer(self) -> Committer:
        if self._committer is None:
            raise ValueError(_NO_GROUP)
        return self._committer

    def _committing_member(self) -> GroupMetadata:
        """A member without a place must not commit as if it were none: the coordinator may take that."""
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

    # --- questions ----------------------------------------------------------------------------------------------

    async def offsets_for_times(
        self, times_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTime | None]:
        """The first record at or after each time; None where nothing is that late."""
        found = await list_offsets(
            self.cluster,
            {partition: Time(time_ms) for partition, time_ms in times_ms.items()},
            read_committed=self.options.read_committed,
        )
        return {partition: place if place.offset >= 0 else None for partition, place in found.items()}

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return await resolve(self.cluster, [(partition, EARLIEST) for partition in partitions])

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Behind the last record; with read_committed behind the last one that is decided."""
        wanted = [(partition, LATEST) for partition in partitions]
        return await resolve(self.cluster, wanted, read_committed=self.options.read_committed)

    # --- plumbing -----------------------------------------------------------------------------------------------

    def _wake(self, _: object = None) -> None:
        self._wakened.set()

    def _coordinator(self) -> Coordinator:
        """One for offsets and one for the membership: a JoinGroup that waits must not hold up a commit."""
        coordinator = Coordinator(self.cluster, self.options.group_id or "", CoordinatorKind.GROUP)
        self._coordinators.append(coordinator)
        return coordinator
