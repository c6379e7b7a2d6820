"""SaslHandshake (key 17): choose the SASL mechanism of a connection.

v1   SaslAuthenticate carries the exchange
"""

from __future__ import annotations

from ottla.wire.message import Request, Response
from ottla.wire.types import Int16, String


class SaslHandshakeRequest(Request["SaslHandshakeResponse"], key=17, versions="0-1"):
    mechanism: String


class SaslHandshakeResponse(Response, key=17, versions="0-1"):
    error_code: Int16
    mechanisms: list[String]
