"""AclEntry: one access control entry without its id, as clients name it; AclFilter: which entries a client means.

Both hold numbers as they were sent or stored: an entry of a later release may have an operation that this one does not
know.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.security.acls import ANY, WILDCARD, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.wire.journal.cluster_metadata import AccessControlEntryRecord


class AclEntry(NamedTuple):
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str  # Type:name, or User:* for everybody
    host: str  # an address, or * for all
    operation: int
    permission: int

    @classmethod
    def of(cls, record: AccessControlEntryRecord) -> AclEntry:
        return cls(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    def as_record(self, id: bytes) -> AccessControlEntryRecord:
        """Return the record that stores the entry under this id."""
        return AccessControlEntryRecord(
            id=id,
            resource_type=self.resource_type,
            resource_name=self.resource_name,
            pattern_type=self.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission,
        )


class AclFilter(NamedTuple):
    """Selects entries. None or ANY match every value of the field.

    The pattern type MATCH selects all patterns that apply to the resource with this name: the literal one, prefixes of
    the name, and the wildcard.
    """

    resource_type: int = AclResourceType.ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = AclOperation.ANY
    permission: int = AclPermission.ANY

    @property
    def only(self) -> AclEntry | None:
        """The only entry that the filter can match; None if it can match several."""
        name, principal, host = self.resource_name, self.principal, self.host
        if name is None or principal is None or host is None:
            return None
        if self.pattern_type == PatternType.MATCH or ANY in (
            self.resource_type,
            self.pattern_type,
            self.operation,
            self.permission,
        ):
            return None
        return AclEntry(self.resource_type, name, self.pattern_type, principal, host, self.operation, self.permission)

    def matches(self, entry: AclEntry) -> bool:
        return (
            (self.resource_type in (AclResourceType.ANY, entry.resource_type))
            and (self.principal is None or self.principal == entry.principal)
            and (self.host is None or self.host == entry.host)
            and (self.operation in (AclOperation.ANY, entry.operation))
            and (self.permission in (AclPermission.ANY, entry.permission))
            and self._matches_pattern(entry)
        )

    def _matches_pattern(self, entry: AclEntry) -> bool:
        name = self.resource_name
        if self.pattern_type == PatternType.MATCH and name is not None:
            if entry.pattern_type == PatternType.LITERAL:
                return entry.resource_name in (name, WILDCARD)
            return name.startswith(entry.resource_name)
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, entry.pattern_type):
            return False
        return name is None or name == entry.resource_name
