"""ShareFetch (key 78): acquire records of share partitions for one member, and acknowledge earlier ones.

v2 batch-optimised or record-limited acquiring, renewed locks

Acknowledgements are handled first; then records are acquired (`server/shares/share_reads.py`). The first answer of a
session names every partition that was read, even those without records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import FIRST_LEADER_EPOCH
from ottla.model.session_epochs import FINAL_EPOCH, INITIAL_EPOCH
from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.leader_hints import name_share_leaders
from ottla.server.api.needs import Needs, on_group, on_topic
from ottla.server.fetch.share_sessions import Named, ShareSession
from ottla.server.loop.later import Answer, Later, gather, settled
from ottla.server.shares.taken_records import NOTHING, ShareFound, Taken
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest, ShareFetchResponse

TopicResponse = ShareFetchResponse.ShareFetchableTopicResponse
PartitionData = TopicResponse.PartitionData


@handles(
    ShareFetchRequest,
    needs=Needs((on_group(AclOperation.READ),), asks=(on_topic(AclOperation.READ),)),
)
def share_fetch(request: ShareFetchRequest, context: Context) -> Answer[ShareFetchResponse]:
    shares = context.shares
    try:
        group_id, member_id = shares.check_member(request.group_id, request.member_id)
        if request.is_renew_ack:
            _check_renew(request)
        session = _session(request, group_id, member_id, context)
    except ApiError as error:
        response = _response([], 0)
        response.error_code, response.error_message = error.code, error.text
        return _later(response, request, context) if error.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED else response
    readable = _readable(context)
    topics = request.topics if readable is None else [each for each in request.topics if readable(each.topic_id)]
    outcomes = shares.acknowledge(group_id, member_id, topics, renew=request.is_renew_ack)
    if len(topics) < len(request.topics):
        outcomes |= _refused(request, {topic.topic_id for topic in topics})
    if request.share_session_epoch == FINAL_EPOCH:
        return _close(request, session, outcomes, context)
    records = shares.read(session, request, readable)
    answer = _both(gather(list(outcomes.values())), records).map(
        lambda both: _response_to(request, session, outcomes, context, *both)
    )
    return answer.soonest()


def _readable(context: Context) -> Callable[[bytes], bool] | None:
    """Return whether the member may read the topic with an id; a topic that does not exist is refused for that."""
    decisions, topics = context.decisions, context.member.state.topic_by_id
    if decisions is None:
        return None

    def readable(topic_id: bytes) -> bool:
        topic = topics.get(topic_id)
        return topic is None or decisions.allows(AclOperation.READ, AclResourceType.TOPIC, topic.name)

    return readable


def _refused(request: ShareFetchRequest, readable: Collection[bytes]) -> dict[Named, Later[ApiError | None]]:
    """Return the outcomes of acknowledgements in topics that the member may not read."""
    return {
        (topic.topic_id, each.partition_index): settled(ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        for topic in request.topics
        if topic.topic_id not in readable
        for each in topic.partitions
        if each.acknowledgement_batches
    }


def _later(response: ShareFetchResponse, request: ShareFetchRequest, context: Context) -> Later[ShareFetchResponse]:
    """Delay the refusal of a session by the request's maximum wait, because the member would retry at once."""
    later: Later[ShareFetchResponse] = Later()

    def answer(_: object) -> bool:
        later.set(response)
        return True

    context.storage.waiters.watch(later, (), answer, max(request.max_wait_ms, 0))
    return later


def _check_renew(request: ShareFetchRequest) -> None:
    """Raise if a request that renews locks asks for records."""
    if request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms:
        raise ApiError(ErrorCode.INVALID_REQUEST, "A request that renews locks must not ask for records.")


def _session(request: ShareFetchRequest, group_id: str, member_id: str, context: Context) -> ShareSession:
    sessions = context.shares.sessions
    named = [(topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions]
    if request.share_session_epoch == INITIAL_EPOCH:
        if any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        session = sessions.open(group_id, member_id, named)
        context.when_closed[session.key] = lambda: sessions.lost(session)
        return session
    session = sessions.enter(group_id, member_id, request.share_session_epoch)
    if request.share_session_epoch != FINAL_EPOCH:
        forgotten = [(topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions]
        session.change(named, forgotten)
    return session


def _close(
    request: ShareFetchRequest,
    session: ShareSession,
    outcomes: dict[Named, Later[ApiError | None]],
    context: Context,
) -> Answer[ShareFetchResponse]:
    shares = context.shares
    context.when_closed.pop(session.key, None)
    released = shares.partitions.end(session)
    lock_ms = shares.lock_ms(session.group_id)

    def respond(errors: list[ApiError | None]) -> ShareFetchResponse:
        shares.partitions.closed(session)
        found = {name: _data(name[1], ack=error) for name, error in zip(outcomes, errors, strict=False)}
        return _response(_topics(found), lock_ms)

    return gather([*outcomes.values(), *released.values()]).map(respond).soonest()


def _response_to(
    request: ShareFetchRequest,
    session: ShareSession,
    outcomes: dict[Named, Later[ApiError | None]],
    context: Context,
    acks: list[ApiError | None],
    found: ShareFound,
) -> ShareFetchResponse:
    acked = dict(zip(outcomes, acks, strict=True))
    names = dict.fromkeys([*found.taken, *_named_without_records(request, session, found), *found.errors, *acked])
    data = {
        name: _data(name[1], found.taken.get(name, NOTHING), found.errors.get(name), acked.get(name)) for name in names
    }
    response = _response(_topics(data), context.shares.lock_ms(session.group_id))
    name_share_leaders(response, context)
    return response


def _named_without_records(request: ShareFetchRequest, session: ShareSession, found: ShareFound) -> list[Named]:
    if request.share_session_epoch == INITIAL_EPOCH:
        return found.readable
    told = [name for name in found.readable if session.must_name(name)]
    for name in found.errors:
        session.name_again(name)
    return told


def _both(
    acks: Later[list[ApiError | None]], records: Later[ShareFound]
) -> Later[tuple[list[ApiError | None], ShareFound]]:
    """Combine the outcomes of the acknowledgements and the records, which are answered together.

    Abandoning the result abandons the records.
    """
    both: Later[tuple[list[ApiError | None], ShareFound]] = Later()
    both.on_abandon = records.abandon

    def acked(errors: list[ApiError | None]) -> None:
        records.then(lambda found: both.set((errors, found)), both.fail)

    def failed() -> None:
        records.abandon()
        both.fail()

    acks.then(acked, failed)
    return both


def _data(
    index: int, taken: Taken = NOTHING, error: ApiError | None = None, ack: ApiError | None = None
) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error.code if error is not None else 0,
        error_message=error.text if error is not None else None,
        acknowledge_error_code=ack.code if ack is not None else 0,
        acknowledge_error_message=ack.text if ack is not None else None,
        current_leader=PartitionData.LeaderIdAndEpoch(leader_id=0, leader_epoch=FIRST_LEADER_EPOCH),
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
