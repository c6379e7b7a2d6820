"""Envelope (key 58): a broker forwards a client's request to the controller, with the client's principal."""

from __future__ import annotations

from ottla.wire.message import Request, Response
from ottla.wire.types import Bytes, Int16


class EnvelopeRequest(Request["EnvelopeResponse"], key=58, versions="0", flexible="0+"):
    request_data: Bytes
    request_principal: Bytes | None
    client_host_address: Bytes


class EnvelopeResponse(Response, key=58, versions="0", flexible="0+"):
    response_data: Bytes | None = None
    error_code: Int16
