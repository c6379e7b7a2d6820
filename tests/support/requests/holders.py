"""Clients with each set of the rights that an API declares, on a real Kafka and on Ottla.

A set of rights has an address of its own, which ACLs name as their host, so that all ACLs are made once and no test
changes those of another.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any, NamedTuple

from tests.support.requests.acls import creation, described
from tests.support.requests.limited import EVERY_TYPE, Sides
from tests.support.requests.one_of_each import GROUP, TOPIC, TRANSACTION
from tests.support.requests.same import Side
from tests.support.waiting import until

from ottla.security.acls import CLUSTER_NAME, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.server.api.needs import Needs, rights_of
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.security.describe_acls import DescribeAclsResponse

Granted = tuple[AclOperation, AclResourceType]
ANYBODY = "User:ANONYMOUS"
# Rights are on all names that begin so.
NAMES = {
    AclResourceType.TOPIC: (TOPIC, PatternType.PREFIXED),
    AclResourceType.GROUP: (GROUP, PatternType.PREFIXED),
    AclResourceType.TRANSACTIONAL_ID: (TRANSACTION, PatternType.PREFIXED),
    AclResourceType.CLUSTER: (CLUSTER_NAME, PatternType.LITERAL),
    AclResourceType.DELEGATION_TOKEN: ("*", PatternType.LITERAL),
    AclResourceType.USER: ("*", PatternType.LITERAL),
}
_ACLS_PER_REQUEST = 200


class Holder(NamedTuple):
    """Who has these rights and no others, or, if they are denied, all others and not these."""

    rights: frozenset[Granted]
    denied: bool = False

    def __str__(self) -> str:
        listed = " + ".join(sorted(f"{operation.name} {resource.name}" for operation, resource in self.rights))
        return f"all but {listed or 'nothing'}" if self.denied else listed or "nothing"

    def entries(self, host: str, principal: str = ANYBODY) -> Iterator[CreateAclsRequest.AclCreation]:
        if self.denied:
            for resource, name in EVERY_TYPE:
                where: dict[str, Any] = {"name": name, "resource_type": resource, "principal": principal, "host": host}
                yield creation(**where, operation=AclOperation.ALL)
        permission = AclPermission.DENY if self.denied else AclPermission.ALLOW
        for operation, resource in self.rights:
            name, pattern = NAMES[resource]
            where = {"name": name, "resource_type": resource, "principal": principal, "host": host}
            yield creation(**where, operation=operation, resource_pattern_type=pattern, permission_type=permission)


def client_rights(needs: Needs) -> frozenset[Granted]:
    """The rights that an API may ask clients for; those on listeners of controllers are not among them."""
    items = None if needs.items is None else needs.items._replace(of_brokers=None)
    return frozenset(rights_of(needs._replace(on_controllers=None, items=items)))


def holders_of(needs: Needs) -> list[Holder]:
    """One for each set of the rights, from none to all, so that alternatives need no care; and one with all others."""
    rights = sorted(client_rights(needs))
    subsets = chain.from_iterable(combinations(rights, count) for count in range(len(rights) + 1))
    return [*(Holder(frozenset(each)) for each in subsets), Holder(frozenset(rights), denied=True)]


class Clients:
    """A connection for each holder to each node."""

    def __init__(self, sides: Sides, holders: list[Holder]) -> None:
        self._sides = sides
        self._open: dict[tuple[str, Holder], Side] = {}
        self._hosts = {holder: f"127.1.{at // 200}.{1 + at % 200}" for at, holder in enumerate(dict.fromkeys(holders))}
        entries = [entry for holder, host in self._hosts.items() for entry in holder.entries(host)]
        for admin in sides.admins.values():
            create_acls(admin, entries)

    def of(self, node: str, holder: Holder) -> Side:
        found = self._open.get((node, holder))
        if found is None:
            admin = self._sides.admins[node]
            found = self._open[node, holder] = Side(node, admin.bootstrap, source=self._hosts[holder])
            found.ids = admin.ids
        return found

    def close(self) -> None:
        for side in self._open.values():
            side.close()


def create_acls(admin: Side, entries: list[CreateAclsRequest.AclCreation]) -> None:
    """Create ACLs whose hosts are new, and wait until the broker knows them: Kafka's learns of them a moment after the
    controller.
    """
    for at in range(0, len(entries), _ACLS_PER_REQUEST):
        answer = admin.call(CreateAclsRequest(creations=entries[at : at + _ACLS_PER_REQUEST]), 3)
        assert not any(each["error_code"] for each in answer["results"]), answer
    hosts = {entry.host for entry in entries}

    def count() -> int:
        answer = admin.answer(described(), 3)
        assert isinstance(answer, DescribeAclsResponse)
        return sum(acl.host in hosts for resource in answer.resources for acl in resource.acls)

    until(count, lambda found: found == len(entries))
