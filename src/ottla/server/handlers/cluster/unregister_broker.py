"""UnregisterBroker (key 64): remove the registration of a broker that will not come back."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.fence import UnregisterBroker
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def _refuse(_: UnregisterBrokerRequest, error: ApiError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error.code, error_message=error.text)


def _named(request: UnregisterBrokerRequest) -> Iterator[str]:
    yield f"broker {request.broker_id}"


@handles(
    UnregisterBrokerRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), changes=_named),
    on="both",
    forwarded=True,
    refuse=_refuse,
)
def unregister_broker(request: UnregisterBrokerRequest, context: Context) -> Decided[UnregisterBrokerResponse]:
    return context.member.controller.ask(
        UnregisterBroker(request.broker_id),
        lambda _: UnregisterBrokerResponse(error_code=ErrorCode.NONE, error_message=""),
    )
