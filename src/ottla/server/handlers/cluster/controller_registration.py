"""ControllerRegistration (key 70): a controller registers its listeners and supported features (KIP-919)."""

from __future__ import annotations

from ottla.cluster.commands.start import RegisterController
from ottla.cluster.entities import Controller
from ottla.cluster.features import controllers_registered
from ottla.cluster.registration import endpoints_of, features_of
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.cluster.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)


def _refuse(_: ControllerRegistrationRequest, error: ApiError) -> ControllerRegistrationResponse:
    return ControllerRegistrationResponse(error_code=error.code, error_message=error.message)


@handles(
    ControllerRegistrationRequest,
    needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)),
    on="controller",
    few=True,
    refuse=_refuse,
)
def controller_registration(
    request: ControllerRegistrationRequest, context: Context
) -> Decided[ControllerRegistrationResponse]:
    controller = Controller(
        request.controller_id,
        request.incarnation_id,
        endpoints_of(request.listeners),
        features_of(request.features),
    )
    if context.member.controller.active and not controllers_registered(context.member.decided_state.metadata_version):
        return ControllerRegistrationResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message="The current MetadataVersion is too old to support controller registrations.",
        )
    return context.member.controller.ask(
        RegisterController(controller),
        lambda _: ControllerRegistrationResponse(error_code=ErrorCode.NONE, error_message=None),
    )
