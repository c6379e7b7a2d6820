"""Authorized operations: the bit sets that Metadata and the describe APIs report per resource.

Bit n stands for Kafka's ACL operation n. Handlers report every operation on a resource; if the node has an authorizer,
the guard replaces that by those that the client may carry out (`server/api/guard/visibility.py`).
"""

from __future__ import annotations

from ottla.security.acls import CLUSTER_NAME, AclOperation, AclResourceType
from ottla.security.decisions import Decisions

NOT_ASKED = -0x80000000

_SUPPORTED = {
    AclResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.DESCRIBE,
        AclOperation.ALTER,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    AclResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
}


def _bits(resource: AclResourceType) -> int:
    return sum(1 << operation for operation in _SUPPORTED[resource])


TOPIC_OPERATIONS = _bits(AclResourceType.TOPIC)
CLUSTER_OPERATIONS = _bits(AclResourceType.CLUSTER)
GROUP_OPERATIONS = _bits(AclResourceType.GROUP)


def operations_of(resource: AclResourceType, name: str, decisions: Decisions) -> int:
    """Return the bits of the operations that a client may carry out on a resource."""
    if resource == AclResourceType.CLUSTER:
        name = CLUSTER_NAME
    allowed = (each for each in _SUPPORTED[resource] if decisions.allows_now(each, resource, name))
    return sum(1 << each for each in allowed)
