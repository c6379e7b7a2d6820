"""Access control entries: who may do what, from where, on which resources.

Rules:
- Entries and filters are the values of `ottla.security`: `AclEntry` has one value for each field, `AclFilter` None or
  ANY where every value matches.
- Each entry that is created, and each filter of a deletion, has its own outcome.
"""

from collections.abc import Iterable
from typing import TypedDict

from ottla.client.cluster import Cluster
from ottla.client.errors import check
from ottla.client.outcomes import Outcomes, told
from ottla.security.acl_entry import AclEntry, AclFilter
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.security.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from ottla.wire.messages.security.describe_acls import DescribeAclsRequest, DescribeAclsResponse

_EVERY = AclFilter()


class AclAdmin:
    """Operations on access control entries."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def create(self, entries: Iterable[AclEntry]) -> None:
        """Add entries; those that exist already stay as they are."""
        (await self.create_each(entries)).all()

    async def create_each(self, entries: Iterable[AclEntry]) -> Outcomes[AclEntry, None]:
        """Add entries, with an outcome per entry."""
        wanted = list(dict.fromkeys(entries))
        request = CreateAclsRequest(
            creations=[
                CreateAclsRequest.AclCreation(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    resource_pattern_type=each.pattern_type,
                    principal=each.principal,
                    host=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in wanted
            ]
        )
        answer = await self._cluster.call(request)
        results = zip(wanted, answer.results, strict=False)
        return told(wanted, [(each, None, result.error_code, result.error_message) for each, result in results])

    async def describe(self, filter: AclFilter = _EVERY) -> list[AclEntry]:
        """Return the entries that match, sorted."""
        request = DescribeAclsRequest(**_fields(filter))
        answer = await self._cluster.call(request, error_of=lambda each: each.error_code)
        check(answer.error_code, answer.error_message)
        return sorted(
            AclEntry(resource.resource_type, resource.resource_name, resource.pattern_type, *_given(each))
            for resource in answer.resources
            for each in resource.acls
        )

    async def delete(self, filters: Iterable[AclFilter]) -> list[AclEntry]:
        """Remove the entries that match one of the filters, and return them, sorted."""
        found = (await self.delete_each(filters)).all()
        return sorted({entry for entries in found.values() for entry in entries})

    async def delete_each(self, filters: Iterable[AclFilter]) -> Outcomes[AclFilter, list[AclEntry]]:
        """Remove entries, with an outcome per filter: the entries that it matched."""
        wanted = list(dict.fromkeys(filters))
        request = DeleteAclsRequest(filters=[DeleteAclsRequest.Filter(**_fields(each)) for each in wanted])
        # Not repeated: the answer to a second attempt would not name what the first one removed.
        answer = await self._cluster.call(request, repeatable=False)
        return told(
            wanted,
            [
                (
                    each,
                    [
                        AclEntry(match.resource_type, match.resource_name, match.pattern_type, *_given(match))
                        for match in result.matching_acls
                    ],
                    result.error_code,
                    result.error_message,
                )
                for each, result in zip(wanted, answer.filter_results, strict=False)
            ],
        )


class _FilterFields(TypedDict):
    """A filter, as DescribeAcls and each filter of DeleteAcls have it."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def _fields(filter: AclFilter) -> _FilterFields:
    return {
        "resource_type_filter": filter.resource_type,
        "resource_name_filter": filter.resource_name,
        "pattern_type_filter": filter.pattern_type,
        "principal_filter": filter.principal,
        "host_filter": filter.host,
        "operation": filter.operation,
        "permission_type": filter.permission,
    }


def _given(
    entry: DescribeAclsResponse.Resource.AclDescription | DeleteAclsResponse.FilterResult.MatchingAcl,
) -> tuple[str, str, int, int]:
    """Return what an entry in an answer gives or denies, and to whom: principal, host, operation, permission."""
    return entry.principal, entry.host, entry.operation, entry.permission_type
