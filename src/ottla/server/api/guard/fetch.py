"""The guard of Fetch: followers need CLUSTER_ACTION, consumers READ on each topic.

The topics of a consumer may be in its session and not in the request, so the read itself asks for each of them
(`server/fetch/consumer_reads.py`): this guard is for followers.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.model.session_epochs import FINAL_EPOCH, INITIAL_EPOCH
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.guard.checks import decisions_of
from ottla.server.api.refusals import Handler
from ottla.server.fetch.answers import refuse_all, replica_of
from ottla.server.loop.later import Answer
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse


def guard(handler: Handler) -> Handler:
    def fetch(request: FetchRequest, context: Context) -> Answer[FetchResponse]:
        follower, _ = replica_of(request, context.request_version)
        if follower < 0 or context.connection.controller:
            return handler(request, context)
        if decisions_of(context).allows_on_cluster(AclOperation.CLUSTER_ACTION):
            return handler(request, context)
        if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
            # A follower that has lost its right names its partitions again, and is told for each of them.
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=[])
        refused = refuse_all(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        refused.error_code = ErrorCode.NONE
        return refused

    return fetch
