"""DeleteAcls (key 31): remove the access control entries that match filters.

v1 prefixed patterns   v3 users as resources
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.delete_acls import DeleteAcls
from ottla.machine.stepped import Steps
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acl_entry import AclEntry, AclFilter
from ottla.security.acls import AclOperation
from ottla.server.api.changes.names import acl_entry, acl_resource
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.server.api.security.acl_checks import check_authorizer, check_codes
from ottla.server.loop.later import Large, Later
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.security.delete_acls import DeleteAclsRequest, DeleteAclsResponse

FilterAnswer = DeleteAclsResponse.FilterResult


def _check(request: DeleteAclsRequest, context: Context) -> None:
    check_authorizer(context)
    for each in request.filters:
        check_codes(each.resource_type_filter, each.pattern_type_filter, each.operation, each.permission_type)


def _refuse(request: DeleteAclsRequest, error: ApiError) -> DeleteAclsResponse:
    return DeleteAclsResponse(filter_results=[_refused(error) for _ in request.filters])


def _named(request: DeleteAclsRequest) -> Iterator[str]:
    for each in request.filters:
        what = acl_resource(each.resource_type_filter, each.resource_name_filter, each.pattern_type_filter)
        whose, host = each.principal_filter or "any principal", each.host_filter or "any host"
        yield acl_entry(each.permission_type, whose, each.operation, what, host)


@handles(
    DeleteAclsRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), changes=_named),
    on="both",
    forwarded=True,
    portions=Portions("filters", "filter_results", limits.ITEMS_PER_SLICE),
    refuse=_refuse,
    check=_check,
)
def delete_acls(request: DeleteAclsRequest, context: Context) -> Decided[DeleteAclsResponse]:
    filters = tuple(
        AclFilter(
            each.resource_type_filter,
            each.resource_name_filter,
            each.pattern_type_filter,
            each.principal_filter,
            each.host_filter,
            each.operation,
            each.permission_type,
        )
        for each in request.filters
    )
    return _answer(context.member.controller.submit(DeleteAcls(filters)), context)


async def _answer(
    reply: Later[list[list[AclEntry] | ApiError] | ApiError], context: Context
) -> DeleteAclsResponse | ApiError | Large[DeleteAclsResponse]:
    """Build the response in slices, because one filter may match very many entries."""
    outcomes = await reply
    if isinstance(outcomes, ApiError):
        return outcomes
    return Large(await context.runtime.slices.finish(_responding(outcomes)))


def _responding(outcomes: list[list[AclEntry] | ApiError]) -> Steps[DeleteAclsResponse]:
    results: list[FilterAnswer] = []
    for outcome in outcomes:
        if isinstance(outcome, ApiError):
            results.append(_refused(outcome))
            continue
        matching: list[FilterAnswer.MatchingAcl] = []
        for number, entry in enumerate(outcome, start=1):
            matching.append(_matching(entry))
            if number % limits.ACLS_PER_SLICE == 0:
                yield
        results.append(FilterAnswer(error_code=ErrorCode.NONE, error_message=None, matching_acls=matching))
    return DeleteAclsResponse(filter_results=results)


def _matching(entry: AclEntry) -> FilterAnswer.MatchingAcl:
    return FilterAnswer.MatchingAcl(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def _refused(error: ApiError) -> FilterAnswer:
    return FilterAnswer(error_code=error.code, error_message=error.text, matching_acls=[])
