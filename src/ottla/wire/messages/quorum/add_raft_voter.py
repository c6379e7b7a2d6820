"""AddRaftVoter (key 80): add a voter to the metadata quorum.

v1   the answer may come before the change is committed; request + ack_when_committed
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bool, Int16, Int32, String, UInt16, Uuid


class AddRaftVoterRequest(Request["AddRaftVoterResponse"], key=80, versions="0-1", flexible="0+"):
    cluster_id: String | None
    timeout_ms: Int32
    voter_id: Int32
    voter_directory_id: Uuid

    class Listener(Struct):
        name: String
        host: String
        port: UInt16

    listeners: list[Listener]
    ack_when_committed: Bool = on("1+", True)


class AddRaftVoterResponse(Response, key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
