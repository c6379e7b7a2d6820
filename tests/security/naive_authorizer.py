"""What StandardAuthorizer answers, told entry by entry: slow, without an index, easy to compare with Kafka's text."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation, AclPermission, PatternType

IMPLIED = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


class NaiveAuthorizer:
    def __init__(self, super_users: Collection[str] = (), is_open: bool = False) -> None:
        self.super_users = super_users
        self.is_open = is_open
        self.entries: dict[bytes, AclEntry] = {}

    def allows(self, who: str, host: str, operation: int, resource: int, name: str) -> bool:
        if who in self.super_users:
            return True
        applying = [entry for entry in self.entries.values() if entry.resource_type == resource and covers(entry, name)]
        if not applying:
            return self.is_open
        meant = [entry for entry in applying if entry.principal in (who, "User:*") and entry.host in (host, "*")]
        if any(entry.permission == AclPermission.DENY and entry.operation in (operation, 2) for entry in meant):
            return False
        allowing = {operation, AclOperation.ALL, *IMPLIED.get(AclOperation(operation), ())}
        return any(entry.permission == AclPermission.ALLOW and entry.operation in allowing for entry in meant)

    def allows_some(self, who: str, host: str, operation: int, resource: int) -> bool:
        if self.allows(who, host, operation, resource, "hardcode"):
            return True
        meant = [
            entry
            for entry in self.entries.values()
            if entry.resource_type == resource
            and entry.principal in (who, "User:*")
            and entry.host in (host, "*")
            and entry.operation in (operation, AclOperation.ALL)
        ]
        denied = list(patterns(meant, AclPermission.DENY))
        allowed = list(patterns(meant, AclPermission.ALLOW))
        if (PatternType.LITERAL, "*") in denied:
            return False
        if (PatternType.LITERAL, "*") in allowed:
            return True
        prefixes = [name for kind, name in denied if kind == PatternType.PREFIXED]
        return any(
            not name.startswith(tuple(prefixes)) and not (kind == PatternType.LITERAL and (kind, name) in denied)
            for kind, name in allowed
        )


def covers(entry: AclEntry, name: str) -> bool:
    if entry.pattern_type == PatternType.LITERAL:
        return entry.resource_name in (name, "*")
    return name.startswith(entry.resource_name)


def patterns(entries: Iterable[AclEntry], permission: AclPermission) -> Iterator[tuple[int, str]]:
    return ((entry.pattern_type, entry.resource_name) for entry in entries if entry.permission == permission)
