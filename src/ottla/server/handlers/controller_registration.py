"""ControllerRegistration (key 70): a controller says where it listens and what it supports (KIP-919)."""

from __future__ import annotations

from ottla.cluster.commands.start import RegisterController
from ottla.cluster.entities import Controller, Endpoint
from ottla.cluster.features import Range, controllers_registered
from ottla.model.errors import ErrorCode
from ottla.server.answer import Answer
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse


@handles(ControllerRegistrationRequest, on="controller")
def controller_registration(
    request: ControllerRegistrationRequest, context: Context
) -> Answer[ControllerRegistrationResponse]:
    controller = Controller(
        request.controller_id,
        request.incarnation_id,
        tuple(Endpoint(end.name, end.host, end.port, end.security_protocol) for end in request.listeners),
        tuple((each.name, Range(each.min_supported_version, each.max_supported_version)) for each in request.features),
    )
    if context.controller.active and not controllers_registered(context.controller.view.state.metadata_version):
        return ControllerRegistrationResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message="The current MetadataVersion is too old to support controller registrations.",
        )
    return context.controller.ask(
        RegisterController(controller),
        lambda _: ControllerRegistrationResponse(error_code=ErrorCode.NONE, error_message=None),
        lambda error: ControllerRegistrationResponse(error_code=error.code, error_message=error.message),
    )
