"""An authorizer for tests: it grants rights whatever the resource is called, and remembers what it was asked for."""

from __future__ import annotations

from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.principal import Principal

Granted = tuple[AclOperation, AclResourceType]


class Grants:
    def __init__(self) -> None:
        self.version = 1
        self.asked: set[Granted] = set()
        self._granted: frozenset[Granted] | None = None  # None: everything

    def grant(self, *rights: Granted) -> None:
        """From now on these rights and no others are granted."""
        self._granted = frozenset(rights)
        self.asked = set()
        self.version += 1

    def grant_everything(self) -> None:
        self._granted = None
        self.version += 1

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType, name: str
    ) -> bool:
        return self.allows_some(principal, host, operation, resource)

    def allows_some(self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType) -> bool:
        self.asked.add((operation, resource))
        return self._granted is None or (operation, resource) in self._granted
