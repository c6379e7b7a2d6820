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
    DIGEST_HEADER,
    SEAL_HEADER,
    BadSeal,
    ForwardedCaller,
    ForwardSeal,
    SealedRequest,
    digest_of,
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

    async def caller_of(self, request: Request, url: str) -> Caller:
        """Return the client of a request that another instance has forwarded to `url`, which is this one. Raises
        BadSeal. The body is read only when the signature in the head is right, so a stranger's never is.
        """
        told, seals = request.headers.getlist(CALLER_HEADER), request.headers.getlist(SEAL_HEADER)
        if len(told) != 1 or len(seals) > 1:
            raise BadSeal("it does not say who its client is")
        if self.seal is None or not seals:
            if not self._is_instance(request):
                raise BadSeal("it has neither a signature nor the certificate of an instance")
            return ForwardedCaller.decode(told[0]).caller
        digests = request.headers.getlist(DIGEST_HEADER)
        if len(digests) != 1:
            raise BadSeal("it does not say which body was signed")
        sent = SealedRequest(url, request.method, target_of(request), digests[0])
        caller = self.seal.open(sent, told[0], seals[0])
        if digest_of(await request.body()) != sent.digest:
            raise BadSeal("its body is not the one that was signed")
        return caller

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
