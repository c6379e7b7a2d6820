"""UnregisterBroker (key 64): remove the registration of a broker that will not come back."""

from __future__ import annotations

from ottla.cluster.commands.fence import UnregisterBroker
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def _refuse(_: UnregisterBrokerRequest, error: ApiError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.text)


@handles(UnregisterBrokerRequest, on="both", forwarded=True, refuse=_refuse)
def unregister_broker(request: UnregisterBrokerRequest, context: Context) -> Decided[UnregisterBrokerResponse]:
    return context.member.controller.ask(
        UnregisterBroker(request.broker_id),
        lambda _: UnregisterBrokerResponse(error_code=ErrorCode.NONE, error_message=""),
    )
