"""ACLs of User:ANONYMOUS, which tests tell apart by the client's address."""

from __future__ import annotations

from ottla.security.acls import AclOperation, AclPermission, AclResourceType
from ottla.wire.messages.security.create_acls import CreateAclsRequest


def allow(operation: AclOperation, resource: AclResourceType, name: str, host: str) -> CreateAclsRequest:
    """Allow an operation for clients from one address."""
    entry = CreateAclsRequest.AclCreation(
        resource_type=resource,
        resource_name=name,
        principal="User:ANONYMOUS",
        host=host,
        operation=operation,
        permission_type=AclPermission.ALLOW,
    )
    return CreateAclsRequest(creations=[entry])
