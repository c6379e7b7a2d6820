"""Fetch (key 1): record batches from an offset on, as ranges of the log files.

v7 fetch sessions   v9 leader epochs   v11 rack   v12 diverging epochs, tagged   v13 topics by id   v15 replica state
v16 the current leader, with an error for the wrong one

Consumers are answered by `server/fetch/consumer_reads.py`, followers by `server/fetch/follower_reads.py`.
"""

from __future__ import annotations

from functools import partial

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_ID, BrokerEpoch
from ottla.model.session_epochs import INITIAL_EPOCH
from ottla.replica.partition import READ_COMMITTED, READ_UNCOMMITTED
from ottla.security.acls import AclOperation, AclResourceType
from ottla.server.api.advertised_brokers import listed_brokers
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster, on_topic
from ottla.server.fetch.answers import FIRST_VERSION_BY_ID, refuse_all, replica_of
from ottla.server.fetch.fetch_sessions import FetchSession
from ottla.server.loop.later import Answer
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

_SESSION = "the session of a follower"  # the key of the callback that closes it with its connection


def _refuse(request: FetchRequest, error: ApiError) -> FetchResponse:
    """Refuse a whole request. Clients that name topics by id need no error per partition."""
    refused = refuse_all(request, error.code)
    refused.session_id = request.session_id
    refused.responses = [topic for topic in refused.responses if topic.topic_id == NO_ID]
    return refused


@handles(
    FetchRequest,
    needs=Needs(
        guard="fetch",
        asks=(on_topic(AclOperation.READ), on_cluster(AclOperation.CLUSTER_ACTION)),
        on_controllers=(on_cluster(AclOperation.CLUSTER_ACTION),),
        refuse=_refuse,
    ),
    on="both",
)
def fetch(request: FetchRequest, context: Context) -> Answer[FetchResponse]:
    if context.connection.controller:
        context.next_fetch_ends_wait = context.is_follower = True
        return context.member.quorum.ask(request)  # on a controller listener only the metadata journal can be read
    version = context.request_version
    by_id = version >= FIRST_VERSION_BY_ID
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        return refuse_all(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    fetches = context.fetches
    try:
        session = fetches.sessions.enter(request, by_id, context.runtime.steady_ms())
    except ApiError as error:
        return FetchResponse(error_code=error.code, responses=[])
    replica = replica_of(request, version)
    if replica[0] >= 0:
        return _fetch_as_follower(request, session, by_id, replica, context)
    if session is not None and session.is_privileged:
        # it is a follower's session
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    context.next_fetch_ends_wait = context.is_follower = False
    quota = context.quotas.fetching(context) if context.quotas.active else None
    decisions = context.decisions
    readable = None if decisions is None else partial(decisions.allows, AclOperation.READ, AclResourceType.TOPIC)
    return fetches.answer_consumer(
        request, session, by_id, version, context.client_id, partial(listed_brokers, context), readable, quota
    )


def _fetch_as_follower(
    request: FetchRequest, session: FetchSession | None, by_id: bool, replica: tuple[int, BrokerEpoch], context: Context
) -> Answer[FetchResponse]:
    """Answer a follower; `session` is that of an incremental fetch, None for a full one."""
    context.is_follower = True
    fetches = context.fetches
    is_full = session is None
    if session is None:
        # A follower has one session per connection, and opens a new one on every connection.
        before = context.when_closed.pop(_SESSION, None) if request.session_epoch == INITIAL_EPOCH else None
        if before is not None:
            before()
        session = fetches.followers.open(request, by_id)
        if session.key:
            context.when_closed[_SESSION] = partial(fetches.sessions.drop, session.key)
    if not session.is_privileged:
        # it is a consumer's session
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
    context.next_fetch_ends_wait = session.key != 0
    return fetches.followers.answer(request, session, is_full, replica, context.request_version)
