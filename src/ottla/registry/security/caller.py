"""Caller: who has sent a request, and from where. It travels in the state of the request."""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from ottla.security.principal import Principal
from ottla.web.waiting import CERTIFICATE

_CALLER = "caller"


class Caller(NamedTuple):
    principal: Principal
    host: str


def note_caller(request: Request, caller: Caller) -> None:
    setattr(request.state, _CALLER, caller)


def caller_of(request: Request) -> Caller | None:
    """Return who has sent the request; None if the registry does not authenticate clients."""
    found = getattr(request.state, _CALLER, None)
    return found if isinstance(found, Caller) else None


def certificate_of(request: Request) -> bytes | None:
    """Return the certificate (DER) that the client has shown in the TLS handshake."""
    found = getattr(request.state, CERTIFICATE, None)
    return found if isinstance(found, bytes) else None


def host_of(request: Request) -> str:
    return request.client.host if request.client is not None else ""
