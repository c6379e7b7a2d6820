"""BrokerHeartbeat (key 63): a broker keeps its registration alive, and asks to be unfenced or to shut down.

v1   lost log directories (KIP-858); request + offline_log_dirs
v2   log directories closed for new replicas; request + cordoned_log_dirs
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, on
from ottla.wire.types import NO_BROKER_EPOCH, Bool, BrokerEpoch, Int16, Int32, Int64, Uuid


class BrokerHeartbeatRequest(Request["BrokerHeartbeatResponse"], key=63, versions="0-2", flexible="0+"):
    broker_id: Int32
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    current_metadata_offset: Int64
    want_fence: Bool
    want_shut_down: Bool
    offline_log_dirs: list[Uuid] = on("1+", [], tag=0)
    cordoned_log_dirs: list[Uuid] | None = on("2+", None, tag=1)


class BrokerHeartbeatResponse(Response, key=63, versions="0-2", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    is_caught_up: Bool = False
    is_fenced: Bool = True
    should_shut_down: Bool
