"""Instances: how instances of the registry trust each other when they forward requests.

Either all share a secret, and sign (`forward_seal`), or an instance shows a certificate whose principal is configured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from ottla.client.security.tls import Tls
from ottla.registry.port import ForwardFailed
from ottla.registry.security.caller import Caller, certificate_of
from ottla.registry.security.forward_seal import (
    CALLER_HEADER,
    SEAL_HEADER,
    BadSeal,
    ForwardedCaller,
    ForwardSeal,
    SealedRequest,
    unsealed_headers,
)
from ottla.registry.security.https_listener import HttpsListener
from ottla.security.name_rules import NoMatchingRule


@dataclass(eq=False, slots=True)
class Instances:
    """`tls` is the client's side of HTTPS among instances; `principals` are those of trusted certificates."""

    now_ms: Callable[[], int]
    seal: ForwardSeal | None = field(default=None, repr=False)
    tls: Tls | None = None
    principals: frozenset[str] = frozenset()
    certificates: HttpsListener | None = None

    def headers(self, request: SealedRequest, caller: Caller | None) -> dict[str, str]:
        """Return the headers that tell another instance who the client is. Raises ForwardFailed."""
        if caller is None:
            return {}
        if self.seal is not None:
            return self.seal.headers(request, caller)
        if self.principals:
            return unsealed_headers(caller, self.now_ms())
        raise ForwardFailed("instances with authentication need inter.instance.secret, or inter.instance.principals")

    def check_head(self, request: Request) -> None:
        """Raise BadSeal if a forwarded request can be refused without its body."""
        told, seals = request.headers.getlist(CALLER_HEADER), request.headers.getlist(SEAL_HEADER)
        if len(told) != 1 or len(seals) > 1:
            raise BadSeal("it does not say who its client is")
        if not (self.seal is not None and seals) and not self._is_instance(request):
            raise BadSeal("it has neither a signature nor the certificate of an instance")

    def caller_of(self, request: Request, sent: SealedRequest) -> Caller:
        """Return the client of a request that another instance has forwarded. Raises BadSeal."""
        self.check_head(request)
        told, seal = request.headers[CALLER_HEADER], request.headers.get(SEAL_HEADER)
        if self.seal is not None and seal is not None:
            return self.seal.open(sent, told, seal)
        return ForwardedCaller.decode(told).caller

    def _is_instance(self, request: Request) -> bool:
        if self.certificates is None or not self.principals:
            return False
        try:
            return str(self.certificates.principal_in(certificate_of(request))) in self.principals
        except (NoMatchingRule, ValueError):
            return False


def target_of(request: Request) -> str:
    """Return path and parameters of a request as they are forwarded."""
    query = request.scope["query_string"].decode("ascii")
    path: str = request.scope["raw_path"].decode("ascii")
    return path + (f"?{query}" if query else "")
