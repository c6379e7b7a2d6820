"""FindCoordinator (key 10): find the broker that coordinates a group, a transactional id or a share partition.

v1   request + key_type; response + throttle_time_ms, error_message
v2   throttling happens after the answer
v3   flexible
v4   many keys at once; request + coordinator_keys - key; response + coordinators - error_code, error_message,
     node_id, host, port
v5   TRANSACTION_ABORTABLE possible (KIP-890)
v6   share partitions (KIP-932)
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Int8, Int16, Int32, String


class FindCoordinatorRequest(Request["FindCoordinatorResponse"], key=10, versions="0-6", flexible="3+"):
    key: String = on("0-3", "")
    key_type: Int8 = on("1+", 0)
    coordinator_keys: list[String] = on("4+", [])


class FindCoordinatorResponse(Response, key=10, versions="0-6", flexible="3+"):
    throttle_time_ms: Int32 = on("1+", 0)
    error_code: Int16 = on("0-3", 0)
    error_message: String | None = on("1-3", "")
    node_id: Int32 = on("0-3", 0)
    host: String = on("0-3", "")
    port: Int32 = on("0-3", 0)

    class Coordinator(Struct):
        key: String
        node_id: Int32
        host: String
        port: Int32
        error_code: Int16
        error_message: String | None

    coordinators: list[Coordinator] = on("4+", [])
