"""CreateAcls (key 30): add access control entries.

v1 prefixed patterns   v3 users as resources
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.cluster.commands.create_acls import CreateAcls
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation
from ottla.server.api.changes.names import acl_entry, acl_resource
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.api.portions import Portions
from ottla.server.api.security.acl_checks import check_authorizer, check_codes
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.security.create_acls import CreateAclsRequest, CreateAclsResponse

AclAnswer = CreateAclsResponse.AclCreationResult


def _check(request: CreateAclsRequest, context: Context) -> None:
    check_authorizer(context)
    for each in request.creations:
        check_codes(each.resource_type, each.resource_pattern_type, each.operation, each.permission_type)
    if len(request.creations) > limits.ACLS_PER_REQUEST_MAX:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def _refuse(request: CreateAclsRequest, error: ApiError) -> CreateAclsResponse:
    return _response([error] * len(request.creations))


def _named(request: CreateAclsRequest) -> Iterator[str]:
    for each in request.creations:
        what = acl_resource(each.resource_type, each.resource_name, each.resource_pattern_type)
        yield acl_entry(each.permission_type, each.principal, each.operation, what, each.host)


@handles(
    CreateAclsRequest,
    needs=Needs((on_cluster(AclOperation.ALTER),), changes=_named),
    on="both",
    forwarded=True,
    portions=Portions("creations", "results", limits.METADATA_RECORDS_PER_SLICE),
    refuse=_refuse,
    check=_check,
)
def create_acls(request: CreateAclsRequest, context: Context) -> Decided[CreateAclsResponse]:
    entries = tuple(
        AclEntry(
            each.resource_type,
            each.resource_name,
            each.resource_pattern_type,
            each.principal,
            each.host,
            each.operation,
            each.permission_type,
        )
        for each in request.creations
    )
    return context.member.controller.ask(CreateAcls(entries), _response)


def _response(outcomes: list[ApiError | None] | list[ApiError]) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[
            AclAnswer(error_code=error.code if error else ErrorCode.NONE, error_message=error.text if error else "")
            for error in outcomes
        ]
    )
