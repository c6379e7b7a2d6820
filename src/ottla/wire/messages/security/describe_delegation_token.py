"""DescribeDelegationToken (key 41): list delegation tokens by owner.

v1   throttling happens after the answer
v2   flexible
v3   requester of the token; response + token_requester_principal_type, token_requester_principal_name
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct, on
from ottla.wire.types import Bytes, Int16, Int32, Int64, String


class DescribeDelegationTokenRequest(Request["DescribeDelegationTokenResponse"], key=41, versions="1-3", flexible="2+"):
    class Owner(Struct):
        principal_type: String
        principal_name: String

    owners: list[Owner] | None


class DescribeDelegationTokenResponse(Response, key=41, versions="1-3", flexible="2+"):
    error_code: Int16

    class DescribedDelegationToken(Struct):
        principal_type: String
        principal_name: String
        token_requester_principal_type: String = on("3+", "")
        token_requester_principal_name: String = on("3+", "")
        issue_timestamp: Int64
        expiry_timestamp: Int64
        max_timestamp: Int64
        token_id: String
        hmac: Bytes

        class DescribedDelegationTokenRenewer(Struct):
            principal_type: String
            principal_name: String

        renewers: list[DescribedDelegationTokenRenewer]

    tokens: list[DescribedDelegationToken]
    throttle_time_ms: Int32 = 0
