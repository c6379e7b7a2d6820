"""OttlaDescribeRequests (key 30002): the latest requests of one client to the broker that is asked, from the first time
that somebody asks for them. Kafka has no such API (ADR 0054).

v0   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Int16, Int32, Int64, String


class OttlaDescribeRequestsRequest(Request["OttlaDescribeRequestsResponse"], key=30002, versions="0", flexible="0+"):
    client_id: String | None = None
    principal: String | None = None  # as `User:alice`; if both are null, clients are listed and nothing is watched
    requests_max: Int32 = 200


class OttlaDescribeRequestsResponse(Response, key=30002, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    now_ms: Int64 = -1  # the broker's time
    since_ms: Int64 = -1  # when the watch began; nothing is known from before
    request_count: Int64 = 0  # since then; the latest are described

    class SeenRequest(Struct):
        at_ms: Int64
        request_api_key: Int16
        request_api_version: Int16
        client_id: String
        principal: String
        host: String
        size_bytes: Int32
        queue_us: Int64
        local_us: Int64
        remote_us: Int64
        is_forwarded: Bool
        outcome: String  # empty if it was answered
        error_codes: list[Int16]

    requests: list[SeenRequest]  # the oldest first

    class Client(Struct):
        client_id: String
        principal: String
        connections: Int32

    clients: list[Client]
