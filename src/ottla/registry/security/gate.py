"""RegistryGate: authenticates the client of each request, and finds its rights. A registry without authentication has
no gate.
"""

from __future__ import annotations

import logging

from starlette.requests import Request

from ottla.registry.security.authentication import CallerAuthentication
from ottla.registry.security.caller import host_of, note_caller
from ottla.registry.security.cluster_acls import ClusterAcls
from ottla.registry.security.forward_seal import FORWARD_HEADER, BadSeal
from ottla.registry.security.instances import Instances
from ottla.registry.security.refusals import Forbidden
from ottla.registry.security.subject_rights import SubjectRights

log = logging.getLogger(__name__)


class RegistryGate:
    """`url` is the address under which other instances know this one."""

    def __init__(self, authentication: CallerAuthentication, acls: ClusterAcls, instances: Instances, url: str) -> None:
        self._authentication = authentication
        self._acls = acls
        self._instances = instances
        self._url = url

    async def rights_of(self, request: Request) -> SubjectRights:
        """Return the rights of a request's client, who is noted in the request.

        Raises Unauthorized, Forbidden (for a forwarded request that is not trusted), Unavailable, TooBusy.
        """
        if FORWARD_HEADER in request.headers:
            try:
                caller = await self._instances.caller_of(request, self._url)
            except BadSeal as bad:
                log.warning("a forwarded request from %s is refused: %s", host_of(request), bad)
                raise Forbidden("The forwarded request is not from a trusted instance of the registry") from None
        else:
            caller = await self._authentication.caller_of(request)
        note_caller(request, caller)
        return SubjectRights(caller, await self._acls.rules_for(caller.principal))
