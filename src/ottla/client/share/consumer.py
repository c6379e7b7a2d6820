"""`ShareConsumer`: takes records from a share group's queue, one by one acknowledged (KIP-932).

    async with ShareConsumer("host:port", ShareOptions(group_id="work")) as consumer:
        consumer.subscribe(["jobs"])
        async for delivery in consumer:
            with delivery:      # accepted at the end of the block, released if it raises
                ...

Rules:
- Records are fetched when the caller polls (iterating polls) and nothing is left of the last fetch: fetched records are
  locked, so nothing is fetched ahead. Heartbeats and acknowledgements run in the background.
- Deliveries may be acknowledged in any order, from several tasks or threads, during a poll. Only in implicit mode does
  a poll (or the next step of an iteration, or a commit) accept the deliveries handed out before.
- Good records are handed out first; a failure is raised by the next call, or by the same if there are no good records.
  The last failure of every partition (and every broker) is kept, and each is raised in its turn.
- The broker's answers to acknowledgements, by partition, are passed to `on_acknowledged`, and a commit also returns
  those of its own. A refused one (its lock had expired) means that another consumer gets the record: at least once, as
  promised.
- Closing sends the pending acknowledgements and releases all other records.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from ottla.client.checks import checked_names, checked_number, checked_options
from ottla.client.closing import Closing
from ottla.client.cluster import Cluster
from ottla.client.coordinator import Coordinator, CoordinatorKind
from ottla.client.errors import ClientError, LastingError, error_code
from ottla.client.membership.share import ShareMembership
from ottla.client.metadata import NO_LEADER
from ottla.client.options import ClientOptions, GivenSecurity
from ottla.client.share.delivery import Acknowledgement, Delivery, acquired_of
from ottla.client.share.options import Acknowledged, ShareOptions
from ottla.client.share.session import IdPartition, MemberShareSession, ShareFetched
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition

log = logging.getLogger(__name__)

# The errors that mean that the broker has dropped the session: the next fetch opens another.
_SESSION_GONE = (
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
)


@dataclass(slots=True)
class _Lease:
    """The records that one fetch acquired from one partition, referred to by their deliveries."""

    consumer: "ShareConsumer"
    session: MemberShareSession
    name: IdPartition
    until_s: float

    def acknowledge(self, delivery: Delivery, kind: Acknowledgement) -> None:
        self.consumer.acknowledge(self, delivery, kind)


class ShareConsumer(Closing):
    """A member of a share group; see the module's rules."""

    def __init__(
        self,
        cluster: Cluster | str | Sequence[str] | ClientOptions,
        options: ShareOptions,
        *,
        security: GivenSecurity = None,
    ) -> None:
        self.options = options = checked_options(options, ShareOptions)
        self._owns_cluster = not isinstance(cluster, Cluster)
        self.cluster = Cluster.of(cluster, security)
        self._loop = asyncio.get_running_loop()
        self._wakened = asyncio.Event()
        self._coordinator = Coordinator(self.cluster, options.group_id, CoordinatorKind.GROUP)
        self._membership = ShareMembership(self.cluster, self._coordinator, options, self._wake)
        self._sessions: dict[int, MemberShareSession] = {}  # by node
        self._fetching: dict[int, asyncio.Task[None]] = {}  # by node
        self._flushing: dict[asyncio.Task[None], None] = {}
        self._looking: asyncio.Task[None] | None = None  # task that looks up leaders
        self._failures: dict[TopicPartition | int, Exception] = {}  # not raised yet; by partition, or by node
        self._is_failure_next = False  # the last call handed out records; the next one raises a failure
        self._buffer: deque[Delivery] = deque()  # fetched, not handed out
        self._handed: list[Delivery] = []  # by the last call; in implicit mode the next one accepts them
        self._owing: dict[MemberShareSession, None] = {}  # sessions with acknowledgements that were not sent
        self._refused: dict[TopicPartition, ApiError] = {}  # since the last commit
        self._failed = 0  # fetches in a row without a result
        self._closed = False

    async def close(self) -> None:
        """Send the pending acknowledgements, release the other records, leave the group."""
        if self._closed:
            return
        self._closed = True
        self._wake()  # ends a `poll` in another task
        try:
            if self._looking is not None:
                self._looking.cancel()
            # A fetch in flight ends first: its answer may acquire records, which the end of the session releases.
            await asyncio.gather(*self._fetching.values(), *self._flushing, return_exceptions=True)
            for session in self._sessions.values():
                _drop_timer(session)
            for told in await asyncio.gather(*(session.close() for session in self._sessions.values())):
                self._report(told)
            await self._membership.leave()
        finally:
            self._buffer.clear()
            self._coordinator.close()
            for session in self._sessions.values():
                self.cluster.disconnect(session)
            if self._owns_cluster:
                await self.cluster.close()

    # --- subscription -------------------------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics, instead of those before."""
        if isinstance(topics, str):
            raise TypeError("subscribe takes a list of names")
        self._membership.subscribe(checked_names(topics, "topic"))
        self._wake()

    @property
    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that this member reads at the moment; others may read the same."""
        return sorted(self._membership.assignment.values())

    @property
    def member_id(self) -> str:
        return self._membership.member_id

    # --- reading ------------------------------------------------------------------------------------------------

    async def poll(self, max_records: int | None = None, timeout_ms: float = 1_000) -> list[Delivery]:
        """Return records as soon as there are any; an empty list when the time is over."""
        records_max = self.options.max_poll_records
        if max_records is not None:
            records_max = checked_number(max_records, "max_records", at_least=1)
        self._accept_handed()
        found = await self._next(records_max, records_max, self._loop.time() + timeout_ms / 1000)
        self._handed = found[:]
        return found

    def __aiter__(self) -> "ShareConsumer":
        return self

    async def __anext__(self) -> Delivery:
        self._accept_handed()
        found: list[Delivery] = []
        try:
            while not found:
                found = await self._next(1, self.options.max_poll_records, self._loop.time() + 1.0)
        except ClientError:
            if self._closed:
                raise StopAsyncIteration from None
            raise
        self._handed = found
        return found[0]

    async def _next(self, records_max: int, fetched_max: int, deadline_s: float) -> list[Delivery]:
        """Return up to `records_max` records as soon as there are any; if there are none, up to `fetched_max` are
        fetched.
        """
        while True:
            if self._closed:
                raise ClientError("the share consumer is closed")
            self._wakened.clear()
            self._membership.polled()
            found = [] if self._is_failure_next else self._take(records_max)
            self._is_failure_next = bool(found and self._failures)
            if not found and self._failures:
                raise self._failures.pop(next(iter(self._failures)))
            left_s = deadline_s - self._loop.time()
            if found or left_s <= 0:
                return found
            self._start_fetches(fetched_max, int(min(self.options.fetch_max_wait_ms, left_s * 1000)))
            try:
                async with asyncio.timeout(left_s):
                    await self._wakened.wait()
            except TimeoutError:
                pass

    def _take(self, records_max: int) -> list[Delivery]:
        """Take records from the buffer, without those whose lock has expired there."""
        found: list[Delivery] = []
        now_s = self._loop.time()
        while self._buffer and len(found) < records_max:
            delivery = self._buffer.popleft()
            if delivery.lease.until_s > now_s:
                found.append(delivery)
        return found

    def _accept_handed(self) -> None:
        handed, self._handed = self._handed, []
        if self.options.is_implicit:
            for delivery in handed:
                if delivery.acknowledgement is None:
                    delivery.accept()

    def not_handled(self) -> None:
        """Declare that the records handed out last could not be handled: in implicit mode no poll or commit accepts
        them. They are released when this consumer is closed, or when their locks expire.
        """
        self._handed = []

    def not_received(self) -> None:
        """Put back the records that the last call returned, because its caller was interrupted and did not get them."""
        handed, self._handed = self._handed, []
        self._buffer.extendleft(each for each in reversed(handed) if each.acknowledgement is None)

    # --- acknowledging ------------------------------------------------------------------------------------------

    async def commit(self) -> dict[TopicPartition, ApiError]:
        """Send all acknowledgements, wait for the answers, and return the errors of those refused since the last
        commit.
        """
        self._accept_handed()
        sessions = list(dict.fromkeys([*self._sessions.values(), *self._owing]))
        # In parallel: a broker that does not answer holds up no other's acknowledgements.
        for told in await asyncio.gather(*(session.send_pending() for session in sessions)):
            self._report(told)
        for session in sessions:
            self._paid(session)
        refused, self._refused = self._refused, {}
        return refused

    def acknowledge(self, lease: "_Lease", delivery: Delivery, kind: Acknowledgement) -> None:
        """Acknowledge a delivery; may be called from another thread than the loop's."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        session, name = lease.session, lease.name
        if delivery.is_settled and not session.is_pending(name, delivery.offset):
            raise ValueError(f"offset {delivery.offset} of {delivery.topic} was acknowledged before")
        if kind is Acknowledgement.RENEW:
            session.check_renewal()
        delivery.acknowledgement = kind
        if here:
            self._note(session, name, delivery.offset, kind)
        else:
            self._loop.call_soon_threadsafe(self._note, session, name, delivery.offset, kind)

    def _note(self, session: MemberShareSession, name: IdPartition, offset: int, kind: Acknowledgement) -> None:
        session.acknowledge(name, offset, kind)
        self._owe(session, at_once=kind is Acknowledgement.RENEW)

    def _owe(self, session: MemberShareSession, *, at_once: bool = False) -> None:
        """Note that the session has acknowledgements to send: with the next fetch, or after the linger time."""
        self._owing[session] = None
        if session.flush is None or at_once:
            _drop_timer(session)
            linger_s = 0 if at_once else self.options.acknowledge_linger_ms / 1000
            session.flush = self._loop.call_later(linger_s, self._flush, session)

    def _paid(self, session: MemberShareSession) -> None:
        if not session.pending:
            _drop_timer(session)
            self._owing.pop(session, None)

    def _flush(self, session: MemberShareSession) -> None:
        """Send the acknowledgements of a session, because there was no fetch within the linger time."""
        session.flush = None
        if session.pending and not self._closed:

            async def send() -> None:
                self._report(await session.send_pending())
                self._paid(session)

            task = asyncio.create_task(send())
            self._flushing[task] = None
            task.add_done_callback(self._flushing.pop)

    def _report(self, outcomes: Iterable[Acknowledged]) -> None:
        for outcome in outcomes:
            if outcome.error is not None:
                self._refused[outcome.partition] = outcome.error
                log.warning(
                    "share group %s: acknowledgements of %d records of %s refused: %s",
                    self.options.group_id,
                    len(outcome.offsets),
                    outcome.partition,
                    outcome.error,
                )
            if self.options.on_acknowledged is not None:
                self.options.on_acknowledged(outcome)

    # --- fetching -----------------------------------------------------------------------------------------------

    def _start_fetches(self, records_max: int, max_wait_ms: int) -> None:
        """Start one ShareFetch per broker that leads an assigned partition, unless one is in flight there."""
        by_node: dict[int, dict[IdPartition, TopicPartition]] = {}
        unknown: list[TopicPartition] = []
        for name, partition in self._membership.assignment.items():
            leader = self._leader_of(partition)
            if leader is None:
                unknown.append(partition)
            else:
                by_node.setdefault(leader, {})[name] = partition
        if unknown and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look_for(unknown))
            self._looking.add_done_callback(self._wake)
        for node_id, wanted in by_node.items():
            if node_id not in self._fetching:
                task = self._fetching[node_id] = asyncio.create_task(
                    self._fetch(node_id, wanted, records_max, max_wait_ms)
                )
                task.add_done_callback(partial(self._fetched, node_id))

    def _leader_of(self, partition: TopicPartition) -> int | None:
        topic = self.cluster.fresh_topic(partition.topic)
        info = None if topic is None else topic.partition(partition.partition)
        return None if info is None or info.leader == NO_LEADER else info.leader

    async def _look_for(self, partitions: list[TopicPartition]) -> None:
        """Look up the leaders of partitions; there may be none for a while."""
        try:
            await self.cluster.refresh(dict.fromkeys(partition.topic for partition in partitions))
            if any(self._leader_of(partition) is None for partition in partitions):
                await asyncio.sleep(self.cluster.options.retry_backoff_ms / 1000)
        except (ClientError, ApiError) as error:
            log.info("share group %s: no metadata: %s", self.options.group_id, error)

    async def _fetch(
        self, node_id: int, wanted: dict[IdPartition, TopicPartition], records_max: int, max_wait_ms: int
    ) -> None:
        session = self._sessions.get(node_id)
        if session is None or session.lost is not None:
            if session is not None:
                await self._retire(session)
            session = MemberShareSession(self.cluster, self.options, node_id, self.member_id)
            self._sessions[node_id] = session
        fetched, outcomes = await session.fetch(wanted, records_max, max_wait_ms)
        self._paid(session)
        failed = [each for each in fetched if not self._keep_what_is_good(session, each)]
        self._report(outcomes)  # after the records were kept: a callback may raise
        if session.lost is not None:
            await self._recover(session.lost, wanted.values())
            return
        self._failed = self._failed + 1 if failed else 0
        if failed:
            self._wake()  # the caller may take the records of the others
            await asyncio.sleep(self.cluster.options.seeking_ms(self._failed) / 1000)

    async def _retire(self, session: MemberShareSession) -> None:
        """Drop the buffered records of a lost session: the broker has released them, and another consumer may have
        them.
        """
        self._report(await session.send_pending())  # reports them as lost, without a request
        self._paid(session)
        self._buffer = deque(each for each in self._buffer if cast("_Lease", each.lease).session is not session)

    async def _recover(self, error: ApiError | ClientError, partitions: Iterable[TopicPartition]) -> None:
        """Pause before another session is opened; raise a permanent error, which the next poll raises."""
        if isinstance(error, LastingError):
            raise error
        if isinstance(error, ApiError) and not error.code.retriable and error.code not in _SESSION_GONE:
            raise error
        log.info("share group %s: share session lost: %s", self.options.group_id, error)
        if isinstance(error, ClientError):
            for topic in dict.fromkeys(partition.topic for partition in partitions):
                self.cluster.metadata.mark_stale(topic)
        self._failed += 1
        if self._failed > 1 or isinstance(error, ClientError):
            await asyncio.sleep(self.cluster.options.seeking_ms(self._failed) / 1000)

    def _keep_what_is_good(self, session: MemberShareSession, fetched: ShareFetched) -> bool:
        """Buffer the records of one partition; keep its failure, so that it does not affect the others."""
        try:
            return self._keep(session, fetched)
        except Exception as error:
            self._failures[fetched.partition] = error
            return False

    def _keep(self, session: MemberShareSession, fetched: ShareFetched) -> bool:
        """Buffer the records of one partition; acknowledge gaps and unreadable records. Return False on an error."""
        answer, partition, name = fetched.answer, fetched.partition, fetched.name
        code = error_code(answer.error_code)
        if code:
            if not code.retriable and code != ErrorCode.UNKNOWN_TOPIC_ID:
                self._failures[partition] = ApiError(code, answer.error_message)
            self.cluster.metadata.mark_stale(partition.topic)
            return False
        found = acquired_of(partition, answer, check_crc=self.options.check_crcs)
        lease = _Lease(self, session, name, self._loop.time() + fetched.lock_ms / 1000)
        self._buffer.extend(Delivery.of(record, count, lease) for record, count in found.records)
        for offsets, kind in ((found.gaps, Acknowledgement.GAP), (found.unreadable, Acknowledgement.RELEASE)):
            if offsets:
                session.acknowledge_ranges(name, offsets, kind)
                self._owe(session)
        if found.error is not None:
            self._failures[partition] = found.error
        return True

    def _fetched(self, node_id: int, task: "asyncio.Task[None]") -> None:
        del self._fetching[node_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failures[node_id] = error  # type: ignore[assignment]
        self._wake()

    # --- plumbing -----------------------------------------------------------------------------------------------

    def _wake(self, _: object = None) -> None:
        self._wakened.set()


def _drop_timer(session: MemberShareSession) -> None:
    if session.flush is not None:
        session.flush.cancel()
        session.flush = None
