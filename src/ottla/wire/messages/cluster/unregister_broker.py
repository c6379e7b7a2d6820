"""UnregisterBroker (key 64): remove a broker's registration."""

from __future__ import annotations

from ottla.wire.message import Request, Response
from ottla.wire.types import Int16, Int32, String


class UnregisterBrokerRequest(Request["UnregisterBrokerResponse"], key=64, versions="0", flexible="0+"):
    broker_id: Int32


class UnregisterBrokerResponse(Response, key=64, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
