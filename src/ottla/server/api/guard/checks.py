"""Checks of single rights, which all parts of the guard use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ottla.model.errors import ApiError
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.decisions import Decisions
from ottla.server.api.context import Context
from ottla.server.api.needs import Right
from ottla.wire.message import Request, Response, Struct


def decisions_of(context: Context) -> Decisions:
    decisions = context.decisions
    assert decisions is not None, "only a node with an authorizer has a guard"
    return decisions


def missing(rights: Iterable[Right], request: Request[Response], decisions: Decisions) -> Right | None:
    """Return the first right that the client would need for the whole request and does not have."""
    for right in rights:
        if not holds(right, request, decisions):
            return right
    return None


def holds(right: Right, request: Request[Response], decisions: Decisions) -> bool:
    """Return whether the client has the right, on every resource that the request names for it."""
    if right.resource == AclResourceType.CLUSTER:
        if right.instead is not None and decisions.suffices_on_cluster(right.instead):
            return True
        return decisions.allows_on_cluster(right.operation)
    return all(
        decisions.allows(right.operation, right.resource, name)
        for name in dict.fromkeys(values(request, right.field.split(".")))
    )


def allows_item(right: Right, item: Struct | str, decisions: Decisions) -> bool:
    """Return whether the client has the right on one item, which has the resource's name or is the name."""
    if right.resource == AclResourceType.CLUSTER:
        return decisions.allows_on_cluster(right.operation)
    name = item if isinstance(item, str) else getattr(item, right.field)
    return decisions.allows(right.operation, right.resource, name)


def values(within: object, path: list[str]) -> Iterator[Any]:
    """Yield what is at the end of a path of fields, in lists as well; nothing where a field is null."""
    if isinstance(within, list):
        for each in within:
            yield from values(each, path)
    elif within is not None:
        if path:
            yield from values(getattr(within, path[0]), path[1:])
        else:
            yield within


def denied(right: Right, api: str) -> ApiError:
    """Return the error for a client without a right. Only rights on the cluster have a message, as with Kafka."""
    if right.resource == AclResourceType.CLUSTER:
        return ApiError(right.error, f"{api} needs the permission {right.operation.name} on the cluster.")
    return ApiError(right.error)


def may_describe(name: str, decisions: Decisions) -> bool:
    """Return whether the client may describe a topic that it has named."""
    return decisions.allows(AclOperation.DESCRIBE, AclResourceType.TOPIC, name)


def sees(name: str, decisions: Decisions) -> bool:
    """Return whether the client may describe a topic that it has not named, such as one of all topics of a group."""
    return decisions.allows_now(AclOperation.DESCRIBE, AclResourceType.TOPIC, name)
