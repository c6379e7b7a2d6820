"""AuditedAuthorizer: an authorizer whose decisions are noted in the audit log."""

from __future__ import annotations

from ottla.security.acls import WILDCARD, AclOperation, AclResourceType
from ottla.security.authorizer import Authorizer
from ottla.security.principal import Principal
from ottla.server.security.audit.log import AuditLog


class AuditedAuthorizer:
    def __init__(self, authorizer: Authorizer, audit: AuditLog) -> None:
        self._authorizer = authorizer
        self._audit = audit

    @property
    def version(self) -> int:
        return self._authorizer.version

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType, name: str
    ) -> bool:
        allowed = self._authorizer.allows(principal, host, operation, resource, name)
        self._audit.note_access(principal, host, operation, resource, name, allowed)
        return allowed

    def allows_some(self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType) -> bool:
        allowed = self._authorizer.allows_some(principal, host, operation, resource)
        self._audit.note_access(principal, host, operation, resource, WILDCARD, allowed)
        return allowed
