"""Checks of the requests that read and change access control entries."""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.api.context import Context
from ottla.server.loop.later import Disconnect


def check_authorizer(context: Context) -> None:
    """Refuse to change ACLs while no authorizer is configured, since they would have no effect."""
    if context.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def check_codes(*codes: int) -> None:
    """Close the connection, as Kafka does, if a field has the number 0: it means UNKNOWN in all vocabularies of ACLs,
    and no client may send it.
    """
    if 0 in codes:
        raise Disconnect("a request about ACLs contains UNKNOWN elements")
