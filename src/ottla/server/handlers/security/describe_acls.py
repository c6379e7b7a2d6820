"""DescribeAcls (key 29): list access control entries that match a filter, as this node knows them.

v1 prefixed patterns   v3 users as resources
"""

from __future__ import annotations

from ottla.cluster.state import ClusterState
from ottla.machine.stepped import Steps
from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.security.acl_entry import AclEntry, AclFilter
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.security.acl_checks import check_codes
from ottla.server.loop.later import Answer
from ottla.wire.messages.security.describe_acls import DescribeAclsRequest, DescribeAclsResponse

ResourceAnswer = DescribeAclsResponse.Resource
_DISABLED = DescribeAclsResponse(
    error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured on the broker", resources=[]
)


@handles(DescribeAclsRequest, needs=Needs((on_cluster(AclOperation.DESCRIBE),), explained=True), on="both", few=True)
def describe_acls(request: DescribeAclsRequest, context: Context) -> Answer[DescribeAclsResponse]:
    check_codes(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
    if context.authorizer is None:
        return _DISABLED
    filter = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    return context.runtime.slices.answer(_describing(context.member.state, filter))


def _describing(state: ClusterState, filter: AclFilter) -> Steps[DescribeAclsResponse]:
    # A list, because entries may come and go between two slices.
    resources: dict[tuple[int, str, int], ResourceAnswer] = {}
    for number, record in enumerate(list(state.acls.values()), start=1):
        entry = AclEntry.of(record)
        if filter.matches(entry):
            _listed(resources, entry).acls.append(
                ResourceAnswer.AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission,
                )
            )
        if number % limits.ACLS_PER_SLICE == 0:
            yield
    return DescribeAclsResponse(error_code=ErrorCode.NONE, error_message="", resources=list(resources.values()))


def _listed(resources: dict[tuple[int, str, int], ResourceAnswer], entry: AclEntry) -> ResourceAnswer:
    """Return the resource of an entry in the answer; add it if it is not there yet."""
    type, name, pattern = entry[:3]
    found = resources.get((type, name, pattern))
    if found is None:
        found = ResourceAnswer(resource_type=type, resource_name=name, pattern_type=pattern, acls=[])
        resources[type, name, pattern] = found
    return found
