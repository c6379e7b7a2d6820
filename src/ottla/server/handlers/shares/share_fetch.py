"""ShareFetch (key 78): records of share partitions for one member, with acknowledgements of earlier ones on the way.

v2 batch-optimised or record-limited acquiring, renewed locks

Acknowledgements are dealt with first; then records are handed out as soon as there are any (`min_bytes` of them; who
wants 0 is answered when the first partition is loaded), or when the time is over. Records are only handed out when the
answer leaves, so a member that goes away while it waits has none. The first batch is given whole even if it is larger
than `max_bytes`. The first answer of a session names every partition that was read, also those without records.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ottla.log.files.disk import StorageError
from ottla.model.errors import ApiError, ErrorCode
from ottla.replica.partition import Partition
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.leader_hints import name_share_leaders
from ottla.server.fetch.share_reading import NOTHING, Taken, missing, take, waiting_bytes
from ottla.server.fetch.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, Named, ShareSession
from ottla.server.loop.later import Answer, Later, gather
from ottla.server.shares.acknowledgements import acknowledge, check_member
from ottla.server.shares.live_partition import LivePartition
from ottla.shares.partition.terms import Want
from ottla.shares.state.partition import SharePartitionId
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest, ShareFetchResponse

TopicResponse = ShareFetchResponse.ShareFetchableTopicResponse
PartitionData = TopicResponse.PartitionData

_RECORD_LIMIT = 1  # share_acquire_mode; 0 is batch-optimised


@handles(ShareFetchRequest)
def share_fetch(request: ShareFetchRequest, context: Context) -> Answer[ShareFetchResponse]:
    try:
        group_id, member_id = check_member(request.group_id, request.member_id)
        if request.is_renew_ack:
            _check_renew(request)
        session = _session(request, group_id, member_id, context)
    except ApiError as error:
        response = _response([], 0)
        response.error_code, response.error_message = error.code, error.text
        return _later(response, request, context) if error.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED else response
    shares = context.services.share_partitions
    outcomes = acknowledge(shares, group_id, member_id, request.topics, renew=request.is_renew_ack)
    if request.share_session_epoch == FINAL_EPOCH:
        return _close(request, session, outcomes, context)
    return _ShareFetch(request, session, outcomes, context).answer()


def _later(response: ShareFetchResponse, request: ShareFetchRequest, context: Context) -> Later[ShareFetchResponse]:
    """Who finds no place would ask again at once; it is answered when it would have been without records."""
    later: Later[ShareFetchResponse] = Later()

    def answer(_: object) -> bool:
        later.set(response)
        return True

    context.services.waiters.watch(later, (), answer, max(request.max_wait_ms, 0))
    return later


def _check_renew(request: ShareFetchRequest) -> None:
    """A request that renews locks must not ask for records."""
    if request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms:
        raise ApiError(ErrorCode.INVALID_REQUEST, "A request that renews locks must not ask for records.")


def _session(request: ShareFetchRequest, group_id: str, member_id: str, context: Context) -> ShareSession:
    sessions = context.services.share_partitions.sessions
    named = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    if request.share_session_epoch == INITIAL_EPOCH:
        if any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        session = sessions.open(group_id, member_id, named)
        context.when_closed[session.key] = lambda: sessions.lost(session)
        return session
    session = sessions.enter(group_id, member_id, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        session.add(named)
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop((topic.topic_id, index), None)
    return session


def _close(
    request: ShareFetchRequest,
    session: ShareSession,
    outcomes: dict[Named, Later[ApiError | None]],
    context: Context,
) -> Answer[ShareFetchResponse]:
    shares = context.services.share_partitions
    shares.sessions.close(session)
    context.when_closed.pop(session.key, None)
    released = shares.release(session, session.partitions)
    lock_ms = shares.rules.of(session.group_id).records.lock_ms

    def respond(errors: list[ApiError | None]) -> ShareFetchResponse:
        shares.closed(session)
        found = {name: _data(name[1], ack=error) for name, error in zip(outcomes, errors, strict=False)}
        return _response(_topics(found), lock_ms)

    answer = gather([*outcomes.values(), *released.values()]).map(respond)
    return answer.taken() if answer.done else answer


class _ShareFetch:
    """One fetch while it is being answered; it may try several times before it finds something."""

    def __init__(
        self,
        request: ShareFetchRequest,
        session: ShareSession,
        outcomes: dict[Named, Later[ApiError | None]],
        context: Context,
    ) -> None:
        self.request = request
        self.session = session
        self.outcomes = outcomes
        self.context = context
        self.shares = context.services.share_partitions
        self.max_bytes = min(request.max_bytes, context.partitions.fetch_max_bytes)
        self.found: dict[Named, Taken] = {}
        self.errors: dict[Named, ApiError] = {}
        self.live: dict[Named, LivePartition] = {}
        self.places: dict[LivePartition | Partition, Named] = {}  # while it waits: whom a change concerns
        self.read: list[Named] = []  # at the end: what could have given records, and perhaps did
        self.later: Later[None] = Later()

    def answer(self) -> Answer[ShareFetchResponse]:
        request = self.request
        acks = gather(list(self.outcomes.values()))
        if request.is_renew_ack or request.max_records <= 0 or self.max_bytes <= 0:
            self.later.set(None)
        else:
            self._find()
            if self._try(list(self.live), last=request.max_wait_ms <= 0) or not self.live:
                self._done()
            else:
                for name, live in self.live.items():
                    self.places[live] = self.places[live.partition] = name
                waiters = self.context.services.waiters
                waiters.watch(self.later, self.places, self._again, request.max_wait_ms, may_be_hurried=True)
        # The acknowledgements are answered together with the records, so that both have come when one has.
        answer = gather_both(acks, self.later).map(self._respond)
        return answer.taken() if answer.done else answer

    def _find(self) -> None:
        """The session's share partitions, in turn; some may still have to be loaded."""
        for topic_id, index in self.session.in_turn():
            try:
                live = self.shares.get(SharePartitionId(self.session.group_id, topic_id, index))
            except ApiError as error:
                self.errors[topic_id, index] = error
                continue
            self.live[topic_id, index] = live

    def _again(self, changed: LivePartition | Partition | None) -> bool:
        """Something changed, or (None) the time is over."""
        # Nothing but what changed can have anything new; many partitions must not make every append a long walk.
        names = list(self.live) if changed is None else [self.places[changed]]
        if not self._try(names, last=changed is None) and self.live and changed is not None:
            return False
        self._done()
        return True

    def _done(self) -> None:
        self.read = self._readable()
        self.later.set(None)

    def _readable(self) -> list[Named]:
        """The partitions that records may come from: loaded, and not at their limit of records that are out."""
        now_ms = self.context.now_ms()
        return [name for name, live in self._loaded(list(self.live)) if live.ready(now_ms).can_acquire(now_ms)]

    def _try(self, names: list[Named], *, last: bool) -> bool:
        """Hands out what there is, if it is enough; whether it was."""
        now_ms = self.context.now_ms()
        for name in names:
            live = self.live.get(name)
            if live is not None and live.error is not None:
                self.errors[name] = live.error
                del self.live[name]
        if not last and self.request.min_bytes > 1:
            names = list(self.live)
            if not self._enough(self._loaded(names), now_ms):
                return False
        left_bytes, left_records = self.max_bytes, self.request.max_records
        for name, live in self._loaded(names):
            if left_records <= 0 or (left_bytes <= 0 and self.found):
                break
            taken = self._take(name, live, left_bytes, left_records, now_ms)
            if taken.acquired:
                self.found[name] = taken
                left_bytes -= len(taken.records)
                live.partition.sent_bytes += len(taken.records)
                left_records -= sum(each.last - each.first + 1 for each in taken.acquired)
        return bool(self.found) or (self.request.min_bytes <= 0 and bool(self._readable()))

    def _loaded(self, names: list[Named]) -> list[tuple[Named, LivePartition]]:
        found = ((name, self.live.get(name)) for name in names)
        return [(name, live) for name, live in found if live is not None and live.state is not None]

    def _enough(self, ready: list[tuple[Named, LivePartition]], now_ms: int) -> bool:
        wanted = min(self.request.min_bytes, self.max_bytes)
        for name, live in ready:
            try:
                if not self._is_cold(live, now_ms):
                    wanted -= waiting_bytes(live, self.max_bytes, now_ms)
            except ApiError as error:
                self.errors[name] = error
                del self.live[name]
            if wanted <= 0:
                return True
        return False

    def _take(self, name: Named, live: LivePartition, max_bytes: int, max_records: int, now_ms: int) -> Taken:
        request = self.request
        strict = request.share_acquire_mode == _RECORD_LIMIT
        want = Want(self.session.member_id, max_records, max(request.batch_size, 1), strict)
        try:
            if self._is_cold(live, now_ms):
                return NOTHING
            return take(self.shares, live, want, max_bytes, now_ms)
        except ApiError as error:
            self.errors[name] = error
        except StorageError as error:
            self.context.partitions.storage_failed(live.partition, error)
            self.errors[name] = ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        del self.live[name]
        return NOTHING

    def _is_cold(self, live: LivePartition, now_ms: int) -> bool:
        """Whether its records must be read from the disk first; then they are, and whoever waits looks again."""
        cold = missing(live, now_ms)
        if cold is not None:
            self.context.services.cold.warm(cold, live, partial(self.shares.look_soon, live))
        return cold is not None

    def _respond(self, acks: list[ApiError | None]) -> ShareFetchResponse:
        acked = dict(zip(self.outcomes, acks, strict=True))
        names = dict.fromkeys([*self.found, *self._named_without_records(), *self.errors, *acked])
        data = {
            name: _data(name[1], self.found.get(name, NOTHING), self.errors.get(name), acked.get(name))
            for name in names
        }
        response = _response(_topics(data), self.shares.rules.of(self.session.group_id).records.lock_ms)
        name_share_leaders(response, self.context)
        return response

    def _named_without_records(self) -> list[Named]:
        if self.request.share_session_epoch == INITIAL_EPOCH:
            return self.read
        told = [name for name in self.read if self.session.must_name(name)]
        for name in self.errors:
            self.session.name_again(name)
        return told


