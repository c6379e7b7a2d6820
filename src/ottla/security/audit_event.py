"""AuditEvent: one line of the audit log: who, from where, did what, on what, and whether it was allowed.

Clients choose names, so a line has only the first characters of each field.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from ottla.model import limits
from ottla.security.acls import AclOperation, AclResourceType

# Types of resources in the audit log that ACLs do not have.
API, LISTENER = "API", "LISTENER"
# Actions that are no operations of ACLs.
CHANGE, AUTHENTICATE = "CHANGE", "AUTHENTICATE"

# Operations that change the cluster, its settings or what exists in it; reading and writing records does not count.
CHANGING_OPERATIONS = frozenset(
    {
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.ALTER_CONFIGS,
        AclOperation.CREATE_TOKENS,
    }
)


class AuditKind(Enum):
    """A kind of events: the values of `ottla.audit.events` say which ones the audit log has."""

    REFUSED = "refused"
    CHANGES = "changes"
    AUTHENTICATION = "authentication"
    ALL = "all"


class AuditEvent(NamedTuple):
    time_ms: int
    principal: str
    host: str
    action: str  # an operation, "CHANGE" or "AUTHENTICATE"; or, for events that were only counted, how many they are
    resource_type: str
    resource: str
    allowed: bool
    more: tuple[tuple[str, str], ...] = ()  # further fields; those without a value are left out

    @classmethod
    def access(
        cls,
        time_ms: int,
        principal: str,
        host: str,
        operation: AclOperation,
        resource: AclResourceType,
        name: str,
        allowed: bool,
    ) -> AuditEvent:
        return cls(time_ms, principal, host, operation.name, resource.name, name, allowed)

    def line(self) -> str:
        """Return the event as a JSON object in one line."""
        at = datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": at.replace("+00:00", "Z"),
            "principal": _cut(self.principal),
            "host": _cut(self.host),
            "action": _cut(self.action),
            "resource_type": self.resource_type,
            "resource": _cut(self.resource),
            "outcome": "allowed" if self.allowed else "refused",
            **{name: _cut(value, limits.AUDIT_NAMES_CHARACTERS_MAX) for name, value in self.more if value},
        }
        return json.dumps(fields, ensure_ascii=True)


def _cut(text: str, characters: int = limits.AUDIT_FIELD_CHARACTERS_MAX) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"
