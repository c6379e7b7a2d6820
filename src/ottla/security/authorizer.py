"""Authorizer: the question that every request is checked with. `access_rules.py` answers it from the cluster's ACLs."""

from __future__ import annotations

from typing import Protocol

from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.principal import Principal


class Authorizer(Protocol):
    @property
    def version(self) -> int:
        """A number that changes whenever an answer may have changed, so that callers can keep answers meanwhile."""

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType, name: str
    ) -> bool:
        """Return whether the principal may carry out the operation on the resource from this address."""

    def allows_some(self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType) -> bool:
        """Return whether the principal may carry out the operation on at least one resource of the type."""
