"""SaslAuthenticate (key 36): one message of a client's SASL exchange."""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import NOTHING
from ottla.server.api.security.sasl_answers import authenticate
from ottla.server.loop.later import Answer
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


@handles(SaslAuthenticateRequest, needs=NOTHING, on="both")
def sasl_authenticate(request: SaslAuthenticateRequest, context: Context) -> Answer[SaslAuthenticateResponse]:
    if context.sasl is None:
        text = "SaslAuthenticate request received on a listener without SASL."
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=text, auth_bytes=b"")
    return authenticate(bytes(request.auth_bytes), context, context.sasl)
