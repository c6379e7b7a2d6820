"""SaslAuthenticate (key 36): carry the SASL exchange after the handshake.

v1   session lifetime (KIP-368); response + session_lifetime_ms
v2   flexible
"""

from __future__ import annotations

from ottla.wire.message import Request, Response, on
from ottla.wire.types import Bytes, Int16, Int64, String


class SaslAuthenticateRequest(Request["SaslAuthenticateResponse"], key=36, versions="0-2", flexible="2+"):
    auth_bytes: Bytes


class SaslAuthenticateResponse(Response, key=36, versions="0-2", flexible="2+"):
    error_code: Int16
    error_message: String | None
    auth_bytes: Bytes
    session_lifetime_ms: Int64 = on("1+", 0)
