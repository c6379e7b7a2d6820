"""OttlaDescribeRequests (key 30002): the latest requests of one client to this broker, while somebody asks for them; or
the clients that are connected to it. ApiVersions tells only our own clients of it (ADR 0054).
"""

from __future__ import annotations

from itertools import islice

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.security.counted_for import counted_for
from ottla.server.api.watching.seen_requests import ClientWanted, SeenRequest
from ottla.wire.messages.cluster.ottla_describe_requests import (
    OttlaDescribeRequestsRequest,
    OttlaDescribeRequestsResponse,
)


@handles(OttlaDescribeRequestsRequest, needs=Needs((on_cluster(AclOperation.DESCRIBE),)))
def ottla_describe_requests(request: OttlaDescribeRequestsRequest, context: Context) -> OttlaDescribeRequestsResponse:
    now_ms = context.runtime.now_ms()
    wanted = ClientWanted(request.client_id, request.principal)
    if wanted == ClientWanted(None, None):
        client = OttlaDescribeRequestsResponse.Client
        clients = [
            client(client_id=each.client_id, principal=each.principal, connections=each.connections)
            for each in context.request_log.clients()
        ]
        return OttlaDescribeRequestsResponse(error_code=ErrorCode.NONE, now_ms=now_ms, requests=[], clients=clients)
    if any(len(each or "") > limits.REQUEST_SEEN_CHARS_MAX for each in wanted):
        text = f"A client is watched by at most {limits.REQUEST_SEEN_CHARS_MAX} characters of its name."
        return _refused(ErrorCode.INVALID_REQUEST, text)
    try:
        watch = context.request_log.watch(wanted, counted_for(context))
    except ApiError as error:
        return _refused(error.code, error.message)
    count = min(max(request.requests_max, 0), len(watch.requests))
    return OttlaDescribeRequestsResponse(
        error_code=ErrorCode.NONE,
        now_ms=now_ms,
        since_ms=watch.since_ms,
        request_count=watch.count,
        requests=[_told(each) for each in islice(watch.requests, len(watch.requests) - count, None)],
        clients=[],
    )


def _refused(code: ErrorCode, message: str | None) -> OttlaDescribeRequestsResponse:
    return OttlaDescribeRequestsResponse(error_code=code, error_message=message, requests=[], clients=[])


def _told(seen: SeenRequest) -> OttlaDescribeRequestsResponse.SeenRequest:
    return OttlaDescribeRequestsResponse.SeenRequest(
        at_ms=seen.at_ms,
        request_api_key=seen.api_key,
        request_api_version=seen.version,
        client_id=seen.client_id,
        principal=seen.principal,
        host=seen.host,
        size_bytes=seen.size_bytes,
        queue_us=seen.queue_us,
        local_us=seen.local_us,
        remote_us=seen.remote_us,
        is_forwarded=seen.is_forwarded,
        outcome=seen.outcome,
        error_codes=[*seen.errors],
    )
