"""How ShareFetch requests are answered: records are acquired for the member as they are read.

The answer is sent as soon as there are records (`min_bytes` of them; a request for 0 is answered when the first
partition is loaded), or when the time is over. Records are only acquired when the answer is sent, so a member that
disconnects while it waits has acquired none. The first batch is sent whole even if it is larger than `max_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial

from ottla.log.files.disk import Cold
from ottla.model.errors import ApiError, ErrorCode
from ottla.replica.partition import Partition
from ottla.server.fetch.engine import Fetch, FetchEngine, Reads
from ottla.server.fetch.share_sessions import Named, ShareSession
from ottla.server.loop.later import Later, settled
from ottla.server.shares.live_partition import LivePartition
from ottla.server.shares.record_acquisition import missing, take, waiting_bytes
from ottla.server.shares.share_partitions import SharePartitions
from ottla.server.shares.taken_records import NOTHING, ShareFound, Taken
from ottla.shares.partition.terms import Want
from ottla.shares.state.partition import SharePartitionId
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest

_RECORD_LIMIT = 1  # share_acquire_mode; 0 is batch-optimised


ShareFetch = Fetch[LivePartition, Taken, ShareFound]


def read_shares(
    engine: FetchEngine,
    shares: SharePartitions,
    session: ShareSession,
    request: ShareFetchRequest,
    now_ms: Callable[[], int],
    readable: Callable[[bytes], bool] | None,
) -> Later[ShareFound]:
    """Return what the session's member gets, perhaps after a wait."""
    reads = ShareReads(engine, shares, session, request, now_ms)
    answer: ShareFound | Later[ShareFound] = ShareFound({}, {}, [])
    fetch: ShareFetch = Fetch(engine, reads, request.max_bytes, 1, request.max_wait_ms)
    if not request.is_renew_ack and request.max_records > 0 and fetch.max_bytes > 0:
        reads.begin(readable)
        answer = fetch.answer()
    if isinstance(answer, Later):
        return answer
    return settled(answer)


class ShareReads(Reads[LivePartition, Taken, ShareFound]):
    __slots__ = (
        "_by_key",
        "_engine",
        "_errors",
        "_left_records",
        "_live",
        "_moment_ms",
        "_now_ms",
        "_request",
        "_session",
        "_shares",
    )

    def __init__(
        self,
        engine: FetchEngine,
        shares: SharePartitions,
        session: ShareSession,
        request: ShareFetchRequest,
        now_ms: Callable[[], int],
    ) -> None:
        self.urgent = False
        self._engine = engine
        self._shares = shares
        self._session = session
        self._request = request
        self._now_ms = now_ms
        self._errors: dict[Named, ApiError] = {}
        self._live: dict[LivePartition, Named] = {}
        self._by_key: dict[Hashable, LivePartition] = {}  # set while the request waits
        self._moment_ms = 0  # the time of this attempt
        self._left_records = 0  # how many more records this attempt may acquire

    def begin(self, readable: Callable[[bytes], bool] | None) -> None:
        """Find the session's share partitions, in turn; some may still have to be loaded."""
        for named in self._session.in_turn():
            try:
                if readable is not None and not readable(named[0]):
                    raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                live = self._shares.get(SharePartitionId(self._session.group_id, *named))
            except ApiError as error:
                self._errors[named] = error
            else:
                self._live[live] = named

    # --- attempts

    def to_read(self, fetch: ShareFetch, changed: Hashable | None) -> Sequence[LivePartition]:
        request = self._request
        self._moment_ms, self._left_records = self._now_ms(), request.max_records
        is_last = changed is None and (fetch.later is not None or request.max_wait_ms <= 0)
        # Only a changed partition can have new records: with many partitions, an append must not read all of them.
        some: Iterable[LivePartition] = self._live if changed is None else (self._by_key[changed],)
        for live in tuple(some):
            if live.error is not None and live in self._live:
                self._give_up(live, live.error)
        if not is_last and request.min_bytes > 1:
            some = self._loaded(self._live)
            if not self._has_min_bytes(some, fetch.max_bytes):
                some = ()
        self.urgent = not self._live or (request.min_bytes <= 0 and bool(self._readable()))
        return self._loaded(some)

    def _loaded(self, some: Iterable[LivePartition]) -> list[LivePartition]:
        return [live for live in some if live.state is not None and live in self._live]

    def _has_min_bytes(self, some: Iterable[LivePartition], max_bytes: int) -> bool:
        """Return whether roughly `min_bytes` could be acquired."""
        wanted = min(self._request.min_bytes, max_bytes)
        for live in some:
            try:
                cold = missing(live, self._moment_ms)
                if cold is None:
                    wanted -= waiting_bytes(live, max_bytes, self._moment_ms)
                else:
                    self._warm(live, cold)
            except ApiError as error:
                self._give_up(live, error)
            if wanted <= 0:
                return True
        return False

    def count(self) -> int:
        return len(self._live)

    def find(self, asked: LivePartition) -> Partition:
        return asked.partition

    def read(self, fetch: ShareFetch, asked: LivePartition, partition: Partition, left_bytes: int) -> Taken:
        if self._left_records <= 0 or (left_bytes <= 0 and fetch.size_bytes):
            return NOTHING
        cold = missing(asked, self._moment_ms)
        if cold is not None:
            raise cold
        request = self._request
        want = Want(
            self._session.member_id,
            self._left_records,
            max(request.batch_size, 1),
            request.share_acquire_mode == _RECORD_LIMIT,
        )
        taken = take(self._shares, asked, want, left_bytes, self._moment_ms)
        if taken.acquired:
            partition.fetch_requests += 1
            partition.sent_bytes += len(taken.records)
            asked.deliveries.were_acquired(taken.acquired)
            self._left_records -= sum(each.last - each.first + 1 for each in taken.acquired)
        return taken

    def look_up(self, fetch: ShareFetch, asked: LivePartition, partition: Partition, cold: Cold) -> bool:
        return self._warm(asked, cold)

    def _warm(self, live: LivePartition, cold: Cold) -> bool:
        return self._engine.cold.warm(cold, live, partial(self._shares.look_soon, live))

    def nothing_yet(self, asked: LivePartition, partition: Partition) -> Taken:
        return NOTHING

    def refuse(self, fetch: ShareFetch, asked: LivePartition, partition: Partition | None, error: ApiError) -> None:
        self._give_up(asked, error)
        self.urgent = self.urgent or not self._live

    def _give_up(self, live: LivePartition, error: ApiError) -> None:
        self._errors[self._live.pop(live)] = error

    # --- waiting and answering

    def wait_for(self, fetch: ShareFetch) -> Sequence[Hashable]:
        for live in self._live:
            self._by_key[live] = self._by_key[live.partition] = live
        return tuple(self._by_key)

    def respond(self, fetch: ShareFetch) -> ShareFound:
        taken = {_named(live): taken for live, (_, taken) in fetch.found.items() if taken.acquired}
        self._moment_ms = self._now_ms()
        return ShareFound(taken, self._errors, self._readable())

    def _readable(self) -> list[Named]:
        """Return the partitions from which records may be acquired: loaded, and below their limit of
        acquired records.
        """
        now_ms = self._moment_ms
        return [self._live[live] for live in self._loaded(self._live) if live.ready(now_ms).can_acquire(now_ms)]


def _named(live: LivePartition) -> Named:
    return live.id.topic_id, live.id.partition
