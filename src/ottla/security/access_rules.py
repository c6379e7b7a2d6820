"""AccessRules: who may do what, decided by the cluster's ACLs as Kafka's StandardAuthorizer decides.

- A super user may do everything.
- Entries apply to a resource by their literal name, by a prefix of its name, or by the wildcard `*`; to a principal by
  its name or as `User:*`; to an address by its text or as `*`.
- One entry that denies the operation outweighs all that allow it. Some permissions include others (`_INCLUDED`);
  denials do not.
- A resource to which no entry applies, of any principal, is open only with `allow.everyone.if.no.acl.found`.

The cost of an answer does not depend on the number of entries: patterns are found by their names (a prefix by the
lengths that prefixes have), and the entries of one principal and host on one pattern are combined into bit sets.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from ottla.model.limits import ACLS_PER_SLICE
from ottla.security.acls import WILDCARD, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.host import comparable_host
from ottla.security.principal import Principal
from ottla.wire.journal.cluster_metadata import AccessControlEntryRecord

EVERYBODY = f"User:{WILDCARD}"
# `allows_some` asks for a resource of this name first, as Kafka does: a super user may use it, and so may everybody
# with allow.everyone.if.no.acl.found, unless an entry applies to it.
_ANY_NAME = "hardcode"
_ALL_OPERATIONS = (1 << 128) - 1  # operations are stored as signed bytes


# What else the permission of an operation allows, as bits.
_INCLUDED: dict[int, int] = {
    AclOperation.READ: 1 << AclOperation.DESCRIBE,
    AclOperation.WRITE: 1 << AclOperation.DESCRIBE,
    AclOperation.DELETE: 1 << AclOperation.DESCRIBE,
    AclOperation.ALTER: 1 << AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS: 1 << AclOperation.DESCRIBE_CONFIGS,
}

# A principal and a host, as entries name them.
_Holder = tuple[str, str]


class AccessReason(Enum):
    SUPER_USER = "super user"
    ALLOWED = "allowed by an entry"
    DENIED = "denied by an entry"
    NO_MATCH = "no entry for this principal, host and operation"
    OPEN = "no entry for the resource, and allow.everyone.if.no.acl.found is true"
    CLOSED = "no entry for the resource"


class Explanation(NamedTuple):
    """Why a request is allowed or refused; `entry` is the one that decided, if one did."""

    allowed: bool
    reason: AccessReason
    entry: AccessControlEntryRecord | None = None


class _Cell:
    """The entries of one principal and host on one pattern, and the operations that they allow and deny."""

    __slots__ = ("allowed", "denied", "entries", "named")

    def __init__(self) -> None:
        self.entries: dict[bytes, AccessControlEntryRecord] = {}
        self.denied = 0
        self.named = 0  # operations that an entry allows by their own name or as ALL
        self.allowed = 0  # those, and the ones that they include

    def combine(self) -> None:
        self.denied = self.named = self.allowed = 0
        for entry in self.entries.values():
            if entry.operation <= AclOperation.ANY:
                continue
            bits = _ALL_OPERATIONS if entry.operation == AclOperation.ALL else 1 << entry.operation
            if entry.permission_type == AclPermission.ALLOW:
                self.named |= bits
                self.allowed |= bits | _INCLUDED.get(entry.operation, 0)
            else:  # as in Kafka, a permission that is not known denies
                self.denied |= bits


_Pattern = dict[_Holder, _Cell]


class _Resources:
    """The patterns of one resource type."""

    def __init__(self) -> None:
        self.literal: dict[str, _Pattern] = {}
        self.prefixed: dict[str, _Pattern] = {}
        # principal and host → the patterns they are on: whether a prefix, and the name
        self.holders: dict[_Holder, dict[tuple[bool, str], _Cell]] = {}
        self._lengths: list[int] = []  # the lengths of all prefixes, in order, each once
        self._length_counts: Counter[int] = Counter()

    def matching(self, name: str) -> Iterator[_Pattern]:
        """Yield the patterns that apply to the resource with this name."""
        found = self.literal.get(name)
        if found is not None:
            yield found
        if name != WILDCARD:
            found = self.literal.get(WILDCARD)
            if found is not None:
                yield found
        yield from self.prefixes_of(name)

    def prefixes_of(self, name: str) -> Iterator[_Pattern]:
        for length in self._lengths[: bisect_right(self._lengths, len(name))]:
            found = self.prefixed.get(name[:length])
            if found is not None:
                yield found

    def add(self, entry: AccessControlEntryRecord) -> None:
        prefix, name, holder = _place(entry)
        patterns = self.prefixed if prefix else self.literal
        if name not in patterns:
            patterns[name] = {}
            if prefix:
                self._count_length(len(name))
        cell = patterns[name].get(holder)
        if cell is None:
            cell = patterns[name][holder] = _Cell()
            self.holders.setdefault(holder, {})[prefix, name] = cell
        cell.entries[entry.id] = entry
        cell.combine()

    def remove(self, entry: AccessControlEntryRecord) -> None:
        prefix, name, holder = _place(entry)
        patterns = self.prefixed if prefix else self.literal
        pattern = patterns[name]
        cell = pattern[holder]
        del cell.entries[entry.id]
        cell.combine()
        if cell.entries:
            return
        del pattern[holder]
        del self.holders[holder][prefix, name]
        if not self.holders[holder]:
            del self.holders[holder]
        if not pattern:
            del patterns[name]
            if prefix:
                self._forget_length(len(name))

    def _count_length(self, length: int) -> None:
        self._length_counts[length] += 1
        if self._length_counts[length] == 1:
            insort(self._lengths, length)

    def _forget_length(self, length: int) -> None:
        self._length_counts[length] -= 1
        if not self._length_counts[length]:
            del self._length_counts[length]
            self._lengths.remove(length)


def _place(entry: AccessControlEntryRecord) -> tuple[bool, str, _Holder]:
    prefix = entry.pattern_type != PatternType.LITERAL
    return prefix, entry.resource_name, (entry.principal, comparable_host(entry.host))


_NO_RESOURCES = _Resources()


class AccessRules:
    """The `Authorizer` of a node. `super_users` are principals as text, such as `User:admin`."""

    def __init__(self, super_users: Iterable[str] = (), *, allow_everyone_if_no_acl_found: bool = False) -> None:
        self.version = 0
        self._super_users = frozenset(super_users)
        self._is_open = allow_everyone_if_no_acl_found
        self._entries: dict[bytes, AccessControlEntryRecord] = {}
        self._resources: dict[int, _Resources] = {}

    def __len__(self) -> int:
        return len(self._entries)

    # --- changes

    def add(self, entry: AccessControlEntryRecord) -> None:
        """Add an entry; it replaces one with the same id."""
        self.remove(entry.id)
        self._entries[entry.id] = entry
        self._resources.setdefault(entry.resource_type, _Resources()).add(entry)
        self.version += 1

    def remove(self, id: bytes) -> None:
        """Remove an entry, if there is one with this id."""
        entry = self._entries.pop(id, None)
        if entry is not None:
            self._resources[entry.resource_type].remove(entry)
            self.version += 1

    def replace_all(self, entries: Iterable[AccessControlEntryRecord]) -> None:
        """Replace all entries."""
        for _ in self.replacing(entries):
            pass

    def replacing(self, entries: Iterable[AccessControlEntryRecord]) -> Iterator[None]:
        """Replace all entries in slices. The old ones count until the last slice is done."""
        new = AccessRules()
        for number, entry in enumerate(entries, start=1):
            new.add(entry)
            if number % ACLS_PER_SLICE == 0:
                yield
        self._entries, self._resources = new._entries, new._resources
        self.version += 1

    # --- questions

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType, name: str
    ) -> bool:
        who = str(principal)
        if who in self._super_users:
            return True
        holders = _holders(who, host)
        bit = 1 << operation
        has_entries = is_allowed = False
        for pattern in self._resources.get(resource, _NO_RESOURCES).matching(name):
            has_entries = True
            for holder in holders:
                cell = pattern.get(holder)
                if cell is not None:
                    if cell.denied & bit:
                        return False
                    if cell.allowed & bit:
                        is_allowed = True
        return is_allowed or (self._is_open and not has_entries)

    def allows_some(self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType) -> bool:
        """As Kafka's authorizeByResourceType: only entries for the operation itself or ALL count, and an entry that
        allows counts unless all that it covers is denied by one other entry.
        """
        if self.allows(principal, host, operation, resource, _ANY_NAME):
            return True
        holders = _holders(str(principal), host)
        bit = 1 << operation
        resources = self._resources.get(resource, _NO_RESOURCES)
        of_all = [cell for holder in holders if (cell := resources.literal.get(WILDCARD, {}).get(holder)) is not None]
        if any(cell.denied & bit for cell in of_all):
            return False
        return any(cell.named & bit for cell in of_all) or any(
            cell.named & bit and not _is_covered_by_denial(resources, prefix, name, holders, bit)
            for holder in holders
            for (prefix, name), cell in resources.holders.get(holder, {}).items()
        )

    def explain(
        self, principal: Principal, host: str, operation: AclOperation, resource: AclResourceType, name: str
    ) -> Explanation:
        """Return the answer of `allows` and its reason."""
        who = str(principal)
        if who in self._super_users:
            return Explanation(True, AccessReason.SUPER_USER)
        holders = _holders(who, host)
        bit = 1 << operation
        patterns = list(self._resources.get(resource, _NO_RESOURCES).matching(name))
        cells = [cell for pattern in patterns for holder in holders if (cell := pattern.get(holder)) is not None]
        for cell in cells:
            if cell.denied & bit:
                return Explanation(False, AccessReason.DENIED, _deciding(cell, bit, denial=True))
        for cell in cells:
            if cell.allowed & bit:
                return Explanation(True, AccessReason.ALLOWED, _deciding(cell, bit, denial=False))
        if patterns:
            return Explanation(False, AccessReason.NO_MATCH)
        return Explanation(True, AccessReason.OPEN) if self._is_open else Explanation(False, AccessReason.CLOSED)


def _holders(who: str, host: str) -> tuple[_Holder, ...]:
    """Return the principals and hosts of entries that apply to a client."""
    host = comparable_host(host)
    return (who, WILDCARD), (who, host), (EVERYBODY, WILDCARD), (EVERYBODY, host)


def _denies(pattern: _Pattern, holders: tuple[_Holder, ...], bit: int) -> bool:
    return any(cell.denied & bit for holder in holders if (cell := pattern.get(holder)) is not None)


def _is_covered_by_denial(
    resources: _Resources, prefix: bool, name: str, holders: tuple[_Holder, ...], bit: int
) -> bool:
    """Return whether one entry denies everything that a pattern covers."""
    if not prefix and _denies(resources.literal[name], holders, bit):
        return True
    return any(_denies(pattern, holders, bit) for pattern in resources.prefixes_of(name))


def _deciding(cell: _Cell, bit: int, *, denial: bool) -> AccessControlEntryRecord:
    """Return the first entry of a cell that decides about the operation."""
    for entry in cell.entries.values():
        alone = _Cell()
        alone.entries[entry.id] = entry
        alone.combine()
        if (alone.denied if denial else alone.allowed) & bit:
            return entry
    raise AssertionError("the bits of a cell come from its entries")
