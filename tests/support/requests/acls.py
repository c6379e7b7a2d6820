"""Requests about ACLs, and the settings of a node that serves them."""

from __future__ import annotations

from typing import Any

from ottla.model.settings.authorizer import STANDARD_AUTHORIZER
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.security.delete_acls import DeleteAclsRequest
from ottla.wire.messages.security.describe_acls import DescribeAclsRequest

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
ALL, READ, WRITE = 2, 3, 4
DENY, ALLOW = 2, 3

# Every client here is anonymous, so it has to be a super user to change ACLs.
GUARDED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}


def creation(name: str = "t", **changed: Any) -> CreateAclsRequest.AclCreation:
    values: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return CreateAclsRequest.AclCreation(**{**values, **changed})


def filter_of(**changed: Any) -> DeleteAclsRequest.Filter:
    return DeleteAclsRequest.Filter(**_filter(changed))


def described(**changed: Any) -> DescribeAclsRequest:
    return DescribeAclsRequest(**_filter(changed))


def _filter(changed: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    }
    return {**values, **changed}
