"""RenewDelegationToken (key 39): prolong a delegation token.

v1   throttling happens after the answer
v2   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response
from ottla.wire.types import Bytes, Int16, Int32, Int64


class RenewDelegationTokenRequest(Request["RenewDelegationTokenResponse"], key=39, versions="1-2", flexible="2+"):
    hmac: Bytes
    renew_period_ms: Int64


class RenewDelegationTokenResponse(Response, key=39, versions="1-2", flexible="2+"):
    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = 0
