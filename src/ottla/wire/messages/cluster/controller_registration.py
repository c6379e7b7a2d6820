"""ControllerRegistration (key 70): a controller introduces itself to the active controller."""

from __future__ import annotations

from ottla.wire.message import Request, Response, Struct
from ottla.wire.types import Bool, Int16, Int32, String, UInt16, Uuid


class ControllerRegistrationRequest(Request["ControllerRegistrationResponse"], key=70, versions="0", flexible="0+"):
    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Bool

    class Listener(Struct):
        name: String
        host: String
        port: UInt16
        security_protocol: Int16

    listeners: list[Listener]

    class Feature(Struct):
        name: String
        min_supported_version: Int16
        max_supported_version: Int16

    features: list[Feature]


class ControllerRegistrationResponse(Response, key=70, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
