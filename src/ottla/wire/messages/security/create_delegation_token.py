"""CreateDelegationToken (key 38): issue a delegation token.

v1   throttling happens after the answer
v2   flexible
v3   tokens for someone else; request + owner_principal_type, owner_principal_name; response +
     token_requester_principal_type, token_requester_principal_name
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bytes, Int16, Int32, Int64, String


class CreateDelegationTokenRequest(Request["CreateDelegationTokenResponse"], key=38, versions="1-3", flexible="2+"):
    owner_principal_type: String | None = on("3+", "")
    owner_principal_name: String | None = on("3+", "")

    class CreatableRenewers(Struct):
        principal_type: String
        principal_name: String

    renewers: list[CreatableRenewers]
    max_lifetime_ms: Int64


class CreateDelegationTokenResponse(Response, key=38, versions="1-3", flexible="2+"):
    error_code: Int16
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = on("3+", "")
    token_requester_principal_name: String = on("3+", "")
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes
    throttle_time_ms: Int32 = 0
