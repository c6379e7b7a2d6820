"""Access control entries, and why they allow or refuse something, as words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from enum import IntEnum

    from ottla.security.access_rules import Explanation
    from ottla.security.acl_entry import AclEntry
    from ottla.security.acls import AclOperation, AclResourceType
    from ottla.wire.journal.cluster_metadata import AccessControlEntryRecord


def row_of(entry: AclEntry) -> dict[str, str]:
    from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType

    return {
        "principal": entry.principal,
        "permission": _name(AclPermission, entry.permission),
        "operation": _name(AclOperation, entry.operation),
        "resource": _name(AclResourceType, entry.resource_type),
        "name": entry.resource_name,
        "pattern": _name(PatternType, entry.pattern_type),
        "host": entry.host,
    }


def explained(client: tuple[str, str, AclOperation], resource: tuple[AclResourceType, str], why: Explanation) -> str:
    """Return an explanation as one line; `client` is its principal, host and operation."""
    who, host, operation = client
    cause = why.reason.value + ("" if why.entry is None else f": {sentence(_entry_of(why.entry))}")
    verdict = "allowed" if why.allowed else "refused"
    return f"{verdict}: {who} {word(operation)} on {word(resource[0])} {resource[1]} from {host}: {cause}"


def explained_row(
    client: tuple[str, str, AclOperation], resource: tuple[AclResourceType, str], why: Explanation
) -> dict[str, object]:
    """Return an explanation as the fields of a JSON object."""
    who, host, operation = client
    return {
        "principal": who,
        "operation": word(operation),
        "resource": word(resource[0]),
        "name": resource[1],
        "host": host,
        "allowed": why.allowed,
        "reason": why.reason.value,
        "entry": None if why.entry is None else row_of(_entry_of(why.entry)),
    }


def _entry_of(record: AccessControlEntryRecord) -> AclEntry:
    from ottla.security.acl_entry import AclEntry

    return AclEntry.of(record)


def sentence(entry: AclEntry) -> str:
    row = row_of(entry)
    names = f"{row['resource']}s that begin with " if row["pattern"] == "prefixed" else f"{row['resource']} "
    place = "everywhere" if entry.host == "*" else entry.host
    allows = row["permission"] == "allow"
    if row["operation"] == "all":
        what = "may do everything" if allows else "may do nothing"
    else:
        what = f"{'may' if allows else 'may not'} {row['operation']}"
    return f"{entry.principal} {what} on {names}{entry.resource_name}, from {place}"


def count_text(number: int) -> str:
    return f"{number} {'entry' if number == 1 else 'entries'}"


def _name(kind: type[IntEnum], code: int) -> str:
    return word(kind(code)) if any(code == each for each in kind) else str(code)


def word(member: IntEnum) -> str:
    return member.name.lower().replace("_", "-")