def gather_both(acks: Later[list[ApiError | None]], records: Later[None]) -> Later[list[ApiError | None]]:
    """The first's answer once both are there; giving up on it gives up on the second."""
    both: Later[list[Any]] = gather([acks, records])
    both.on_abandon = records.abandon
    return both.map(lambda values: values[0])


def _data(
    index: int, taken: Taken = NOTHING, error: ApiError | None = None, ack: ApiError | None = None
) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error.code if error is not None else 0,
        error_message=error.text if error is not None else None,
        acknowledge_error_code=ack.code if ack is not None else 0,
        acknowledge_error_message=ack.text if ack is not None else None,
        current_leader=PartitionData.LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
        records=taken.records,
        acquired_records=[
            PartitionData.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
            for first, last, count in taken.acquired
        ],
    )


def _topics(found: dict[Named, PartitionData]) -> list[TopicResponse]:
    topics: dict[bytes, TopicResponse] = {}
    for (topic_id, _), data in found.items():
        topics.setdefault(topic_id, TopicResponse(topic_id=topic_id, partitions=[])).partitions.append(data)
    return list(topics.values())


def _response(topics: list[TopicResponse], lock_ms: int) -> ShareFetchResponse:
    return ShareFetchResponse(error_code=0, acquisition_lock_timeout_ms=lock_ms, responses=topics, node_endpoints=[])
