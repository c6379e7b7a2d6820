"""SaslHandshake (key 17): a client of a SASL listener chooses its mechanism.

After version 0 the messages of the exchange come as plain frames, after version 1 as SaslAuthenticate requests.
"""

from __future__ import annotations

from ottla.model.errors import ErrorCode
from ottla.server.api.context import Context, SaslClient
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import NOTHING
from ottla.server.api.security.sasl_answers import refuse
from ottla.server.api.turns import hold_while
from ottla.server.loop.later import Answer
from ottla.server.security.authentication import Refused
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

# After this version, the messages of the conversation come without a Kafka header.
_VERSION_WITH_RAW_MESSAGES = 0


@handles(SaslHandshakeRequest, needs=NOTHING, on="both")
def sasl_handshake(request: SaslHandshakeRequest, context: Context) -> Answer[SaslHandshakeResponse]:
    client = context.sasl
    if client is None:  # the listener has no SASL
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    authentication = client.authentication
    code = authentication.begin(request.mechanism, raw=context.request_version == _VERSION_WITH_RAW_MESSAGES)
    answer = SaslHandshakeResponse(error_code=code, mechanisms=authentication.mechanisms)
    if code == ErrorCode.NONE:
        return answer
    return hold_while(context, _refused(answer, context, client))


async def _refused(answer: SaslHandshakeResponse, context: Context, client: SaslClient) -> SaslHandshakeResponse:
    await refuse(context, client, Refused(ErrorCode(answer.error_code), ""))
    return answer
